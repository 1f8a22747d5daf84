"""Divergences over the whole vocabulary between the policy and a fixed distribution, exact at each position.

Both are taken at T = 1 whatever the turn was sampled at: at T = 0.1 the same pull would be twelve times as strong, so
that agents with low temperatures would own every batch.
"""

import math

import torch
from torch import Tensor

from backtalk_worker.training.domain.recipe import DivergenceName


def reverse_kl(student: Tensor, teacher: Tensor) -> Tensor:
    """KL(π_θ ‖ π_T) = Σ_v π_θ(v) (log π_θ(v) − log π_T(v)): mode seeking. [tokens, vocabulary] → [tokens]."""
    return (student.exp() * (student - teacher)).sum(-1)


def forward_kl(student: Tensor, teacher: Tensor) -> Tensor:
    """KL(π_T ‖ π_θ) = Σ_v π_T(v) (log π_T(v) − log π_θ(v)): mode covering. [tokens, vocabulary] → [tokens]."""
    return (teacher.exp() * (teacher - student)).sum(-1)


def jeffreys(student: Tensor, teacher: Tensor) -> Tensor:
    """½ KL(π_θ ‖ π_T) + ½ KL(π_T ‖ π_θ): also pulls at what the policy never samples (Jeffreys 1946).

    With respect to the logit of v, the gradient of the reverse KL has the factor π_θ(v): a token that the teacher wants
    and the policy never samples is not pulled at. That of the forward KL is π_θ(v) − π_T(v).
    [tokens, vocabulary] → [tokens].
    """
    return (reverse_kl(student, teacher) + forward_kl(student, teacher)) / 2


def jensen_shannon(student: Tensor, teacher: Tensor, beta: float) -> Tensor:
    """JSD_β = β·KL(π_T ‖ m) + (1 − β)·KL(π_θ ‖ m), m = β·π_T + (1 − β)·π_θ (GKD, Agarwal et al. 2024).

    [tokens, vocabulary] → [tokens].
    """
    mixture = torch.logaddexp(teacher + math.log(beta), student + math.log1p(-beta))
    return beta * forward_kl(mixture, teacher) + (1 - beta) * reverse_kl(student, mixture)


def divergence(name: DivergenceName, student: Tensor, teacher: Tensor, beta: float) -> Tensor:
    """The named divergence. [tokens, vocabulary] → [tokens]."""
    match name:
        case "reverse_kl":
            return reverse_kl(student, teacher)
        case "forward_kl":
            return forward_kl(student, teacher)
        case "jeffreys":
            return jeffreys(student, teacher)
        case "jsd":
            return jensen_shannon(student, teacher, beta)


def entropy(log_probabilities: Tensor) -> Tensor:
    """H = −Σ_v π(v) log π(v). [tokens, vocabulary] → [tokens]."""
    return -(log_probabilities.exp() * log_probabilities).sum(-1)
