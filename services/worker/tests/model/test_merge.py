"""What leaves the house: an adapter as peft loads it, and merged folders as transformers loads them."""

from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from backtalk_worker.model.merge import main, merge
from backtalk_worker.training.domain.adapter import AdapterShape, adapted, adapter_config
from backtalk_worker.training.outputs.base_model import load_base_model
from tests.model.made import make_model

IDS = torch.tensor([[5, 17, 3, 42, 8, 8, 21]])


@pytest.fixture(scope="module", params=("qwen3", "llama"))
def base(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(request.param, tmp_path_factory.mktemp("base") / request.param)


@pytest.fixture(scope="module")
def taught(base: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, torch.Tensor]:
    """An adapter that changes answers, as a step writes one, and the logits that the training worker has under it."""
    folder = tmp_path_factory.mktemp("adapter")
    loaded = load_base_model(base, base.name, "cpu", "float32")
    shape = AdapterShape(4, 8, loaded.target_modules)
    with adapted(loaded.network, shape, 1) as policy, torch.no_grad():
        generator = torch.Generator().manual_seed(2)
        start = policy.tensors()
        policy.set_tensors({n: t + 0.1 * torch.randn(t.shape, generator=generator) for n, t in start.items()})
        save_file(policy.tensors(), folder / "adapter_model.safetensors", metadata={"format": "pt"})
        logits = policy.network.model(input_ids=IDS).logits
    (folder / "adapter_config.json").write_bytes(adapter_config(shape, base.name))
    return folder, logits


@pytest.fixture(scope="module")
def merged(base: Path, taught: tuple[Path, torch.Tensor], tmp_path_factory: pytest.TempPathFactory) -> Path:
    to = tmp_path_factory.mktemp("merged") / base.name
    merge(base, taught[0], to)
    return to


def _logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        return model.eval()(input_ids=IDS).logits


def test_peft_loads_the_adapter_and_has_the_training_workers_logits(base: Path, taught: tuple[Path, torch.Tensor]):
    adapter, logits = taught
    plain = AutoModelForCausalLM.from_pretrained(base)
    assert not torch.allclose(_logits(plain), logits, atol=1e-2)
    torch.testing.assert_close(_logits(PeftModel.from_pretrained(plain, adapter)), logits, atol=1e-5, rtol=1e-5)


def test_transformers_loads_the_merged_folder_and_has_the_same_logits(merged: Path, taught: tuple[Path, torch.Tensor]):
    model = AutoModelForCausalLM.from_pretrained(merged)
    torch.testing.assert_close(_logits(model), taught[1], atol=1e-4, rtol=1e-4)


def test_what_learned_on_four_bits_is_merged_into_their_numbers(tmp_path: Path):
    base = make_model("qwen3", tmp_path / "qwen3")
    held = load_base_model(base, base.name, "cpu", "float32", quantization="nf4")
    adapter, shape = tmp_path / "adapter", AdapterShape(4, 8, held.target_modules)
    adapter.mkdir()
    with adapted(held.network, shape, 1) as policy, torch.no_grad():
        policy.set_tensors({name: tensor + 0.05 for name, tensor in policy.tensors().items()})
        save_file(policy.tensors(), adapter / "adapter_model.safetensors", metadata={"format": "pt"})
        expected = policy.network.model(input_ids=IDS).logits
    (adapter / "adapter_config.json").write_bytes(adapter_config(shape, base.name))
    for how in ("nf4", "none"):
        merge(base, adapter, tmp_path / how, how)  # type: ignore[arg-type]
        model = AutoModelForCausalLM.from_pretrained(str(tmp_path / how), dtype=torch.float32, local_files_only=True)
        with torch.no_grad():
            found = model(input_ids=IDS).logits
        assert torch.allclose(found, expected, atol=1e-3) == (how == "nf4")
        assert not hasattr(model.config, "quantization_config")


def test_a_merged_folder_has_the_bases_tokenizer_and_template(base: Path, merged: Path):
    talk = [{"role": "user", "content": "Rain in Rome?"}]
    rendered = [
        AutoTokenizer.from_pretrained(folder).apply_chat_template(talk, add_generation_prompt=True, return_dict=False)
        for folder in (base, merged)
    ]
    assert rendered[0] == rendered[1]
    assert not (merged / "adapter_config.json").exists()


def test_a_merged_folder_keeps_the_numbers_of_its_base(base: Path, taught: tuple[Path, torch.Tensor], tmp_path: Path):
    half = tmp_path / "half"
    AutoModelForCausalLM.from_pretrained(base, dtype=torch.bfloat16).save_pretrained(half)
    merge(half, taught[0], tmp_path / "merged")
    kept = load_file(tmp_path / "merged" / "model.safetensors")
    assert {tensor.dtype for tensor in kept.values()} == {torch.bfloat16}


def test_an_adapter_that_does_not_fit_is_one_line(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sys.argv", ["merge", str(base), str(tmp_path), str(tmp_path / "to")])
    assert main() == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert not (tmp_path / "to").exists()
