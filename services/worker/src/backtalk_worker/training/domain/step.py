"""One step: teacher and base passes, gradients, AdamW, the step bound, and what was measured on the way.

The same input gives the same numbers on CPU: order, seeds and micro-batches follow from the input alone.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from backtalk_worker.training.domain.adapter import AdaptedNetwork
from backtalk_worker.training.domain.batch import BatchItem
from backtalk_worker.training.domain.divergence import reverse_kl
from backtalk_worker.training.domain.frozen_states import frozen_states
from backtalk_worker.training.domain.gradient_pass import GradientPass, PassSums
from backtalk_worker.training.domain.observation import (
    Observation,
    SampleOutcome,
    batch_measurements,
    sample_outcomes,
    tripped_guards,
)
from backtalk_worker.training.domain.recipe import Recipe
from backtalk_worker.training.domain.sample import Sample
from backtalk_worker.training.domain.step_bound import ANSWERS_MAX, BoundedStep, drawn, shrink_to_fit
from backtalk_worker.training.domain.token_budget import TokenBudget
from backtalk_worker.training.errors import StepNotFiniteError

BASE_ANSWERS_MAX = 4
"""Where KL to the base is only measured, it is on this many answers: each costs a forward pass of its own."""

Progress = Callable[[str, int, int, float], None]
"""Phase, micro-batch, micro-batches, loss so far; raises to stop the step."""


@dataclass(frozen=True)
class StepOutcome:
    """What a step did."""

    measurements: Mapping[str, float]
    samples: Sequence[SampleOutcome]


def take_step(
    adapted: AdaptedNetwork,
    optimizer: torch.optim.Optimizer,
    items: Sequence[BatchItem],
    recipe: Recipe,
    seed: int,
    progress: Progress,
) -> StepOutcome:
    """Moves the adapter by one batch. A batch without any gradient moves nothing, momentum included."""
    trained = {index: item for index, item in enumerate(items) if item.trained}
    budget = TokenBudget(recipe.micro_batch_tokens)
    hinted = {i: item.teacher_prompt for i, item in trained.items() if item.teacher_prompt}
    # The base is needed on every answer if the loss holds the policy near it, else on a few, to be measured.
    measured = list(trained) if recipe.kl_beta > 0 else drawn(list(trained), BASE_ANSWERS_MAX, seed)
    plain = {i: trained[i].sample.prompt_ids for i in measured}
    passes = GradientPass(
        adapted,
        trained,
        base_states(adapted, trained, hinted, budget, progress),
        base_states(adapted, trained, plain, budget, progress),
        recipe,
        # N counts the whole batch, dropped samples included: what is left out takes no other sample's weight.
        normaliser=len(items) * recipe.mean_answer_length,
    )
    start = adapted.tensors()
    sums, norm, bounded = PassSums(), 0.0, BoundedStep(scale=0.0, kl=0.0)
    guards: dict[str, float] = {}
    for number in range(recipe.optimizer_steps if trained else 0):

        def run(tokens: int, first: bool = number == 0) -> PassSums:
            return passes.run(tokens, first, lambda i, n, loss: progress("forward_backward", i, n, loss))

        sums = budget.spend(run)
        if number == 0 and (guards := tripped_guards(list(passes.observed.values()), recipe)):
            # Its gradient is thrown away: v is known only once every answer was seen.
            passes.takes_sampled_terms = False
            sums = budget.spend(lambda tokens: run(tokens, first=False))
        parameters = list(adapted.parameters.values())
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, recipe.gradient_clip, foreach=False))
        if not math.isfinite(norm):
            raise StepNotFiniteError("the gradient")
        if norm == 0:
            break
        progress("optimizer", number, recipe.optimizer_steps, sums.loss)
        optimizer.step()
        bounded = _bound_step(adapted, start, passes, seed, budget, progress)
    measured_v = batch_measurements(list(passes.observed.values()))
    measurements = measured_v | _pass_measurements(sums, norm, bounded) | guards
    return StepOutcome(measurements, sample_outcomes(items, passes.observed))


def base_states(
    adapted: AdaptedNetwork,
    items: Mapping[int, BatchItem],
    prompts: Mapping[int, Sequence[int]],
    budget: TokenBudget,
    progress: Progress,
) -> dict[int, Tensor]:
    """The frozen base on exactly the sampled ids, after the given prompts: with hints it is the teacher."""
    answers = [items[i].sample.answer_ids for i in prompts]
    with adapted.network.without_adapter():
        states = frozen_states(
            adapted.network,
            list(prompts.values()),
            answers,
            budget,
            lambda number, count: progress("teacher", number, count, 0.0),
        )
    return dict(zip(prompts, states, strict=True))


def _bound_step(
    adapted: AdaptedNetwork,
    start: Mapping[str, Tensor],
    passes: GradientPass,
    seed: int,
    budget: TokenBudget,
    progress: Progress,
) -> BoundedStep:
    """Shrinks the way from the batch's starting weights until KL(π_old ‖ π_new) fits."""
    end = adapted.tensors()
    kept = sorted(index for index, seen in passes.observed.items() if seen.kept)
    measured = [(passes.items[i].sample, passes.observed[i]) for i in drawn(kept, ANSWERS_MAX, seed)]
    attempt = 0

    def measure_at(scale: float) -> float:
        nonlocal attempt
        progress("step_bound", attempt, 0, 0.0)
        attempt += 1
        if scale < 1:
            adapted.set_tensors({name: old + scale * (end[name] - old) for name, old in start.items()})
        return _mean_step_kl(adapted, measured, budget, progress)

    bounded = shrink_to_fit(measure_at, passes.recipe.step_bound)
    if not math.isfinite(bounded.kl):
        raise StepNotFiniteError("the divergence of the step")
    return bounded


@torch.no_grad()
def _mean_step_kl(
    adapted: AdaptedNetwork,
    answers: Sequence[tuple[Sample, Observation]],
    budget: TokenBudget,
    progress: Progress,
) -> float:
    """KL(π_old ‖ π_new) over the whole vocabulary at T = 1, summed over an answer's tokens, mean over answers."""
    network = adapted.network
    states = frozen_states(
        network,
        [sample.prompt_ids for sample, _ in answers],
        [sample.answer_ids for sample, _ in answers],
        budget,
        lambda number, count: progress("step_bound", number, count, 0.0),
    )
    old = torch.cat([seen.states for _, seen in answers])  # [tokens, hidden]
    new = torch.cat(states)  # [tokens, hidden]
    total = 0.0
    for part in network.chunks(len(new)):
        before = network.log_probabilities(old[part])
        after = network.log_probabilities(new[part])
        total += float(reverse_kl(before, after).sum())
    return total / max(1, len(answers))


def _pass_measurements(sums: PassSums, norm: float, bounded: BoundedStep) -> dict[str, float]:
    """Losses before their weights; ρ and the clip at the last optimiser step."""
    return {
        "loss": sums.loss,
        "loss_binary": sums.binary,
        "loss_opd": sums.opd,
        "loss_kl": sums.kl,
        "rho_mean": sums.ratio / sums.tokens if sums.tokens else 1.0,
        "clipped_share": sums.clipped / sums.tokens if sums.tokens else 0.0,
        "gradient_norm": norm,
        "step_scale": bounded.scale,
        "kl_step": bounded.kl,
    }
