"""One step: teacher and base passes, gradients, AdamW, the step bound, and what was measured on the way.

The same input gives the same numbers on CPU: order, seeds and micro-batches follow from the input alone. Several
processes each take a share of the samples; gradients and what was measured are of all of them.
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
from backtalk_worker.training.domain.group import ALONE, Group, shares
from backtalk_worker.training.domain.network import ChunkedNetwork
from backtalk_worker.training.domain.observation import (
    Observation,
    SampleOutcome,
    batch_measurements,
    gradient_shares,
    sample_outcomes,
    tripped_guards,
)
from backtalk_worker.training.domain.recipe import Recipe
from backtalk_worker.training.domain.sample import Sample
from backtalk_worker.training.domain.step_bound import (
    ANSWERS_MAX,
    PLACES,
    BoundedStep,
    drawn,
    fit_without_rounding,
    kl_without_rounding,
    shrink_to_fit,
)
from backtalk_worker.training.domain.teacher import Teacher
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
    teacher: Teacher,
    optimizer: torch.optim.Optimizer,
    items: Sequence[BatchItem],
    recipe: Recipe,
    seed: int,
    progress: Progress,
    group: Group = ALONE,
) -> StepOutcome:
    """Moves the teacher's policy by one batch. One without any gradient moves nothing, momentum included."""
    adapted = teacher.policy
    trained = {index: item for index, item in enumerate(items) if item.trained}
    budget = TokenBudget(recipe.micro_batch_tokens)
    passes = group.apart(lambda: _passes(teacher, trained, len(items), recipe, seed, budget, progress, group))
    start = adapted.tensors()
    own = {index for index, item in enumerate(items) if not item.sample.told}
    sums, bounded = PassSums(), BoundedStep(scale=0.0, kl=0.0)
    norms: list[float] = []
    observed: dict[int, Observation] = {}
    guards: dict[str, float] = {}

    def run(first: bool) -> PassSums:
        """The gradient of the whole batch, in the parameters of every process."""

        def tick(number: int, count: int, loss: float) -> None:
            progress("forward_backward", number, count, loss)

        part = group.apart(lambda: budget.spend(lambda tokens: passes.run(tokens, first, tick)))
        _total_gradients(adapted, group)
        return PassSums.total(group.gather(part))

    for number in range(recipe.optimizer_steps if trained else 0):
        sums = run(first=number == 0)
        if number == 0:
            # What the teacher said is no answer of the policy: nothing is measured of it.
            observed = {i: seen for i, seen in _observed_by_all(passes, group).items() if i in own}
            if guards := tripped_guards(list(observed.values()), recipe):
                # Its gradient is thrown away: v is known only once every answer was seen.
                passes.takes_sampled_terms = False
                sums = run(first=False)
        parameters = list(adapted.parameters.values())
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, recipe.gradient_clip, foreach=False))
        if not math.isfinite(norm):
            raise StepNotFiniteError("the gradient")
        if norm == 0:
            break
        loss = sums.loss

        def move(number: int = number, loss: float = loss) -> None:
            progress("optimizer", number, recipe.optimizer_steps, loss)
            optimizer.step()

        # The first makes both moments: where one process has no memory for them, the others hear of it.
        group.apart(move)
        norms.append(norm)
        for seen in passes.observed.values():
            seen.pulled += seen.gradient
    if norms:
        kept = sorted(index for index, seen in observed.items() if seen.kept)
        # Where no answer of its own counts, the teacher's do, which the whole step is taken on.
        chosen = drawn(kept or sorted(set(trained) - own), ANSWERS_MAX, seed)
        bounded = _bound_step(adapted, start, passes, chosen, budget, progress, group)
    measured_v = batch_measurements(list(observed.values()))
    measurements = measured_v | _pass_measurements(sums, max(norms, default=0.0), bounded) | guards
    measurements["answers_told"] = float(len(items) - len(own))
    measurements["answers_anew"] = float(sum(item.sample.anew for item in items))
    gradients = {index: seen.pulled for index, seen in _observed_by_all(passes, group).items()}
    shares = gradient_shares(items, gradients)
    return StepOutcome(measurements, sample_outcomes([items[i] for i in sorted(own)], observed, shares))


def _passes(
    teacher: Teacher,
    trained: Mapping[int, BatchItem],
    count: int,
    recipe: Recipe,
    seed: int,
    budget: TokenBudget,
    progress: Progress,
    group: Group,
) -> GradientPass:
    """Passes over this process's share of the batch, with what teacher and base say of it."""
    indices = list(trained)
    share = shares([trained[i].sample.length for i in indices], group.size)[group.rank]
    own = {indices[at]: trained[indices[at]] for at in share}
    hinted = {i: item.teacher_prompt for i, item in own.items() if item.teacher_prompt}
    # The base is needed on every answer if the loss holds the policy near it, else on a few, to be measured.
    answered = [i for i in indices if not trained[i].sample.told]
    measured = answered if recipe.kl_beta > 0 else drawn(answered, BASE_ANSWERS_MAX, seed)
    plain = {i: own[i].sample.prompt_ids for i in measured if i in own}
    return GradientPass(
        teacher,
        own,
        states_after(teacher, own, hinted, budget, progress),
        states_after(Teacher(teacher.policy), own, plain, budget, progress),
        recipe,
        # N counts the whole batch, dropped samples included: what is left out takes no other sample's weight.
        normaliser=count * recipe.mean_answer_length,
    )


