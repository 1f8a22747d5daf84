"""Corrects for tokens that another engine or an older version sampled: v = π_old/μ, a constant, one value a token."""

from torch import Tensor

LOG_RATIO_MAX = 20.0
"""|log ratio| is bounded by this before `exp`."""
WEIGHT_MAX = 2.0
"""w = min(v, 2)."""
MASK_BELOW = 0.5
MASK_ABOVE = 5.0
DROP_BELOW = 1e-4
"""A sequence with any v below this is dropped."""


def bounded_log_ratio(numerator: Tensor, denominator: Tensor) -> Tensor:
    """log(numerator/denominator) from two logprobs, within ±20. Shapes: all [tokens]."""
    return (numerator - denominator).clamp(-LOG_RATIO_MAX, LOG_RATIO_MAX)


def importance_weight(log_v: Tensor) -> Tensor:
    """w_t = min(v_t, 2): truncated importance sampling. Shapes: [tokens] → [tokens]."""
    return log_v.exp().clamp(max=WEIGHT_MAX)


def token_mask(log_v: Tensor) -> Tensor:
    """True where v is within [0.5, 5]; others give no gradient but stay in the normaliser. [tokens] → [tokens]."""
    v = log_v.exp()
    return (v >= MASK_BELOW) & (v <= MASK_ABOVE)


def sequence_is_off_policy(log_v: Tensor) -> bool:
    """True when any token of one answer has v < 1e-4: the answer is not one that π_old would give. Shape: [tokens]."""
    return bool((log_v.exp() < DROP_BELOW).any())


def staleness(log_v: Tensor) -> float:
    """mean |log v| of one answer: how far π_old has moved from what sampled it. Shape: [tokens]."""
    return float(log_v.abs().mean())


def effective_share(v: Tensor) -> float:
    """ESS/n = (Σv)² / (n·Σv²) of uncapped v, from 1/n to 1. Shape: [tokens]."""
    return float(v.sum().square() / (v.numel() * v.square().sum())) if v.numel() else 1.0
