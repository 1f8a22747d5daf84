"""The adapter as a file: saved by training, merged into the plain model's weights when the model's folder is made.

In: LoRA tensors in float16, named by the layer they belong to. Out: the same layers' weights with them added.
"""

from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file

RANK = 22
ALPHA = 44
TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
DOWN, UP = ".lora_A", ".lora_B"


def _tensors(network: Any) -> dict[str, torch.Tensor]:
    return {
        name.removeprefix("base_model.model.").replace(".default.weight", ""): value
        for name, value in network.named_parameters()
        if value.requires_grad
    }


def save_adapter(network: Any, path: Path) -> None:
    """Takes the LoRA tensors out of a PEFT model."""
    tensors = {name: value.detach().to(torch.float16).contiguous() for name, value in _tensors(network).items()}
    work = path.with_suffix(".new")
    save_file(tensors, work, metadata={"rank": str(RANK), "alpha": str(ALPHA)})
    work.rename(path)


def load_adapter(network: Any, path: Path) -> None:
    """Puts saved LoRA tensors into a PEFT model. ValueError where the file's layers are not the model's."""
    tensors = _tensors(network)
    with safe_open(path, framework="pt") as file:
        if set(file.keys()) != set(tensors):
            raise ValueError(f"{path.name} has other layers than the adapter that is trained")
        for name, value in tensors.items():
            with torch.no_grad():
                value.copy_(file.get_tensor(name))


def merge_adapter(network: torch.nn.Module, path: Path) -> int:
    """Adds the adapter to the model's weights, in place; gives how many layers it changed.

    ValueError names a layer that the model lacks, or one whose size is another.
    """
    weights = dict(network.named_parameters())
    merged = 0
    with safe_open(path, framework="pt") as file:
        said = file.metadata()
        scale = float(said["alpha"]) / float(said["rank"])
        for name in sorted(key for key in file.keys() if key.endswith(DOWN)):  # noqa: SIM118
            layer = name.removesuffix(DOWN)
            change = file.get_tensor(layer + UP).float() @ file.get_tensor(name).float() * scale
            weight = weights.get(f"{layer}.weight")
            if weight is None or weight.shape != change.shape:
                raise ValueError(f"{path.name} does not fit the model: layer {layer}")
            with torch.no_grad():
                weight.add_(change.to(weight.dtype))
            merged += 1
    return merged
