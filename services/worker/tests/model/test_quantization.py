"""A base in 4 bits: which numbers its layers hold, and that a step on it is that of a plain base with these numbers."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch

from backtalk_worker.model.load import load_model
from backtalk_worker.training.domain.adapter import AdapterShape, adapted
from backtalk_worker.training.outputs.base_model import load_base_model, with_teacher
from tests.model.made import make_model
from tests.model.quantised import dequantised, numbers_of, quantised_layers

LEVELS = (
    -1, -0.6961928, -0.5250731, -0.3949175, -0.2844414, -0.1847734, -0.0910500, 0,
    0.0795803, 0.1609302, 0.2461123, 0.3379152, 0.4407098, 0.5626170, 0.7229568, 1,
)  # fmt: skip
"""NormalFloat of 4 bits: QLoRA (Dettmers et al. 2023), appendix E."""
BLOCK = 64
"""Numbers of one scale."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model("qwen3", tmp_path_factory.mktemp("made") / "qwen3")


def test_each_number_is_the_nearest_level_of_its_block(folder: Path):
    plain = dict(load_model(folder).network.named_parameters())
    layers = quantised_layers(load_model(folder, quantization="nf4").network)
    assert len(layers) == 7 * 2
    assert not any("lm_head" in path or "embed" in path for path in layers)
    levels = torch.tensor(LEVELS)
    for path, layer in layers.items():
        found, given = numbers_of(layer).view(-1, BLOCK), plain[f"{path}.weight"].view(-1, BLOCK)
        scale = found.abs().amax(-1, keepdim=True)
        # The scale itself is held in 8 bits.
        assert torch.allclose(scale, given.abs().amax(-1, keepdim=True), rtol=0.05), path
        near = (given / given.abs().amax(-1, keepdim=True))[..., None].sub(levels).abs().argmin(-1)
        assert torch.allclose(found / scale, levels[near], atol=1e-4), path


def gradients(network: Any) -> dict[str, torch.Tensor]:
    """Of a loss of one answer, in an adapter that changes every layer."""
    modules = ("down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj")
    generator = torch.Generator().manual_seed(1)
    with adapted(network, AdapterShape(4, 8, modules), seed=0) as policy:
        start = policy.tensors()
        policy.set_tensors({n: t + 0.1 * torch.randn(t.shape, generator=generator) for n, t in start.items()})
        states = policy.network.answer_states([list(range(5, 60))], [[9, 8, 7]])
        policy.network.log_probabilities(states)[:, 7].sum().backward()
        return {name: one.grad.clone() for name, one in policy.parameters.items() if one.grad is not None}


def test_the_gradient_is_that_of_a_plain_base_with_the_same_numbers(folder: Path):
    held = load_base_model(folder, "made", "cpu", "float32", quantization="nf4")
    found = gradients(held.network)
    expected = gradients(dequantised(load_model(folder, quantization="nf4").network))
    assert len(found) == 2 * 7 * 2
    for name, one in expected.items():
        assert (found[name] - one).norm() <= 1e-5 * one.norm(), name
    other = gradients(load_model(folder).network.requires_grad_(requires_grad=False))
    assert any((found[name] - one).norm() > 0.01 * one.norm() for name, one in other.items())


def test_it_is_another_base_than_the_plain_one(folder: Path):
    plain, held, again = (
        load_base_model(folder, "made", "cpu", "float32", quantization=how) for how in ("none", "nf4", "nf4")
    )
    assert held.digest == again.digest != plain.digest
    # A teacher beside it has the same tokens, however its own numbers are held.
    assert with_teacher(held, plain).teacher is plain


def test_a_number_takes_half_a_byte_and_its_part_of_the_scales(folder: Path):
    layers = quantised_layers(load_model(folder, quantization="nf4").network)
    numbers = held = 0
    for layer in layers.values():
        state = layer.weight.quant_state
        scales = (state.absmax, state.state2.absmax)
        held += sum(one.numel() * one.element_size() for one in (layer.weight, *scales))
        numbers += layer.in_features * layer.out_features
    # As `backtalk fit` reckons: for 64 numbers a scale of 8 bits, of which 256 share one of 32.
    assert held / numbers == pytest.approx(0.5 + (1 + 4 / 256) / 64, rel=0.01)


def test_without_its_package_it_is_refused_with_what_installs_it(folder: Path, monkeypatch: pytest.MonkeyPatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "backtalk_worker.model.load.find_spec", lambda name: None if name == "bitsandbytes" else found(name)
    )
    load_model(folder)
    with pytest.raises(OSError, match=r"needs the package bitsandbytes: `node deploy/start.mjs setup --with"):
        load_model(folder, quantization="nf4")


def test_on_a_cpu_a_model_whose_rows_end_within_a_block_is_refused(tmp_path: Path):
    config = load_model(make_model("llama", tmp_path / "made")).network.config
    config.intermediate_size = 96
    type(load_model(tmp_path / "made").network)(config).save_pretrained(tmp_path / "made")
    with pytest.raises(OSError, match="has layers of 96 inputs: quantization nf4 needs multiples of 64 on a CPU"):
        load_model(tmp_path / "made", quantization="nf4")
