import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from backtalk_worker.model.convert import convert, find_gguf, is_converted, publish_folder
from backtalk_worker.model.load import load_model


def test_a_finished_folder_is_left_as_it_is(tmp_path: Path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"x")
    lines: list[str] = []
    convert(tmp_path / "none.gguf", tmp_path, lines.append)
    assert len(lines) == 1
    assert (tmp_path / "model.safetensors").read_bytes() == b"x"


def test_a_failed_conversion_leaves_nothing_behind(tmp_path: Path):
    (tmp_path / "broken.gguf").write_bytes(b"not a model")
    with pytest.raises(Exception):  # noqa: B017
        convert(tmp_path / "broken.gguf", tmp_path / "model", lambda _: None)
    assert not is_converted(tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["broken.gguf"]


def test_what_is_published_can_be_read_by_another_user_than_the_one_who_saved_it(tmp_path: Path):
    work = tmp_path / "work"
    work.mkdir(mode=0o700)
    for name in ("config.json", "model.safetensors"):
        (work / name).touch(mode=0o600)
    publish_folder(work, tmp_path / "model")
    assert (tmp_path / "model").stat().st_mode & 0o777 == 0o755
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "model").iterdir()} == {0o644}


def test_a_folder_with_files_of_others_is_refused_and_left_alone(tmp_path: Path):
    (tmp_path / "qwen").mkdir()
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="name a new folder with --to"):
        convert(find_gguf(), tmp_path, lambda _: None)
    work = tmp_path.parent / "work"
    work.mkdir()
    with pytest.raises(FileExistsError):
        publish_folder(work, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"qwen", "notes.txt"}


def test_the_wheels_file_is_found_without_importing_it():
    assert find_gguf().suffix == ".gguf"


def test_a_package_that_is_missing_is_named():
    with pytest.raises(FileNotFoundError, match="no_such_package"):
        find_gguf("no_such_package")


def test_loading_a_missing_folder_says_how_to_make_it(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match=r"backtalk_worker\.model\.convert"):
        load_model(tmp_path / "none")
    with pytest.raises(FileNotFoundError, match=r"backtalk_worker\.model\.convert"):
        load_model(tmp_path)
    (tmp_path / "notes.txt").touch()
    with pytest.raises(FileNotFoundError, match=r"config\.json"):
        load_model(tmp_path)


@contextmanager
def as_plain_user() -> Iterator[None]:
    """Root reads everything, so it is laid down for a while."""
    own = os.geteuid()
    if own == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(own)


def test_loading_a_file_that_this_user_may_not_read_says_so_and_names_it():
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "config.json").write_text("{}")
        (folder / "model.safetensors").touch(mode=0o000)
        with as_plain_user(), pytest.raises(PermissionError, match=r"model\.safetensors"):
            load_model(folder)
