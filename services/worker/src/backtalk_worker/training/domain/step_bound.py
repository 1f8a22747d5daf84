"""The trust region of a batch: a step that moves the answers too far is shrunk until it fits."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

MARGIN = 0.95
FACTOR_MIN = 0.1
FACTOR_MAX = 0.95
ATTEMPTS_MAX = 6
PLACES = (1 / 8, 7 / 8)
"""Shares of a step at which weights round otherwise than at its ends."""
ANSWERS_MAX = 8
"""The divergence is measured on at most this many answers."""


def drawn(indices: Sequence[int], count: int, seed: int) -> list[int]:
    """At most so many of the indices, by the step's seed: the first or the shortest would speak for no other."""
    order = torch.randperm(len(indices), generator=torch.Generator().manual_seed(seed))
    return sorted(indices[int(i)] for i in order[:count])


@dataclass(frozen=True)
class BoundedStep:
    """Share of the step that was kept, and KL(π_old ‖ π_new) after it, nats an answer."""

    scale: float
    kl: float


def shrink_to_fit(measure_at: Callable[[float], float], bound: float) -> BoundedStep:
    """Scales by 0.95·√(bound/KL) (KL grows with about the square of the step), each factor within 0.1 to 0.95.

    `measure_at(scale)` sets the weights to that share of the step and answers the divergence. At most six factors.
    """
    scale = 1.0
    kl = measure_at(scale)
    for _ in range(ATTEMPTS_MAX):
        if bound <= 0 or kl <= bound:
            break
        # A divergence that is not a number compares as false above, and shrinks by the least factor.
        factor = MARGIN * math.sqrt(bound / kl) if math.isfinite(kl) else FACTOR_MIN
        scale *= min(FACTOR_MAX, max(FACTOR_MIN, factor))
        kl = measure_at(scale)
    return BoundedStep(scale, kl)


def fit_without_rounding(
    measure_at: Callable[[float], float], covariance: Callable[[], float], bound: float
) -> BoundedStep:
    """Where numbers are so coarse that any other weights round otherwise: that part stays however small the step is.

    A divergence within the bound is within it without that part, too. Of a larger one, its own is what it has more than
    near the start, where hardly anything but rounding is, or what `covariance` answers (`kl_without_rounding`), which
    finds more of a small one; the rest is rounding, and no step's.
    """
    whole = measure_at(1.0)
    if bound <= 0 or whole <= bound or not math.isfinite(whole):
        return shrink_to_fit(lambda scale: whole if scale == 1 else measure_at(scale), bound)
    own = max(whole - measure_at(PLACES[0]), covariance(), 0.0)
    rounding = max(0.0, whole - own)
    # In this order, what is not a number stays none: the other way round it would count as nothing at all.
    return shrink_to_fit(lambda scale: own if scale == 1 else max(measure_at(scale) - rounding, 0.0), bound)


def kl_without_rounding(start: Tensor, after_start: Tensor, before_end: Tensor, end: Tensor) -> Tensor:
    """KL(π_start ‖ π_end) without what rounding adds: [tokens, vocabulary] log-probabilities each → [tokens].

    To second order a divergence is half the variance, under π_start, of what the log-probabilities change by. Here it
    is half the covariance of that change and of the one between two places inside the step (`PLACES`), in proportion:
    their roundings have nothing to do with each other. Of a large step, which makes likely what was rare, it sees
    little.
    """
    whole, inside, weights = end - start, before_end - after_start, start.exp()
    together = (weights * whole * inside).sum(-1) - (weights * whole).sum(-1) * (weights * inside).sum(-1)
    return 0.5 * together / (PLACES[1] - PLACES[0])
