"""A step by a service that knows sampled tokens alone: how hard it is to pull at each, and what is measured of it.

The service minimises −Σ_t c_t · π_θ(a_t)/π_old(a_t). At π_θ = π_old, so at the one step of the optimiser that is taken,
its gradient is that of this worker's own loss: c_t holds the advantages of both terms, the correction w and its mask,
the KL to the base (whose gradient there is −β · w · (log π_old − log π_ref) as an advantage) and the normaliser.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from backtalk_worker.training.domain.batch import BatchItem
from backtalk_worker.training.domain.correction import (
    bounded_log_ratio,
    importance_weight,
    sequence_is_off_policy,
    staleness,
    token_mask,
)
from backtalk_worker.training.domain.observation import Observation, batch_measurements, tripped_guards
from backtalk_worker.training.domain.policy_term import binary_advantage, distillation_advantage
from backtalk_worker.training.domain.recipe import Recipe

TEMPERATURE = 1.0
"""At which such a service knows log-probabilities, and no other."""
UNMEASURED = ("entropy",)
"""Needs more than the sampled tokens."""


def not_honoured(recipe: Recipe) -> list[str]:
    """What of a recipe asks for more than log-probabilities of sampled tokens, as `name=value` that would not."""
    distils = recipe.method != "binary" and recipe.term_weights[1] > 0
    wanted = {
        "opdForm=sampled": not distils or recipe.opd_form == "sampled",
        "klForm=sampled": recipe.kl_beta == 0 or recipe.kl_form == "sampled",
        "teacher=base": not distils or recipe.teacher == "base",
        "offPolicy=drop": recipe.off_policy == "drop",
        "optimizerSteps=1": recipe.optimizer_steps == 1,
    }
    return [name for name, holds in wanted.items() if not holds]


@dataclass(frozen=True)
class Known:
    """Log-probabilities of one answer's tokens, each [tokens]."""

    old: Tensor
    """Under π_old."""
    teacher: Tensor | None = None
    base: Tensor | None = None


@dataclass(frozen=True)
class SampledStep:
    """What to pull at, by index of the item, and the figures of the batch."""

    pulls: Mapping[int, Tensor]
    """c_t of each answer's tokens, [tokens]."""
    observed: Mapping[int, Observation]
    measurements: Mapping[str, float]


def sampled_step(items: Sequence[BatchItem], known: Mapping[int, Known], recipe: Recipe) -> SampledStep:
    """`known` is of the items that are trained on, by index."""
    observed = {index: _observed(items[index], logs, recipe) for index, logs in known.items()}
    guards = tripped_guards(list(observed.values()), recipe)
    normaliser = len(items) * recipe.mean_answer_length
    sums = {"loss_binary": 0.0, "loss_opd": 0.0, "loss_kl": 0.0}
    pulls: dict[int, Tensor] = {}
    for index, logs in known.items():
        terms = _terms(items[index], logs, observed[index], recipe)
        for name, (value, _) in terms.items():
            sums[name] += 0.0 if guards else float(value.sum()) / normaliser
        pull = torch.stack([coefficient for _, coefficient in terms.values()]).sum(0) / normaliser
        pulls[index] = torch.zeros_like(pull) if guards else pull
        observed[index].pulled = float(pulls[index].double().square().sum())
    weight_rl, weight_opd = recipe.term_weights
    loss = weight_rl * sums["loss_binary"] + weight_opd * sums["loss_opd"] + recipe.kl_beta * sums["loss_kl"]
    measured = (
        batch_measurements(list(observed.values())) | sums | {"loss": loss, "rho_mean": 1.0, "clipped_share": 0.0}
    )
    kept = {name: value for name, value in measured.items() if name not in UNMEASURED}
    return SampledStep(pulls, observed, kept | guards)


def moved_by(old: Sequence[Tensor], new: Sequence[Tensor]) -> float:
    """KL(π_old ‖ π_new) in nats an answer, estimated at sampled tokens: mean over answers of Σ_t (ρ − 1 − log ρ).

    Schulman's k3 ("Approximating KL divergence", 2020): of the right mean where answers are π_old's, and never
    negative.
    """
    if not old:
        return 0.0
    ratios = [bounded_log_ratio(after, before) for before, after in zip(old, new, strict=True)]
    return sum(float((ratio.exp() - 1 - ratio).sum()) for ratio in ratios) / len(ratios)


def _observed(item: BatchItem, logs: Known, recipe: Recipe) -> Observation:
    sampler = logs.old if item.sample.is_ours else torch.tensor(item.sample.logprobs).to(logs.old)
    log_v = bounded_log_ratio(logs.old, sampler)
    return Observation(
        logs.old.new_empty(0),
        logs.old,
        log_v,
        kept=not sequence_is_off_policy(log_v),
        fresh=not recipe.staleness_max or staleness(log_v) <= recipe.staleness_max,
        # Both are means of what they estimate, over answers of the policy.
        divergence=None if logs.teacher is None else float((logs.old - logs.teacher).sum()),
        kl_base=None if logs.base is None else float((logs.old - logs.base).sum()),
    )


def _terms(item: BatchItem, logs: Known, seen: Observation, recipe: Recipe) -> dict[str, tuple[Tensor, Tensor]]:
    """Of each term its loss at each token, before weights and normaliser, and what it adds to c_t. All [tokens]."""
    taken = token_mask(seen.log_v) & seen.kept & seen.fresh
    weight = torch.where(taken, importance_weight(seen.log_v), torch.zeros_like(seen.log_v))
    weight_rl, weight_opd = recipe.term_weights
    count = len(logs.old)
    nothing = torch.zeros_like(logs.old)
    cut = torch.full((count,), item.sample.cut)
    reward = binary_advantage(torch.full_like(logs.old, item.sample.advantage), cut) if weight_rl else nothing
    gap = nothing
    if weight_opd and logs.teacher is not None:
        gap = distillation_advantage(logs.teacher, logs.old, recipe.opd_advantage_clip)
        gap = torch.where(torch.arange(count) < math.ceil(recipe.distill_share * count), gap, nothing)
    delta = bounded_log_ratio(logs.base, logs.old) if recipe.kl_beta and logs.base is not None else nothing
    return {
        "loss_binary": (-weight * reward, weight_rl * weight * reward),
        "loss_opd": (-weight * gap, weight_opd * weight * gap),
        "loss_kl": (weight * (delta.exp() - delta - 1), recipe.kl_beta * weight * delta),
    }
