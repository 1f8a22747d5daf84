"""How exact a base's numbers are. Apart from what loads a base, so that settings are read before torch is imported."""

from typing import Literal

Quantization = Literal["none", "nf4"]
"""Of the linear layers but the head: none, or 4 bits a number (NormalFloat; QLoRA, Dettmers et al. 2023)."""
