"""Attention over rows of unequal length, laid end to end in one sequence, each with keys and values of its own.

Because no row is padded, a row's result does not depend on the rows beside it. It is registered with transformers as an
attention implementation, so any decoder that takes one can use it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface

ATTENTION_NAME = "backtalk_ragged"
GROWTH_TOKENS = 64


class RowCache:
    """Keys and values of one row, `[layers, heads, capacity, head size]` each; capacity grows in steps."""

    def __init__(self, layers: int, heads: int, head_size: int, capacity: int) -> None:
        self.keys = torch.empty(layers, heads, capacity, head_size)
        self.values = torch.empty(layers, heads, capacity, head_size)

    @property
    def capacity(self) -> int:
        return self.keys.shape[2]

    def reserve(self, length: int, used: int) -> None:
        """Makes room for `length` positions and keeps the first `used`; grows by half, so that copying stays rare."""
        if length <= self.capacity:
            return
        wanted = max(length, self.capacity * 3 // 2)
        capacity = -(-wanted // GROWTH_TOKENS) * GROWTH_TOKENS
        for name in ("keys", "values"):
            old: Tensor = getattr(self, name)
            new = torch.empty(old.shape[0], old.shape[1], capacity, old.shape[3])
            new[:, :, :used] = old[:, :, :used]
            setattr(self, name, new)

    def copy_from(self, other: "RowCache", length: int) -> None:
        """Takes over another row's first `length` positions."""
        self.reserve(length, 0)
        self.keys[:, :, :length] = other.keys[:, :, :length]
        self.values[:, :, :length] = other.values[:, :, :length]


@dataclass(frozen=True, slots=True)
class Slice:
    """One row's share of a step: tokens `[start, end)` of the sequence, at positions from `position` on in `cache`."""

    cache: RowCache
    start: int
    end: int
    position: int
    group: int
    """Query heads per key head."""
    masks: dict[int, Tensor | None] = field(default_factory=dict[int, Tensor | None])
    """By window, made once a step and used by every layer."""

    @property
    def upto(self) -> int:
        """Where the row ends after this step."""
        return self.position + self.end - self.start

    def first_seen(self, window: int) -> int:
        """The first position that any query of the share sees, where each sees `window` positions, itself included."""
        return max(0, self.position + 1 - window)

    def mask(self, window: int) -> Tensor | None:
        """Which of the positions `[first_seen, upto)` each query sees, `[group × tokens, positions]`; None: all."""
        if window not in self.masks:
            self.masks[window] = self._new_mask(window)
        return self.masks[window]

    def _new_mask(self, window: int) -> Tensor | None:
        if self.end - self.start == 1:
            return None
        queries = torch.arange(self.position, self.upto)[:, None]
        keys = torch.arange(self.first_seen(window), self.upto)[None, :]
        return ((keys <= queries) & (keys > queries - window)).repeat(self.group, 1)


def _attend(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float | None = None,
    sliding_window: int | None = None,
    ragged: Sequence[Slice],
    **_: Any,
) -> tuple[Tensor, None]:
    """Query `[1, heads, tokens, size]`, key and value `[1, key heads, tokens, size]` → `[1, tokens, heads, size]`.

    The query heads that share a key head are laid along the time axis of one call, so keys are never repeated. Layers
    with a sliding window read the newest keys alone; all are kept, as the beginning of a row may be another's.
    """
    layer = int(module.layer_idx)  # type: ignore[arg-type]
    heads, size, key_heads = query.shape[1], query.shape[3], key.shape[1]
    group = heads // key_heads
    out = torch.empty(1, query.shape[2], heads, size)
    for part in ragged:
        count, upto, window = part.end - part.start, part.upto, sliding_window or part.upto
        first = part.first_seen(window)
        keys, values = part.cache.keys[layer], part.cache.values[layer]
        keys[:, part.position : upto] = key[0, :, part.start : part.end]
        values[:, part.position : upto] = value[0, :, part.start : part.end]
        grouped = query[0, :, part.start : part.end].reshape(1, key_heads, group * count, size)
        attended = scaled_dot_product_attention(
            grouped, keys[None, :, first:upto], values[None, :, first:upto], attn_mask=part.mask(window), scale=scaling
        )
        out[0, part.start : part.end] = attended.view(heads, count, size).transpose(0, 1)
    return out, None


def register_attention() -> None:
    """Makes the implementation known to transformers by its name; doing it again changes nothing."""
    AttentionInterface.register(ATTENTION_NAME, _attend)
    # The slices carry the masks, so transformers makes none.
    AttentionMaskInterface.register(ATTENTION_NAME, lambda *_, **__: None)
