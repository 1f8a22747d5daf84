"""The trust region of a batch: a step that moves the answers too far is shrunk until it fits."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

MARGIN = 0.95
FACTOR_MIN = 0.1
FACTOR_MAX = 0.95
ATTEMPTS_MAX = 6
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
