"""What a folder must hold to be served: chance fills nothing in, and what can't be read is said in one line."""

import json
from pathlib import Path

import pytest

from backtalk_worker.model.load import load_model
from tests.model.made import make_model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of a made model, which a test may damage."""
    return make_model("llama", tmp_path / "model")


def test_a_folder_that_lacks_weights_is_refused_by_the_first_of_them(folder: Path):
    config = json.loads((folder / "config.json").read_text())
    layers = config["num_hidden_layers"]
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": layers + 1, "layer_types": None}))
    with pytest.raises(OSError, match=rf"lacks \d+ of its weights, among them model\.layers\.{layers}\."):
        load_model(folder)


@pytest.mark.parametrize("length", [4, 1_000])
def test_a_file_of_weights_that_was_cut_off_is_refused_in_one_line(folder: Path, length: int):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:length])
    with pytest.raises(OSError, match="can't be read") as refused:
        load_model(folder)
    assert "\n" not in str(refused.value)
