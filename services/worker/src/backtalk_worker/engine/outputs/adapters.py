"""Reads LoRA adapters in PEFT's format, and adds them to a network row by row.

A file that asks for more than plain LoRA on the decoder's linear layers is refused, so nothing is served in part.
"""

import itertools
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from backtalk_worker.engine import errors

CONFIG_FILE = "adapter_config.json"
WEIGHTS_FILE = "adapter_model.safetensors"
KEY_PREFIX = "base_model.model."

_serials = itertools.count(1)


@dataclass(frozen=True, slots=True, eq=False)
class Adapter:
    """One loaded adapter. Two loads of the same files are two adapters."""

    name: str
    folder: Path
    serial: int
    """Never used twice, so that nothing computed with one adapter can pass for another's."""
    rank: int
    created: int
    """When it was loaded, in seconds since 1970."""
    factors: Mapping[str, tuple[Tensor, Tensor]]
    """Module path → (A transposed `[in, rank]`, B transposed and scaled `[rank, out]`)."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Tokens `[start, end)` of a step's sequence that one adapter changes."""

    start: int
    end: int
    adapter: Adapter


class ActiveSegments:
    """The segments of the step that is being computed; set before each forward pass, read by every adapted layer."""

    def __init__(self) -> None:
        self.segments: tuple[Segment, ...] = ()


class AdaptedLinear(nn.Module):
    """A linear layer whose output gets `scale · B A x` added for the tokens of each segment, and for no others."""

    def __init__(self, base: nn.Linear, path: str, active: ActiveSegments) -> None:
        super().__init__()
        self.base = base
        self.path = path
        self.active = active

    def forward(self, x: Tensor) -> Tensor:
        """`[1, tokens, in]` → `[1, tokens, out]`."""
        y = self.base(x)
        for segment in self.active.segments:
            factors = segment.adapter.factors.get(self.path)
            if factors is not None:
                down, up = factors
                y[0, segment.start : segment.end].addmm_(x[0, segment.start : segment.end] @ down, up)
        return y


def install_adapted_layers(network: nn.Module, active: ActiveSegments) -> dict[str, tuple[int, int]]:
    """Wraps the decoder's linear layers (all but the head) in place; returns path → (in, out)."""
    shapes: dict[str, tuple[int, int]] = {}
    found = [(path, layer) for path, layer in network.named_modules() if isinstance(layer, nn.Linear)]
    for path, layer in found:
        if path.endswith("lm_head"):
            continue
        parent_path, _, attribute = path.rpartition(".")
        setattr(network.get_submodule(parent_path), attribute, AdaptedLinear(layer, path, active))
        shapes[path] = (layer.in_features, layer.out_features)
    return shapes


def load_adapter(name: str, folder: Path, shapes: Mapping[str, tuple[int, int]], rank_max: int) -> Adapter:
    """Reads and checks a folder; raises an EngineError whose words name what is wrong."""
    try:
        is_there = (folder / CONFIG_FILE).is_file()
    except OSError as error:
        raise errors.AdapterNotFoundError(name) from error
    if not is_there:
        raise errors.AdapterNotFoundError(name)
    try:
        config = json.loads((folder / CONFIG_FILE).read_text())
        tensors = load_file(folder / WEIGHTS_FILE)
    except Exception as error:
        raise errors.AdapterInvalidError(name, "its files cannot be read") from error
    if not isinstance(config, dict):
        raise errors.AdapterInvalidError(name, "its config is not that of a LoRA adapter")
    rank, scale = _check_config(name, config, rank_max)
    return Adapter(name, folder, next(_serials), rank, int(time.time()), _factors(name, tensors, shapes, rank, scale))


def _check_config(name: str, config: Mapping[str, Any], rank_max: int) -> tuple[int, float]:
    """The rank and the scale, once the config is known to ask for plain LoRA only."""
    rank, alpha = config.get("r"), config.get("lora_alpha")
    if config.get("peft_type") != "LORA" or not isinstance(rank, int) or rank < 1 or not isinstance(alpha, int | float):
        raise errors.AdapterInvalidError(name, "its config is not that of a LoRA adapter")
    for field, plain in (
        ("bias", "none"),
        ("use_dora", False),
        ("lora_bias", False),
        ("modules_to_save", None),
        ("fan_in_fan_out", False),
        ("alora_invocation_tokens", None),
    ):
        if config.get(field, plain) not in (plain, None):
            raise errors.AdapterInvalidError(name, f"{field} is not supported")
    for field in ("rank_pattern", "alpha_pattern"):
        if config.get(field):
            raise errors.AdapterInvalidError(name, f"{field} is not supported")
    if rank > rank_max:
        raise errors.AdapterRankTooHighError(rank, rank_max)
    return rank, alpha / (rank**0.5 if config.get("use_rslora") else rank)


def _factors(
    name: str, tensors: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, int]], rank: int, scale: float
) -> dict[str, tuple[Tensor, Tensor]]:
    """Pairs of factors by module path, each checked against the layer it changes."""
    paths = {key.removeprefix(KEY_PREFIX).partition(".lora_")[0] for key in tensors}
    halves = {f"{KEY_PREFIX}{path}.lora_{half}.weight" for path in paths for half in "AB"}
    if extra := sorted(tensors.keys() - halves):
        raise errors.AdapterInvalidError(name, f"{extra[0]} is no part of plain LoRA")
    factors: dict[str, tuple[Tensor, Tensor]] = {}
    for path in sorted(paths):
        a = tensors.get(f"{KEY_PREFIX}{path}.lora_A.weight")
        b = tensors.get(f"{KEY_PREFIX}{path}.lora_B.weight")
        if path not in shapes or a is None or b is None:
            raise errors.AdapterInvalidError(
                name, f"it changes {path}, which is not a linear layer of the served decoder"
            )
        inputs, outputs = shapes[path]
        if a.shape != (rank, inputs) or b.shape != (outputs, rank):
            raise errors.AdapterInvalidError(name, f"the shapes for {path} do not fit")
        down, up = a.float().t().contiguous(), (b.float() * scale).t().contiguous()
        if not (torch.isfinite(down).all() and torch.isfinite(up).all()):
            raise errors.AdapterInvalidError(name, f"the values for {path} are not all finite")
        factors[path] = (down, up)
    if not factors:
        raise errors.AdapterInvalidError(name, "it holds no weights")
    return factors
