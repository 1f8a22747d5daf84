"""Lays the examples of one question end to end, with the beginning that they share computed once.

In: prompts and answers as ids. Out: one sequence, and for each example where its own tokens and those it sees stand.
Linear layers see every token once and no padding; attention is computed for each example apart.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface

ATTENTION_NAME = "backtalk_packed"


@dataclass(frozen=True)
class Example:
    """A row as ids."""

    prompt: list[int]
    answer: list[int]
    told: bool
    before: float = 0.0
    """Log probability that an own answer had when it was drawn, nats."""

    def __len__(self) -> int:
        return len(self.prompt) + len(self.answer)


@dataclass(frozen=True)
class Packed:
    """One sequence `[1, length]` and its map; the first of the parts is the shared beginning."""

    ids: Tensor
    positions: Tensor
    queries: Tensor
    """Places of each part's own tokens, `[parts, most]`."""
    keys: Tensor
    """Places that each part sees, `[parts, most seen]`."""
    seen: Tensor
    """Which of these each token may see, `[parts, 1, most, most seen]`."""
    owner: Tensor
    """Where each place of the sequence stands in `queries`, flat."""
    predicting: Tensor
    """Places whose next token is one of an answer, example after example."""


def pack(examples: Sequence[Example], shared: int) -> Packed:
    """`shared` ids begin the prompts of most examples; an example that begins otherwise stands alone."""
    beginning = max(
        (one.prompt[:shared] for one in examples), key=lambda ids: sum(e.prompt[:shared] == ids for e in examples)
    )
    ids, positions, spans, predicting = list(beginning), list(range(shared)), [(0, shared, False)], list[int]()
    for one in examples:
        joined = one.prompt[:shared] == beginning
        own = [*one.prompt, *one.answer][shared if joined else 0 :]
        start, first = len(ids), shared if joined else 0
        ids += own
        positions += range(first, first + len(own))
        spans.append((start, len(own), joined))
        predicting += range(len(ids) - len(one.answer) - 1, len(ids) - 1)
    return Packed(torch.tensor([ids]), torch.tensor([positions]), *_maps(spans, shared), torch.tensor(predicting))


def _maps(spans: Sequence[tuple[int, int, bool]], shared: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    most = max(length for _, length, _ in spans)
    queries = torch.tensor([[start + min(at, length - 1) for at in range(most)] for start, length, _ in spans])
    keys = torch.cat([torch.arange(shared).expand(len(spans), -1), queries], 1)
    own = torch.arange(most)[None, :] <= torch.arange(most)[:, None]
    before = torch.tensor([joined for _, _, joined in spans])[:, None, None].expand(-1, most, shared)
    seen = torch.cat([before, own.expand(len(spans), -1, -1)], 2)[:, None]
    owner = torch.cat([torch.arange(length) + part * most for part, (_, length, _) in enumerate(spans)])
    return queries, keys, seen, owner


def _attend(
    _: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float | None = None,
    packed: Packed,
    **__: Any,
) -> tuple[Tensor, None]:
    """Query `[1, heads, length, size]`, key and value `[1, key heads, length, size]` → `[1, length, heads, size]`."""
    heads, size = query.shape[1], query.shape[3]
    group = heads // key.shape[1]
    asking = query[0][:, packed.queries].transpose(0, 1)  # [parts, heads, most, size]
    known = [x[0][:, packed.keys].transpose(0, 1).repeat_interleave(group, 1) for x in (key, value)]
    out = scaled_dot_product_attention(asking, *known, attn_mask=packed.seen, scale=scaling)
    return out.transpose(1, 2).reshape(-1, heads, size)[packed.owner][None], None


@contextmanager
def attending_packed(network: Any) -> Iterator[None]:
    """Within it a model takes what lies end to end."""
    usual = network.config._attn_implementation
    register_attention()
    network.set_attn_implementation(ATTENTION_NAME)
    try:
        yield
    finally:
        network.set_attn_implementation(usual)


def packed_logits(network: Any, packed: Packed) -> Tensor:
    """[predicting tokens, vocabulary], float32: what predicts each token of the answers."""
    states = network.model(
        input_ids=packed.ids, position_ids=packed.positions, use_cache=False, packed=packed
    ).last_hidden_state
    logits: Tensor = network.lm_head(states[0, packed.predicting])
    return logits.float()


def register_attention() -> None:
    """Makes the implementation known to transformers by its name; doing it again changes nothing."""
    AttentionInterface.register(ATTENTION_NAME, _attend)
    AttentionMaskInterface.register(ATTENTION_NAME, lambda *_, **__: None)
