"""The README names every setting with its default, every metric and every error of both processes, and no other."""

import logging
import re
from pathlib import Path

import pytest

from backtalk_worker.engine.config import EngineConfig
from backtalk_worker.engine.errors import EngineError
from backtalk_worker.engine.events import EngineEvents
from backtalk_worker.process.config import RETIRED, ProcessConfig
from backtalk_worker.process.errors import WorkerError
from backtalk_worker.training.config import TrainingWorkerConfig
from backtalk_worker.training.errors import TrainingWorkerError
from backtalk_worker.training.events import TrainingEvents

README = (Path(__file__).parents[2] / "README.md").read_text()
ENGINE_SETTINGS, TRAINING_SETTINGS = (
    README.split("## Configuration")[1].split("## Metrics")[0].split("Training worker:")
)
ENGINE_ERRORS, TRAINING_ERRORS = README.split("## Errors")[1].split("## When it fails")[0].split("Training worker:")


@pytest.mark.parametrize(
    ("section", "config"), [(ENGINE_SETTINGS, EngineConfig), (TRAINING_SETTINGS, TrainingWorkerConfig)]
)
def test_it_lists_every_setting_with_its_default(section: str, config: type[ProcessConfig]):
    listed = dict(re.findall(r"^\| `(BACKTALK_\w+)` +\| (.+?) +\|", section, re.MULTILINE))
    if config is TrainingWorkerConfig:
        # Both read it, and it stands in the engine's table.
        listed["BACKTALK_LOG_LEVEL"] = "`info`"
        # Refused by both.
        assert {listed.pop(variable) for variable in RETIRED} == {"refused"}
    assert set(listed) == set(config.variables())
    for variable, name in config.variables().items():
        default = config.model_fields[name].default
        if isinstance(default, str | int | float):
            plain = str(int(default)) if isinstance(default, float) else str(default)
            assert (variable, listed[variable]) == (variable, f"`{plain}`")


TRAINING = TrainingEvents(logging.getLogger("test"))
TRAINING.certificate_read(0.0)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"(?:vllm:|backtalk_engine_)\w+", EngineEvents("x", 1, logging.getLogger("test")).exposition().decode()),
        (r"backtalk_training_\w+", TRAINING.exposition().decode()),
    ],
)
def test_it_lists_every_metric(pattern: str, text: str):
    known = {name for name in re.findall(rf"^# TYPE ({pattern})", text, re.MULTILINE) if not name.endswith("_created")}
    assert set(re.findall(rf"^\| `({pattern})`", README, re.MULTILINE)) == known


def rows(section: str) -> set[tuple[str, str]]:
    return set(re.findall(r"^\| `(\w+)` +\| (\w+)", section, re.MULTILINE))


def test_it_lists_every_error_of_the_engine_with_its_status():
    assert rows(ENGINE_ERRORS) == {(error.code, str(error.status)) for error in EngineError.catalogue()}


def test_it_lists_every_error_of_the_training_worker_with_its_status():
    assert rows(TRAINING_ERRORS) == {(error.code, error.status.name) for error in TrainingWorkerError.catalogue()}


def test_it_lists_no_error_twice_within_a_process():
    for base in (EngineError, TrainingWorkerError):
        codes = [error.code for error in base.catalogue()]
        assert all(codes) and len(set(codes)) == len(codes)
    assert issubclass(EngineError, WorkerError) and issubclass(TrainingWorkerError, WorkerError)
