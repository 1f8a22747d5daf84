"""Answers that are given in the worker, before a step: the teacher's own, and the policy's where a turn has none.

*Told*, for the form `hybrid`: what the policy never says is not in its own answers. Where it is to begin with another
word, a step on its own answers moves the first place alone: all later ones come after a beginning that the teacher
would not have written. Each told answer is trained on after the plain prompt by the forward KL: over many of them, that
is the divergence of whole answers from the teacher (sequence-level distillation, Kim and Rush 2016; mixed with own
answers as in GKD, Agarwal et al. 2024).

*Own*, for turns that were answered with lessons shown: such an answer is not what the policy says to the plain prompt.
The policy gives one here, and where told answers are taken, that of the turn is one of them.

*Anew*, for taught turns whose answer the policy would hardly give any more, because it has learned since: a ratio so
small corrects nothing, but the question is as good as before.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from backtalk_worker.training.domain.batch import BatchItem
from backtalk_worker.training.domain.correction import bounded_log_ratio, sequence_is_off_policy
from backtalk_worker.training.domain.frozen_states import score_answers
from backtalk_worker.training.domain.network import ChunkedNetwork
from backtalk_worker.training.domain.recipe import Recipe
from backtalk_worker.training.domain.sampling import answers_within
from backtalk_worker.training.domain.step_bound import drawn
from backtalk_worker.training.domain.teacher import Teacher
from backtalk_worker.training.domain.token_budget import TokenBudget


@dataclass(frozen=True)
class Drawing:
    """What answers are drawn with; the same one gives the same answers for the same items."""

    teacher: Teacher
    recipe: Recipe
    context: int
    end_ids: Sequence[int]
    seed: int
    budget: TokenBudget
    tick: Callable[[], None]

    @property
    def policy(self) -> ChunkedNetwork:
        return self.teacher.policy.network

    def answers(
        self, network: ChunkedNetwork, prompts: Mapping[int, Sequence[int]], items: Sequence[BatchItem]
    ) -> dict[int, list[int]]:
        """The network's answer to each prompt at its item's temperature, by index of the item."""
        given = list(prompts.values())
        warmth = [items[i].sample.temperature for i in prompts]
        room = self.recipe.max_answer_tokens
        answers = answers_within(self.budget, network, given, warmth, self.end_ids, room, self.seed, self.tick)
        return dict(zip(prompts, answers, strict=True))


def drawn_items(drawing: Drawing, items: Sequence[BatchItem]) -> list[BatchItem]:
    """The items, each with an answer of the policy; behind them, in form `hybrid`, those that the teacher answers."""
    outdated = _outdated(drawing, items)
    asked = sorted({i for i, item in enumerate(items) if item.sample.shown and item.trained} | outdated)
    answers = drawing.answers(drawing.policy, {i: items[i].sample.prompt_ids for i in asked}, items)
    answered = [
        _answered(item, answers[i], anew=i in outdated) if i in answers else item for i, item in enumerate(items)
    ]
    return [*answered, *_told_items(drawing, items)]


def _outdated(drawing: Drawing, items: Sequence[BatchItem]) -> set[int]:
    """Taught items whose answer the policy would hardly give, as far as there is room for another."""
    recipe, context = drawing.recipe, drawing.context
    room = recipe.max_answer_tokens
    fitting = {
        i: item.sample
        for i, item in enumerate(items)
        if item.teacher_prompt
        and not item.sample.shown
        and len(item.teacher_prompt) + room <= context
        and len(item.sample.prompt_ids) + room <= min(recipe.max_tokens, context)
    }
    if recipe.off_policy == "drop" or not fitting:
        return set()
    scored = score_answers(
        drawing.policy,
        [sample.prompt_ids for sample in fitting.values()],
        [sample.answer_ids for sample in fitting.values()],
        [sample.temperature for sample in fitting.values()],
        drawing.budget,
        lambda _number, _count: drawing.tick(),
    )
    return {
        i
        for (i, sample), log_old in zip(fitting.items(), scored, strict=True)
        if sequence_is_off_policy(bounded_log_ratio(torch.tensor(log_old), torch.tensor(sample.logprobs)))
    }


def _told_items(drawing: Drawing, items: Sequence[BatchItem]) -> list[BatchItem]:
    """One for each turn that was answered with lessons shown, and others up to the recipe's share of the taught."""
    recipe = drawing.recipe
    if recipe.opd_form != "hybrid":
        return []
    room = recipe.max_answer_tokens
    taught = [
        i
        for i, item in enumerate(items)
        if item.teacher_prompt
        and len(item.teacher_prompt) + room <= drawing.context
        and len(item.sample.prompt_ids) + room <= min(recipe.max_tokens, drawing.context)
    ]
    given = [i for i in taught if items[i].sample.shown and items[i].sample.answer_ids]
    others = [i for i in taught if i not in given]
    wanted = max(0, math.ceil(recipe.told_share * len(taught)) - len(given))
    chosen = drawn(others, wanted, drawing.seed)
    with drawing.teacher.present() as network:
        answers = drawing.answers(network, {i: items[i].teacher_prompt for i in chosen}, items)
    known = {i: list(items[i].sample.answer_ids) for i in given} | answers
    return [_answered(items[i], known[i], told=True) for i in (*given, *chosen)]


def _answered(item: BatchItem, answer: Sequence[int], *, told: bool = False, anew: bool = False) -> BatchItem:
    sample = replace(
        item.sample,
        answer_ids=tuple(answer),
        logprobs=(0.0,) * len(answer),
        advantage=0.0,
        told=told,
        anew=anew,
    )
    return replace(item, sample=sample)
