"""What of an error stands in the log."""

import json

import pytest

from backtalk_worker.process.log import create_logger

# No word of any language, and found whole wherever it goes.
CANARY = "zqxcanaryvwk"


def fail(words: str) -> None:
    try:
        int(words)
    except ValueError as error:
        raise RuntimeError(f"cannot render {words}") from error


def fail_on_the_way(words: str) -> None:
    try:
        fail(words)
    finally:
        raise KeyError(words)


@pytest.mark.parametrize("failing", [fail, fail_on_the_way, json.loads])
def test_an_error_s_type_and_place_stand_in_the_log_and_its_words_do_not(failing, capsys):
    logger = create_logger("test", "info")
    try:
        failing(CANARY)
    except Exception as error:
        logger.error("request_failed", exc_info=error)
        written = capsys.readouterr().err
        assert CANARY not in written
        line = json.loads(written)
        assert line["msg"] == "request_failed"
        assert type(error).__name__ in line["error"]
        assert f"{failing.__code__.co_filename}:" in line["error"]


def test_an_error_names_what_it_came_of(capsys):
    logger = create_logger("test", "info")
    try:
        fail(CANARY)
    except RuntimeError as error:
        logger.error("request_failed", exc_info=error)
    assert "\nof ValueError\n" in json.loads(capsys.readouterr().err)["error"]
