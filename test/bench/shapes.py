"""Shapes of models that are made on the spot with random weights: what a step costs depends on these numbers alone."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

SHAPES: dict[str, dict[str, Any]] = {
    "tiny": {
        "hidden_size": 128,
        "intermediate_size": 384,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "vocab_size": 4_096,
    },
    # Few layers, each as wide as those of Qwen3-0.6B: one layer's work weighs as much as what goes from layer to layer.
    "wide": {
        "hidden_size": 1_024,
        "intermediate_size": 3_072,
        "num_hidden_layers": 6,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 32_768,
    },
    # The numbers of the config.json of Qwen/Qwen3-4B and Qwen/Qwen3-8B.
    "qwen3-4b": {
        "hidden_size": 2_560,
        "intermediate_size": 9_728,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 151_936,
    },
    "qwen3-8b": {
        "hidden_size": 4_096,
        "intermediate_size": 12_288,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 151_936,
        "tie_word_embeddings": False,
    },
}
"""Qwen3's architecture; embeddings are tied where nothing else is said."""


def shape_named(text: str) -> dict[str, Any]:
    """A shape by its name, with fields that differ after commas: `qwen3-4b,num_hidden_layers=8`."""
    name, *changes = text.split(",")
    if name not in SHAPES:
        raise ValueError(f"there is no shape '{name}': {', '.join(SHAPES)}")
    shape = dict(SHAPES[name])
    for change in changes:
        field, _, number = change.partition("=")
        if field not in shape or not number.isdigit():
            raise ValueError(f"'{change}' is none of {', '.join(shape)} with a whole number, such as hidden_size=1024")
        shape[field] = int(number)
    return shape


def made_network(text: str, device: str, dtype: "torch.dtype", seed: int = 0) -> Any:
    """A transformers model of that shape with random weights, frozen, made on the device."""
    # They take seconds to import, and names and numbers of shapes are read without them.
    import torch
    from transformers import AutoModelForCausalLM, Qwen3Config

    config = Qwen3Config(**{"tie_word_embeddings": True, "max_position_embeddings": 40_960, **shape_named(text)})
    torch.manual_seed(seed)
    with torch.device(device):
        return AutoModelForCausalLM.from_config(config, dtype=dtype).eval().requires_grad_(False)
