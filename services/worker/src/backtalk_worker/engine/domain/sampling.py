"""Draws one token a row from logits, with the logprobs of what was drawn.

The random numbers come from outside, no row's result depends on another row, and the given logits are never changed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from backtalk_worker.engine.domain.request import LogprobsMode, PositionScores, Sampling, TokenScore


@dataclass(frozen=True, slots=True)
class DrawRequest:
    """What one row asks of the sampler at this position."""

    sampling: Sampling
    uniform: float
    banned_ids: tuple[int, ...] = ()
    """Ids that may not be drawn yet (ends, before `min_tokens`)."""


@dataclass(frozen=True, slots=True)
class Draw:
    """The drawn id, and its scores where the row asked for logprobs."""

    token: int
    scores: PositionScores | None


def draw(logits: Tensor, requests: Sequence[DrawRequest], mode: LogprobsMode) -> list[Draw | None]:
    """`[rows, vocabulary]` → one Draw per row, None where the logits make no distribution."""
    shaped = _shape(logits, requests)
    logprobs = torch.log_softmax(shaped, dim=-1)
    ids = _pick(logprobs, requests)
    reported = logprobs if mode == "processed_logprobs" else torch.log_softmax(logits, dim=-1)
    own = _floats(reported.gather(-1, ids[:, None])[:, 0])
    # One logit that is not a number, or infinite, makes all logprobs of its row none.
    sound = [not math.isnan(value) for value in _floats(logprobs[:, 0] + reported[:, 0])]
    return [
        Draw(token, _scores(reported[row], token, own[row], requests[row].sampling)) if sound[row] else None
        for row, token in enumerate(_integers(ids))
    ]


def _floats(values: Tensor) -> list[float]:
    # torch's stubs leave the type of `tolist` open, here and below.
    return cast("list[float]", values.tolist())  # pyright: ignore[reportUnknownMemberType]


def _integers(values: Tensor) -> list[int]:
    return cast("list[int]", values.tolist())  # pyright: ignore[reportUnknownMemberType]


def score_prompt(logits: Tensor, following: Sequence[int], top: int) -> list[PositionScores]:
    """Logits `[positions, vocabulary]` and the ids that follow → raw scores with ranks, and the `top` likeliest."""
    logprobs = torch.log_softmax(logits, dim=-1)
    targets = torch.tensor(following, dtype=torch.long)[:, None]
    chosen = logprobs.gather(-1, targets)
    own, ranks = _floats(chosen[:, 0]), _integers((logprobs > chosen).sum(-1).add(1))
    return [
        PositionScores(TokenScore(token, own[i], ranks[i]), tuple(_likeliest(logprobs[i], top, token)))
        for i, token in enumerate(following)
    ]


def _likeliest(logprobs: Tensor, count: int, but: int) -> list[TokenScore]:
    """`[vocabulary]` → the `count` likeliest ids with their ranks, without the one that is reported already."""
    if not count:
        return []
    best = logprobs.topk(count)
    pairs = zip(_integers(best.indices), _floats(best.values), strict=True)
    return [TokenScore(token, value, rank) for rank, (token, value) in enumerate(pairs, start=1) if token != but]


def _shape(logits: Tensor, requests: Sequence[DrawRequest]) -> Tensor:
    """Applies each row's temperature and cuts; returns a new tensor of the same shape."""
    temperatures = [r.sampling.temperature if r.sampling.temperature > 0 else 1.0 for r in requests]
    shaped = logits / torch.tensor(temperatures, dtype=logits.dtype)[:, None]
    for row, request in enumerate(requests):
        if request.banned_ids:
            shaped[row, list(request.banned_ids)] = -torch.inf
        if request.sampling.truncates:
            shaped[row] = _truncate(shaped[row], request.sampling)
    return shaped


def _truncate(row: Tensor, sampling: Sampling) -> Tensor:
    """`[vocabulary]` → the same with excluded ids at minus infinity: by allowed ids, min-p, top-k, then top-p."""
    row = row.clone()
    if sampling.allowed_ids:
        keep = torch.zeros_like(row, dtype=torch.bool)
        keep[list(sampling.allowed_ids)] = True
        row[~keep] = -torch.inf
    if sampling.min_p > 0:
        probabilities = torch.softmax(row, -1)
        row[probabilities < probabilities.max() * sampling.min_p] = -torch.inf
    if 0 < sampling.top_k < row.numel():
        row[row < row.topk(sampling.top_k).values[-1]] = -torch.inf
    if sampling.top_p < 1.0:
        ordered, order = torch.softmax(row, -1).sort(descending=True)
        before = ordered.cumsum(-1) - ordered
        # The likeliest id always stays, so that some id can be drawn even at top_p near 0.
        cut = before >= sampling.top_p
        cut[0] = False
        row[order[cut]] = -torch.inf
    return row


def _pick(logprobs: Tensor, requests: Sequence[DrawRequest]) -> Tensor:
    """`[rows, vocabulary]` → ids `[rows]`: the likeliest where greedy, else by inverse cumulative distribution."""
    greedy = [r.sampling.temperature <= 0 for r in requests]
    ids = logprobs.argmax(-1) if any(greedy) else torch.zeros(len(requests), dtype=torch.long)
    for row, request in enumerate(requests):
        if not greedy[row]:
            ids[row] = _invert(logprobs[row], request.uniform)
    return ids


def _invert(logprobs: Tensor, uniform: float) -> int:
    """`[vocabulary]` and u → the first id whose cumulative probability exceeds u (never an id of probability 0)."""
    cumulative = logprobs.exp().cumsum(-1, dtype=torch.float64)
    target = uniform * cumulative[-1]
    found = int(torch.searchsorted(cumulative, target, right=True))
    return found if found < logprobs.numel() else int(logprobs.argmax())


def _scores(logprobs: Tensor, token: int, own: float, sampling: Sampling) -> PositionScores | None:
    """The scores a row asked for at one position; `logprobs` is `[vocabulary]`."""
    if sampling.top_logprobs is None:
        return None
    if sampling.logprob_ids:
        listed = _floats(logprobs[list(sampling.logprob_ids)])
        pairs = zip(sampling.logprob_ids, listed, strict=True)
        others = [TokenScore(i, value) for i, value in pairs if i != token]
    else:
        others = _likeliest(logprobs, sampling.top_logprobs, token)
    return PositionScores(TokenScore(token, own), tuple(others))
