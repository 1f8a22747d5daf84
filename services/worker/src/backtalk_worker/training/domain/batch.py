"""A batch ready for a step: each sample with its trained part, its teacher's prompt, and why something was left out.

No forward pass happens here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from backtalk_worker.training.domain.recipe import Recipe
from backtalk_worker.training.domain.sample import Dropped, Sample, reason_to_drop


@dataclass(frozen=True)
class BatchItem:
    """One sample of a batch."""

    sample: Sample
    dropped: Dropped
    """Empty, or why; a teacher that is `too_long` takes only the distillation term away."""
    trained: bool
    teacher_prompt: tuple[int, ...] = ()
    """The prompt with hints; empty = no distillation term."""
    hint_chosen: int = 0
    """Which of the sample's prompts with hints that is: 0, or a place among the others, from 1."""


def prepare_batch(samples: Sequence[Sample], recipe: Recipe, max_context: int, vocabulary: int) -> list[BatchItem]:
    """Applies every rule that needs no forward pass."""
    return [_prepare(one.trained_part(recipe.max_answer_tokens), recipe, max_context, vocabulary) for one in samples]


def _prepare(sample: Sample, recipe: Recipe, max_context: int, vocabulary: int) -> BatchItem:
    reason = reason_to_drop(sample, recipe, max_context, vocabulary)
    if reason:
        return BatchItem(sample, reason, trained=False)
    teacher = sample.teacher_prompt_ids if recipe.term_weights[1] else ()
    answer = recipe.max_answer_tokens if sample.shown else len(sample.answer_ids)
    is_too_long = bool(teacher) and len(teacher) + answer > max_context
    if sample.shown and (is_too_long or not teacher):
        return BatchItem(sample, "too_long" if is_too_long else "untaught", trained=False)
    if is_too_long:
        return BatchItem(sample, "too_long", trained=True)
    return BatchItem(sample, "", trained=True, teacher_prompt=teacher)
