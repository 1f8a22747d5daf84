import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from backtalk_worker.engine import errors
from backtalk_worker.engine.errors import EngineError
from backtalk_worker.engine.outputs.adapters import load_adapter

SHAPES = {
    f"model.layers.{layer}.{name}": shape
    for layer in range(2)
    for name, shape in {
        "self_attn.q_proj": (48, 48),
        "self_attn.k_proj": (48, 16),
        "self_attn.v_proj": (48, 16),
        "self_attn.o_proj": (48, 48),
        "mlp.gate_proj": (48, 96),
        "mlp.up_proj": (48, 96),
        "mlp.down_proj": (96, 48),
    }.items()
}


@pytest.fixture
def folder(adapters: list[Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(adapters[0], tmp_path / "adapter"))


def refused(folder: Path, rank_max: int = 64) -> EngineError:
    with pytest.raises(EngineError) as caught:
        load_adapter("x", folder, SHAPES, rank_max)
    return caught.value


def edit_config(folder: Path, **values: object) -> None:
    path = folder / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def edit_weights(folder: Path, change) -> None:
    path = folder / "adapter_model.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path)


def test_an_adapter_written_by_peft_is_read_whole(folder: Path):
    adapter = load_adapter("x", folder, SHAPES, 64)
    assert set(adapter.factors) == set(SHAPES)
    assert adapter.rank == 4


def test_two_loads_are_two_adapters(folder: Path):
    assert load_adapter("x", folder, SHAPES, 64).serial != load_adapter("x", folder, SHAPES, 64).serial


def test_a_missing_folder_is_not_found(tmp_path: Path):
    assert refused(tmp_path / "none").status == 404


def test_a_rank_over_the_limit_is_refused_as_vllm_does(folder: Path):
    error = refused(folder, rank_max=2)
    assert (error.status, error.code) == (500, "adapter_rank_too_high")


@pytest.mark.parametrize(
    "values",
    [
        {"use_dora": True},
        {"bias": "all"},
        {"modules_to_save": ["lm_head"]},
        {"rank_pattern": {"q_proj": 8}},
        {"peft_type": "IA3"},
        {"r": "eight"},
    ],
)
def test_more_than_plain_lora_is_refused(folder: Path, values: dict[str, object]):
    edit_config(folder, **values)
    assert refused(folder).code == "adapter_invalid"


def test_truncated_weights_are_refused(folder: Path):
    path = folder / "adapter_model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    assert refused(folder).status == 400


def test_weights_of_another_shape_are_refused(folder: Path):
    key = "base_model.model.model.layers.0.mlp.up_proj.lora_A.weight"
    edit_weights(folder, lambda tensors: tensors.update({key: torch.zeros(4, 47)}))
    assert refused(folder).code == "adapter_invalid"


def test_values_that_are_not_finite_are_refused(folder: Path):
    key = "base_model.model.model.layers.0.mlp.up_proj.lora_A.weight"
    edit_weights(folder, lambda tensors: tensors[key].fill_(float("nan")))
    assert refused(folder).code == "adapter_invalid"


def test_a_head_or_an_unknown_layer_is_refused(folder: Path):
    def add_head(tensors: dict[str, torch.Tensor]) -> None:
        tensors["base_model.model.lm_head.lora_A.weight"] = torch.zeros(4, 48)
        tensors["base_model.model.lm_head.lora_B.weight"] = torch.zeros(49152, 4)

    edit_weights(folder, add_head)
    assert refused(folder).code == "adapter_invalid"


def test_a_bias_beside_the_factors_is_refused(folder: Path):
    tensors = load_file(folder / "adapter_model.safetensors")
    b = next(name for name in tensors if ".lora_B." in name)
    save_file({**tensors, b.replace("weight", "bias"): torch.ones(4)}, folder / "adapter_model.safetensors")
    with pytest.raises(errors.AdapterInvalidError, match=r"lora_B\.bias is no part of plain LoRA"):
        load_adapter("x", folder, SHAPES, 64)


@pytest.mark.parametrize("config", ["[]", "3", "null"])
def test_a_config_that_is_no_object_is_refused(folder: Path, config: str):
    (folder / "adapter_config.json").write_text(config)
    with pytest.raises(errors.AdapterInvalidError, match="its config is not that of a LoRA adapter"):
        load_adapter("x", folder, SHAPES, 64)


def test_a_path_that_no_system_takes_is_not_found(tmp_path: Path):
    with pytest.raises(errors.AdapterNotFoundError):
        load_adapter("x", tmp_path / ("x" * 300), SHAPES, 64)
