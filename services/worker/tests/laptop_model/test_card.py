from pathlib import Path

import pytest
from safetensors import safe_open

from backtalk_worker.laptop_model.adapter import ALPHA, RANK
from backtalk_worker.laptop_model.answers import FOLDER
from backtalk_worker.laptop_model.kinds import KINDS
from backtalk_worker.model.convert import is_converted
from backtalk_worker.model.location import digest_of_file

CARD = (FOLDER / "README.md").read_text("utf-8")
ADAPTER = FOLDER / "adapter.safetensors"


def test_the_card_is_the_card_of_this_adapter():
    assert digest_of_file(ADAPTER) in CARD
    assert ADAPTER.stat().st_size < 10_000_000


def test_the_card_has_a_figure_for_every_kind():
    assert [kind.name for kind in KINDS if f"| {kind.name} " not in CARD] == []


def test_the_adapter_says_how_it_is_merged():
    with safe_open(ADAPTER, framework="pt") as file:
        assert file.metadata() == {"rank": str(RANK), "alpha": str(ALPHA)}
        shapes = {file.get_slice(name).get_shape()[0] for name in file.keys() if name.endswith("lora_A")}  # noqa: SIM118
    assert shapes == {RANK}


@pytest.mark.parametrize(("merged", "expected"), [(True, True), (False, False)])
def test_a_folder_is_ready_only_with_the_adapter_that_is_asked_for(tmp_path: Path, merged: bool, expected: bool):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"x")
    if merged:
        (tmp_path / "merged-adapter.txt").write_text(digest_of_file(ADAPTER) + "\n")
    assert is_converted(tmp_path, ADAPTER) is expected
    assert is_converted(tmp_path) is not expected
