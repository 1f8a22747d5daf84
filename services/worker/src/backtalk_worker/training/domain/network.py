"""A causal language model as a step uses it: hidden states first, logits in chunks, one adapter that can be disabled.

It never holds the logits of a whole batch.
"""

# torch annotates checkpoint in part.
# pyright: reportUnknownVariableType=false

from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers.modeling_layers import GradientCheckpointingLayer

from backtalk_worker.training.domain.group import ALONE, Group

LOGIT_CHUNK_ELEMENTS = 4 * 1024 * 1024
"""Logits held at once: 85 positions of a vocabulary of 49,152, or 16 MiB in float32."""
LOGIT_CHUNK_ELEMENTS_CARD = 8 * LOGIT_CHUNK_ELEMENTS
"""On a card with room, which waits for the next chunk longer than it takes for a small one."""

KEPT_BYTES_MAX = 1_250_000_000
"""Where a forward pass would keep more for its backward pass, only what goes from layer to layer is kept, and each
layer is computed again: a third more work, and memory that grows with tokens × layers × hidden size. About 1,000 tokens
of the laptop's model, 100 of one with 8B parameters."""
KEPT_SHARE_CARD = 0.25
"""Of the memory that a card has free, where that is more: about 2,200 tokens of a model with 4B parameters on 80 GB."""


@dataclass(frozen=True)
class Layout:
    """How rows go through a network; none of it changes a result, but for rounding where rows are packed."""

    packs: bool = False
    """Whether rows lie end to end in one sequence, each seeing itself alone, in place of padding."""
    sharing: Group = ALONE
    """The processes that hold the base in shards, and so pass through it together."""
    at_once: int = 1
    """Micro-batches that are computed side by side, where what they keep fits."""


PLAIN = Layout()


