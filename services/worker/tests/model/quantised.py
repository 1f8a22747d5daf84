"""A network in 4 bits, taken apart again: the numbers that its layers compute with, in plain layers."""

from typing import Any

import torch
from bitsandbytes.functional import dequantize_4bit
from bitsandbytes.nn.modules import Linear4bit
from torch import Tensor, nn


def quantised_layers(network: Any) -> dict[str, Any]:
    """By path; none of a network in whole numbers."""
    return {path: one for path, one in network.named_modules() if isinstance(one, Linear4bit)}


def numbers_of(layer: Any) -> Tensor:
    """[out, in]"""
    return dequantize_4bit(layer.weight.data, layer.weight.quant_state)


@torch.no_grad()
def dequantised(network: Any) -> Any:
    """The same network, with plain layers in place of those in 4 bits."""
    for path, layer in quantised_layers(network).items():
        plain = nn.Linear(layer.in_features, layer.out_features, bias=layer.bias is not None)
        plain.weight.copy_(numbers_of(layer))
        if layer.bias is not None:
            plain.bias.copy_(layer.bias)
        parent, _, name = path.rpartition(".")
        setattr(network.get_submodule(parent), name, plain)
    # What reads these marks takes the network for one in 4 bits.
    for mark in ("is_quantized", "is_loaded_in_4bit", "quantization_method", "hf_quantizer"):
        network.__dict__.pop(mark, None)
    network.config.__dict__.pop("quantization_config", None)
    return network.requires_grad_(requires_grad=False)
