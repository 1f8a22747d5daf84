"""Holds the policy near the base model: the sampled form of the KL penalty (the exact one is a divergence).

In: logprobs of the sampled tokens. Out: a loss for each token, before β and the normaliser.
"""

from torch import Tensor

from backtalk_worker.training.domain.correction import bounded_log_ratio


def sampled_base_kl(log_policy: Tensor, log_old: Tensor, log_base: Tensor, weight: Tensor) -> Tensor:
    """ℓ_t = w_t · ρ_t · (e^δ − δ − 1), δ = log π_ref − log π_θ, ρ_t = π_θ/π_old; the gradient flows through ρ_t too.

    Schulman's k3 estimator ("Approximating KL divergence", 2020) under importance sampling: its mean over a ~ π_old is
    KL(π_θ ‖ π_ref), value and gradient. Differentiating k3 alone gives the gradient of the other KL. All [tokens].
    """
    ratio = bounded_log_ratio(log_policy, log_old).exp()
    delta = bounded_log_ratio(log_base, log_policy)
    return weight * ratio * (delta.exp() - delta - 1)