@dataclass(frozen=True)
class ChunkedNetwork:
    """Decoder and head of one model; `model` is what generates (with or without an adapter around it)."""

    model: Any
    decoder: nn.Module
    head: nn.Module
    device: torch.device
    ends: tuple[int, ...]
    """Ids that end an answer."""
    kept_bytes: int
    """Of a token, where no layer is computed again."""
    layout: Layout = PLAIN

    def answer_states(self, prompts: Sequence[Sequence[int]], answers: Sequence[Sequence[int]]) -> Tensor:
        """Hidden states that predict each answer token, answer after answer: [tokens, hidden].

        Rows are padded on the right, where causal attention never looks, so no mask is needed and padding changes
        nothing. Packed rows need a mask, of the size of the sequence squared, so one alone is never packed.
        """
        rows = [[*prompt, *answer[:-1]] for prompt, answer in zip(prompts, answers, strict=True)]
        lengths = [len(answer) for answer in answers]
        ids, places, starts = _packed(rows) if self.layout.packs and len(rows) > 1 else _padded(rows)
        ends = [start + len(row) for start, row in zip(starts, rows, strict=True)]
        predicting = [torch.arange(end - length, end) for end, length in zip(ends, lengths, strict=True)]
        with checkpointing(self.decoder, needed=ids.numel() * self.kept_bytes > kept_bytes_max(self.device)):
            # Places that begin again are where transformers cuts the mask.
            at = {} if places is None else {"position_ids": places.to(self.device)}
            states: Tensor = self.decoder(input_ids=ids.to(self.device), **at, use_cache=False).last_hidden_state
        return states.flatten(0, 1)[torch.cat(predicting).to(self.device)]

    def log_probabilities(self, states: Tensor) -> Tensor:
        """log softmax(logits), at least in float32. [tokens, hidden] → [tokens, vocabulary]."""
        logits: Tensor = self.head(states)
        wide = logits if logits.dtype == torch.float64 else logits.float()
        return torch.log_softmax(wide, dim=-1)

    @property
    def rounds(self) -> bool:
        """Whether it computes in numbers of 16 bits."""
        return self.head.weight.dtype in {torch.bfloat16, torch.float16}

    @property
    def hidden_size(self) -> int:
        """Of a state."""
        return self.head.weight.shape[1]  # type: ignore[return-value]

    def chunks(self, tokens: int) -> Iterator[slice]:
        """Slices of token positions whose logits are small enough to be held at once."""
        vocabulary: int = self.head.weight.shape[0]  # type: ignore[assignment]
        has_room = kept_bytes_max(self.device) > KEPT_BYTES_MAX
        size = max(1, (LOGIT_CHUNK_ELEMENTS_CARD if has_room else LOGIT_CHUNK_ELEMENTS) // vocabulary)
        return (slice(start, min(start + size, tokens)) for start in range(0, tokens, size))

    @torch.no_grad()
    def token_logprobs(self, states: Tensor, ids: Tensor, temperature: Tensor) -> Tensor:
        """Logprobs of given tokens, each at its temperature. [tokens, hidden], [tokens], [tokens] → [tokens]."""
        parts = [
            sampled_logprobs(self.log_probabilities(states[part]), ids[part], temperature[part])
            for part in self.chunks(len(ids))
        ]
        return torch.cat(parts)

    def without_adapter(self) -> AbstractContextManager[Any]:
        """Inside, the network is the frozen base."""
        disable = getattr(self.model, "disable_adapter", None)
        return disable() if disable is not None else nullcontext()


def _padded(rows: Sequence[Sequence[int]]) -> tuple[Tensor, None, list[int]]:
    """Ids [rows, longest], and where each row begins in them."""
    time = max(map(len, rows))
    ids = torch.zeros(len(rows), time, dtype=torch.long)
    for number, tokens in enumerate(rows):
        ids[number, : len(tokens)] = torch.tensor(tokens)
    return ids, None, [number * time for number in range(len(rows))]


def _packed(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor, list[int]]:
    """Ids and places of all rows [1, all], and where each row begins in them."""
    ends = list(accumulate(map(len, rows)))
    ids = torch.tensor([[token for row in rows for token in row]])
    places = torch.cat([torch.arange(len(row)) for row in rows])[None]
    return ids, places, [end - len(row) for end, row in zip(ends, rows, strict=True)]


def kept_bytes_max(device: torch.device, library: Any = torch.cuda) -> int:
    """What a forward pass may keep; on a card a share of what is free there, torch's own unused part with it."""
    if device.type != "cuda":
        return KEPT_BYTES_MAX
    free = library.mem_get_info(device)[0] + library.memory_reserved(device) - library.memory_allocated(device)
    return max(KEPT_BYTES_MAX, int(KEPT_SHARE_CARD * free))


@contextmanager
def checkpointing(decoder: nn.Module, *, needed: bool) -> Generator[None, None, None]:
    """Inside, a forward pass keeps the inputs of the layers alone; what it gives, and its gradient, stay the same."""
    found = decoder.modules() if needed else ()
    layers: list[Any] = [one for one in found if isinstance(one, GradientCheckpointingLayer)]
    for layer in layers:
        # The layer itself, not the modules in it: dropout stays off.
        layer.gradient_checkpointing = layer.training = True
        layer._gradient_checkpointing_func = partial(checkpoint, use_reentrant=False)
    try:
        yield
    finally:
        for layer in layers:
            layer.gradient_checkpointing = layer.training = False


def sampled_logprobs(log_probabilities: Tensor, ids: Tensor, temperature: Tensor) -> Tensor:
    """log softmax(logits/T) of given tokens, from log-probabilities at T = 1, which differ from logits by a constant.

    [tokens, vocabulary], [tokens], [tokens] → [tokens].
    """
    scaled = log_probabilities / temperature.to(log_probabilities.dtype)[:, None]
    return scaled.gather(-1, ids[:, None])[:, 0] - scaled.logsumexp(-1)


def answers_in(values: Tensor, lengths: Sequence[int]) -> list[Tensor]:
    """The parts that belong to each answer. [tokens, ...] → one [tokens of the answer, ...] each."""
    ends = list(accumulate(lengths))
    return [values[end - length : end] for end, length in zip(ends, lengths, strict=True)]


def network_of(model: Any, layout: Layout = PLAIN) -> ChunkedNetwork:
    """Wraps a transformers model, or a PEFT model around one."""
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    head: nn.Module = inner.get_output_embeddings()
    return ChunkedNetwork(
        model=model,
        decoder=inner.get_decoder(),
        head=head,
        device=next(inner.parameters()).device,
        ends=_ends(inner.config),
        kept_bytes=_kept_bytes(inner.config),
        layout=layout,
    )


def _ends(config: Any) -> tuple[int, ...]:
    ends = getattr(config, "eos_token_id", None)
    return () if ends is None else (ends,) if isinstance(ends, int) else tuple(ends)


def _kept_bytes(config: Any) -> int:
    """In float32 whatever the base is in: adapters compute in it. Eight and seven halves are measured (README)."""
    return 2 * int(config.num_hidden_layers * (16 * config.hidden_size + 7 * config.intermediate_size))


@torch.no_grad()
def head_is_plain(network: ChunkedNetwork) -> bool:
    """Whether the model's logits are just head(decoder(ids)): one that scales or caps them would train wrongly."""
    ids = torch.arange(1, 9, device=network.device)[None]  # [1, 8]
    whole: Tensor = network.model(input_ids=ids, use_cache=False).logits
    parts: Tensor = network.head(network.decoder(input_ids=ids, use_cache=False).last_hidden_state)
    return bool(torch.allclose(whole, parts, rtol=1e-3, atol=1e-3))
