"""The trust region of a batch: a step that moves the answers too far is shrunk until it fits."""

import math
from collections.abc import Callable
from dataclasses import dataclass

MARGIN = 0.95
FACTOR_MIN = 0.1
FACTOR_MAX = 0.95
ATTEMPTS_MAX = 6
ANSWERS_MAX = 8
"""The divergence is measured on at most this many answers."""


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
