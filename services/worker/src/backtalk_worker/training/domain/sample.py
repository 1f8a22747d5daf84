"""A turn as a step sees it, and the rules by which one is left out before any forward pass."""

import math
from dataclasses import dataclass, replace
from typing import Literal

from backtalk_worker.training.domain.recipe import Recipe

Dropped = Literal[
    "", "empty", "unknown_ids", "too_long", "logprobs_invalid", "ratio_too_small", "stale", "untaught", "temperature"
]


@dataclass(frozen=True)
class Sample:
    """One answer with what trains it."""

    turn: str
    prompt_ids: tuple[int, ...]
    answer_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    """Of the sampling engine, at `temperature`, one for each answer id."""
    temperature: float
    advantage: float
    cut: bool
    teacher_prompt_ids: tuple[int, ...] = ()
    """The prompt with the hints in it; empty = no distillation term."""
    other_teacher_prompts: tuple[tuple[int, ...], ...] = ()
    """The same with other hints, of which one may be taken instead; an empty one stands for none."""
    told: bool = False
    """An answer of the teacher itself, which no engine sampled: no reward and no KL to the base is taken of it."""
    shown: bool = False
    """The turn was answered with lessons shown, so that its answer says nothing of the policy: the policy answers the
    plain prompt itself, here, before the step. The answer may be empty until then."""

    anew: bool = False
    """The policy would hardly give the turn's answer any more, and gave another one here, before the step."""

    @property
    def is_ours(self) -> bool:
        """No engine sampled the answer: it is of the weights that the step starts from, or of the teacher."""
        return self.told or self.shown or self.anew

    @property
    def length(self) -> int:
        """Tokens of a forward pass: the last answer token is predicted, never read."""
        return len(self.prompt_ids) + len(self.answer_ids) - 1

    def trained_part(self, max_answer_tokens: int) -> "Sample":
        """The same sample with only its first answer tokens."""
        n = max_answer_tokens
        return replace(self, answer_ids=self.answer_ids[:n], logprobs=self.logprobs[:n])


TEMPERATURE_MIN = 1e-5


def reason_to_drop(sample: Sample, recipe: Recipe, max_context: int, vocabulary: int) -> Dropped:
    """Why a whole sample can't be trained on, judged before any forward pass; `too_long` counts the trained part."""
    if not sample.prompt_ids or not (sample.answer_ids or sample.shown):
        return "empty"
    # Of another tokenizer: the ids that are known here would mean other words, too.
    others = (i for prompt in sample.other_teacher_prompts for i in prompt)
    if max((*sample.prompt_ids, *sample.answer_ids, *sample.teacher_prompt_ids, *others)) >= vocabulary:
        return "unknown_ids"
    # Engines round: a certain token may come out a hair above 0.
    valid = all(math.isfinite(value) and value <= 1e-3 for value in sample.logprobs)
    if len(sample.logprobs) != len(sample.answer_ids) or not valid:
        return "logprobs_invalid"
    # Engines answer greedily below it; a log-probability divided by less is no number.
    is_sampled = math.isfinite(sample.temperature) and sample.temperature >= TEMPERATURE_MIN
    if not is_sampled or not math.isfinite(sample.advantage):
        return "logprobs_invalid"
    most = min(recipe.max_tokens, max_context)
    if sample.shown:
        # The room for the answer that the policy gives.
        return "too_long" if len(sample.prompt_ids) + recipe.max_answer_tokens > most else ""
    return "too_long" if sample.length + 1 > most else ""