def _total_gradients(adapted: AdaptedNetwork, group: Group) -> None:
    if group.size == 1:
        return
    for parameter in adapted.parameters.values():
        own = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        parameter.grad = group.total(own)


def _observed_by_all(passes: GradientPass, group: Group) -> dict[int, Observation]:
    """What the first pass saw of each answer of the batch, by index; the states stay where they are."""
    own = {index: seen.without_states() for index, seen in passes.observed.items()}
    # In an order that does not depend on what was computed first.
    return dict(sorted((index, seen) for part in group.gather(own) for index, seen in part.items()))


def states_after(
    teacher: Teacher,
    items: Mapping[int, BatchItem],
    prompts: Mapping[int, Sequence[int]],
    budget: TokenBudget,
    progress: Progress,
) -> dict[int, Tensor]:
    """Of the teacher, without gradient, on exactly the sampled ids after the given prompts."""
    answers = [items[i].sample.answer_ids for i in prompts]
    with teacher.present() as network:
        states = frozen_states(
            network,
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
    chosen: Sequence[int],
    budget: TokenBudget,
    progress: Progress,
    group: Group,
) -> BoundedStep:
    """Shrinks the way from the batch's starting weights until KL(π_old ‖ π_new) of the chosen answers fits."""
    end = adapted.tensors()
    own = [(passes.items[i].sample, passes.observed[i]) for i in chosen if i in passes.items]
    attempt = 0
    stands_at = 1.0

    def stand_at(scale: float) -> None:
        nonlocal stands_at
        if scale != stands_at:
            between = {name: old + scale * (end[name] - old) for name, old in start.items()}
            adapted.set_tensors(between if scale < 1 else end)
            stands_at = scale

    def tick() -> None:
        # Where one is stopped, none goes on into a pass that all take together.
        adapted.network.layout.sharing.apart(lambda: progress("step_bound", attempt, 0, 0.0))

    def measure_own(scale: float) -> float:
        nonlocal attempt
        tick()
        attempt += 1
        stand_at(scale)
        return _step_kl(adapted, own, budget, progress)

    def measure_at(scale: float) -> float:
        return sum(group.gather(group.apart(lambda: measure_own(scale)))) / max(1, len(chosen))

    def own_covariance() -> float:
        parts: list[Tensor] = []
        for scale in (*PLACES, 1.0):
            tick()
            stand_at(scale)
            parts.append(_states_now(adapted, own, budget, progress))
        return _kl_without_rounding(adapted.network, own, parts)

    def covariance() -> float:
        return sum(group.gather(group.apart(own_covariance))) / max(1, len(chosen))

    bound = passes.recipe.step_bound
    rounds = adapted.network.rounds
    bounded = fit_without_rounding(measure_at, covariance, bound) if rounds else shrink_to_fit(measure_at, bound)
    stand_at(bounded.scale)
    if not math.isfinite(bounded.kl):
        raise StepNotFiniteError("the divergence of the step")
    return bounded


@torch.no_grad()
def _step_kl(
    adapted: AdaptedNetwork,
    answers: Sequence[tuple[Sample, Observation]],
    budget: TokenBudget,
    progress: Progress,
) -> float:
    """KL(π_old ‖ π_new) over the whole vocabulary at T = 1, summed over the answers' tokens."""
    network = adapted.network
    new = _states_now(adapted, answers, budget, progress)
    old = _old_states(answers)
    total = 0.0
    for part in network.chunks(len(new)):
        before = network.log_probabilities(old[part])
        after = network.log_probabilities(new[part])
        total += float(reverse_kl(before, after).sum())
    return total


@torch.no_grad()
def _kl_without_rounding(
    network: ChunkedNetwork, answers: Sequence[tuple[Sample, Observation]], later: Sequence[Tensor]
) -> float:
    """Summed over the answers' tokens; `later`: states at the two places and at the end of the step."""
    old = _old_states(answers)
    total = 0.0
    for part in network.chunks(len(later[0])):
        after_start, before_end, end = (network.log_probabilities(states[part]) for states in later)
        start = network.log_probabilities(old[part])
        total += float(kl_without_rounding(start, after_start, before_end, end).sum())
    return total


def _old_states(answers: Sequence[tuple[Sample, Observation]]) -> Tensor:
    """[tokens, hidden]"""
    return torch.cat([seen.states for _, seen in answers]) if answers else torch.empty(0)


def _states_now(
    adapted: AdaptedNetwork, answers: Sequence[tuple[Sample, Observation]], budget: TokenBudget, progress: Progress
) -> Tensor:
    """Of the weights as they stand: [tokens, hidden]; nothing of no answer."""
    states = frozen_states(
        adapted.network,
        [sample.prompt_ids for sample, _ in answers],
        [sample.answer_ids for sample, _ in answers],
        budget,
        lambda number, count: progress("step_bound", number, count, 0.0),
    )
    return torch.cat(states) if states else torch.empty(0)


def _pass_measurements(sums: PassSums, norm: float, bounded: BoundedStep) -> dict[str, float]:
    """Losses before their weights, ρ and the clip at the last optimiser step; the norm is the largest of all steps."""
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
