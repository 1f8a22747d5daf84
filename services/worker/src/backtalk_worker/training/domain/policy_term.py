"""Losses of sampled tokens, before weights and normaliser: the clipped policy term, for a scalar verdict (`binary`) and
for a gap between teacher and student (`opd`, sampled), and the sampled form of the KL penalty to the base."""

from dataclasses import dataclass

import torch
from torch import Tensor

from backtalk_worker.training.domain.correction import bounded_log_ratio


@dataclass(frozen=True)
class Clip:
    """Bounds of the trust region: ρ within [1 − low, 1 + high], and the dual bound for negative advantages."""

    low: float
    high: float
    dual: float


def policy_term(log_policy: Tensor, log_old: Tensor, weight: Tensor, advantage: Tensor, clip: Clip) -> Tensor:
    """ℓ_t = −w_t · J_t, J_t = min(ρ_t A_t, clip(ρ_t) A_t), and for A_t < 0: max(J_t, c·A_t); ρ_t = π_θ/π_old.

    PPO's clipped objective (Schulman et al. 2017) with a higher upper bound (DAPO, Yu et al. 2025) and the dual clip
    (Ye et al. 2020). At the first optimiser step of a batch ρ = 1 and the gradient is −w_t A_t ∇log π_θ. All [tokens].
    """
    ratio = bounded_log_ratio(log_policy, log_old).exp()
    clipped = ratio.clamp(1 - clip.low, 1 + clip.high)
    objective = torch.minimum(ratio * advantage, clipped * advantage)
    objective = torch.where(advantage < 0, torch.maximum(objective, clip.dual * advantage), objective)
    return -weight * objective


def binary_advantage(advantage: Tensor, cut: Tensor) -> Tensor:
    """A_t = the sample's advantage (r − baseline; the seeds' form is A = r), except 0 for praise of a cut answer.

    An answer cut by length has no end: rewarding it would teach never to end. All [tokens].
    """
    return torch.where(cut & (advantage > 0), torch.zeros_like(advantage), advantage)


def distillation_advantage(log_teacher: Tensor, log_old: Tensor, bound: float) -> Tensor:
    """A_t = clip(log π_T(a_t|s + hints) − log π_old(a_t|s), ±C); C = 0 means no bound, the seeds' form. [tokens]."""
    gap = log_teacher - log_old
    return gap.clamp(-bound, bound) if bound > 0 else gap


def clipped_tokens(log_policy: Tensor, log_old: Tensor, advantage: Tensor, clip: Clip) -> Tensor:
    """True where the clip holds the token's gradient at 0 on its bound. All [tokens]."""
    ratio = bounded_log_ratio(log_policy, log_old).exp()
    up = (advantage > 0) & (ratio > 1 + clip.high)
    down = (advantage < 0) & ((ratio < 1 - clip.low) | (ratio > clip.dual))
    return up | down


def sampled_base_kl(log_policy: Tensor, log_old: Tensor, log_base: Tensor, weight: Tensor) -> Tensor:
    """ℓ_t = w_t · ρ_t · (e^δ − δ − 1), δ = log π_ref − log π_θ, ρ_t = π_θ/π_old; the gradient flows through ρ_t too.

    Schulman's k3 estimator ("Approximating KL divergence", 2020) under importance sampling: its mean over a ~ π_old is
    KL(π_θ ‖ π_ref), value and gradient. Differentiating k3 alone gives the gradient of the other KL. All [tokens].
    """
    ratio = bounded_log_ratio(log_policy, log_old).exp()
    delta = bounded_log_ratio(log_base, log_policy)
    return weight * ratio * (delta.exp() - delta - 1)
