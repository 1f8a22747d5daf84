"""Distillation over the likeliest tokens and a tail, `opd` in the form `topk`: the clipped policy term of each of them,
weighed by how likely the old policy is to say it."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from backtalk_worker.training.domain.policy_term import Clip, distillation_advantage, policy_term


@dataclass(frozen=True)
class Bins:
    """What decides which tokens stand alone, besides the teacher; what is left is one bin, the tail."""

    old: Tensor
    """log π_old at T = 1, a constant. [tokens, vocabulary]."""
    ends: Sequence[int]
    """Ids that end an answer: they stand alone everywhere."""
    size: int
    """k: as many of π_old and as many of π_T."""

    def alone(self, teacher: Tensor, ids: Tensor) -> Tensor:
        """S = top-k(π_old) ∪ top-k(π_T) ∪ {a_t, end tokens}, as a mask. [tokens, vocabulary]."""
        size = min(self.size, teacher.shape[-1])
        ends = ids.new_tensor(list(self.ends)).expand(len(ids), -1)
        chosen = torch.cat([self.old.topk(size).indices, teacher.topk(size).indices, ids[:, None], ends], dim=1)
        return torch.zeros_like(teacher, dtype=torch.bool).scatter_(1, chosen, value=True)


def binned_term(student: Tensor, teacher: Tensor, ids: Tensor, bins: Bins, clip: Clip, bound: float) -> Tensor:
    """ℓ_t = −Σ_v π_old(v) · J(ρ_v, Δ_v) over S and the tail, Δ_v = clip(log π_T(v) − log π_old(v), ±C).

    C = 0 is no bound. J is the policy term's. At the first optimiser step, without bound, the gradient is that of the
    reverse KL between the binned distributions. Nothing in it was sampled but the place, so neither the turn's
    temperature nor v comes in.
    [tokens, vocabulary] → [tokens].
    """
    alone = bins.alone(teacher, ids)
    has_tail = ~alone.all(-1)
    old = bins.old
    each = torch.where(alone, _weighed(student, old, teacher, clip, bound), torch.zeros_like(student)).sum(-1)
    apart = alone & has_tail[:, None]
    rest = _weighed(_tail(student, apart), _tail(old, apart), _tail(teacher, apart), clip, bound)
    return each + torch.where(has_tail, rest, torch.zeros_like(rest))


def _weighed(log_policy: Tensor, log_old: Tensor, log_teacher: Tensor, clip: Clip, bound: float) -> Tensor:
    """−π_old · J of each bin."""
    advantage = distillation_advantage(log_teacher, log_old, bound)
    return policy_term(log_policy, log_old, log_old.exp(), advantage, clip)


def _tail(log_probabilities: Tensor, left_out: Tensor) -> Tensor:
    """log Σ of what is not left out. [tokens, vocabulary] → [tokens]."""
    return log_probabilities.masked_fill(left_out, -torch.inf).logsumexp(-1)
