"""Answers that the teacher gives itself, for the form `hybrid`: what the policy never says is not in its own answers.

Where it is to begin with another word, a step on its own answers moves the first place alone: all later ones come after
a beginning that the teacher would not have written. Each told answer is trained on after the plain prompt by the
forward KL: over many of them, that is the divergence of whole answers from the teacher (sequence-level distillation,
Kim and Rush 2016; mixed with own answers as in GKD, Agarwal et al. 2024).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from backtalk_worker.training.domain.batch import BatchItem
from backtalk_worker.training.domain.network import ChunkedNetwork
from backtalk_worker.training.domain.recipe import Recipe
from backtalk_worker.training.domain.sampling import sample_answers
from backtalk_worker.training.domain.step_bound import drawn
from backtalk_worker.training.domain.token_budget import TokenBudget, micro_batches

TOLD_SHARE = 0.5
"""Of the answers that have a teacher: for so many of them it gives one itself."""

GENERATION_FACTOR = 8
"""A token keeps far less while an answer is made than while it is trained on."""


def told_items(
    network: ChunkedNetwork,
    items: Sequence[BatchItem],
    recipe: Recipe,
    context: int,
    end_ids: Sequence[int],
    seed: int,
    budget: TokenBudget,
    tick: Callable[[], None],
) -> list[BatchItem]:
    """One item for each turn that was drawn, the same for the same batch and seed; empty for the other forms."""
    if recipe.opd_form != "hybrid":
        return []
    room = recipe.max_answer_tokens
    hinted = [i for i, item in enumerate(items) if item.teacher_prompt and len(item.teacher_prompt) + room <= context]
    chosen = drawn(hinted, math.ceil(TOLD_SHARE * len(hinted)), seed)
    generator = torch.Generator().manual_seed(seed)

    def answered(tokens: int) -> dict[int, list[int]]:
        generator.manual_seed(seed)
        lengths = [len(items[i].teacher_prompt) + room for i in chosen]
        found: dict[int, list[int]] = {}
        for group in micro_batches(lengths, GENERATION_FACTOR * tokens):
            some = [chosen[place] for place in group]
            prompts = [items[i].teacher_prompt for i in some]
            temperatures = [items[i].sample.temperature for i in some]
            found |= zip(
                some, sample_answers(network, prompts, temperatures, end_ids, room, generator, tick), strict=True
            )
        return found

    with network.as_teacher(recipe.teacher):
        answers = budget.spend(answered)
    return [_told(items[i], answers[i]) for i in chosen]


def _told(item: BatchItem, answer: Sequence[int]) -> BatchItem:
    sample = replace(
        item.sample,
        answer_ids=tuple(answer),
        logprobs=(0.0,) * len(answer),
        advantage=0.0,
        told=True,
    )
    return replace(item, sample=sample)
