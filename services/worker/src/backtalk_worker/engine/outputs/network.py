"""The model as the batching loop sees it: rows of unequal length in, logits of the positions asked for out."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from backtalk_worker.engine.outputs.adapters import ActiveSegments, Adapter, Segment, install_adapted_layers
from backtalk_worker.engine.outputs.ragged import ATTENTION_NAME, RowCache, Slice, register_attention
from backtalk_worker.model.load import LoadedModel


@dataclass(frozen=True, slots=True)
class RowInput:
    """One row's part of a forward pass. Rows of one adapter must stand next to each other."""

    ids: Sequence[int]
    position: int
    """Where the first of `ids` stands in the row."""
    cache: RowCache
    adapter: Adapter | None
    logits_from: int
    """Logits are wanted for `ids[logits_from:]`; `len(ids)` = for none."""


@dataclass(frozen=True, slots=True)
class RowOutput:
    """What one forward pass gave for one row."""

    logits: Tensor
    """`[positions, vocabulary]` in float32."""
    model: str
    """The name of the weights that computed them: the applied adapter's, or the base model's."""


class RaggedNetwork:
    """One decoder with its adapters; used by one thread."""

    def __init__(self, model: LoadedModel, base_name: str) -> None:
        register_attention()
        self._base_name = base_name
        self._network = model.network
        self._network.set_attn_implementation(ATTENTION_NAME)
        self._active = ActiveSegments()
        self.layer_shapes = install_adapted_layers(self._network, self._active)
        config = self._network.config
        self._layers = int(config.num_hidden_layers)
        self._key_heads = int(config.num_key_value_heads)
        self._group = int(config.num_attention_heads) // self._key_heads
        self._head_size = int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)

    def name_of(self, adapter: Adapter | None) -> str:
        return self._base_name if adapter is None else adapter.name

    def new_cache(self, capacity: int) -> RowCache:
        return RowCache(self._layers, self._key_heads, self._head_size, capacity)

    @torch.inference_mode()
    def forward(self, rows: Sequence[RowInput]) -> list[RowOutput]:
        """Computes every row's ids with its adapter."""
        ids: list[int] = []
        positions: list[int] = []
        slices = []
        wanted: list[int] = []
        for row in rows:
            start, count = len(ids), len(row.ids)
            row.cache.reserve(row.position + count, row.position)
            slices.append(Slice(row.cache, start, start + count, row.position, self._group))
            ids.extend(row.ids)
            positions.extend(range(row.position, row.position + count))
            wanted.extend(range(start + row.logits_from, start + count))
        self._active.segments = _segments(rows)
        hidden = self._network.model(
            input_ids=torch.tensor([ids]), position_ids=torch.tensor([positions]), use_cache=False, ragged=slices
        ).last_hidden_state[0]
        if wanted:
            picked = hidden if len(wanted) == len(ids) else hidden[wanted]
            logits = self._network.lm_head(picked).float().split([len(row.ids) - row.logits_from for row in rows])
        else:
            logits = [hidden.new_empty(0, 0)] * len(rows)
        return [RowOutput(part, self.name_of(row.adapter)) for part, row in zip(logits, rows, strict=True)]


def _segments(rows: Sequence[RowInput]) -> tuple[Segment, ...]:
    """Neighbouring rows of one adapter → one segment of tokens."""
    segments: list[Segment] = []
    start = 0
    for row in rows:
        end = start + len(row.ids)
        if row.adapter is not None:
            if segments and segments[-1].adapter is row.adapter and segments[-1].end == start:
                segments[-1] = Segment(segments[-1].start, end, row.adapter)
            else:
                segments.append(Segment(start, end, row.adapter))
        start = end
    return tuple(segments)
