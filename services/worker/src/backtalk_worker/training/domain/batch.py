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
    given = (sample.teacher_prompt_ids, *sample.other_teacher_prompts) if recipe.term_weights[1] else ()
    prompts = [(at, prompt) for at, prompt in enumerate(given) if prompt]
    answer = recipe.max_answer_tokens if sample.shown else len(sample.answer_ids)
    # Where the first has no room, or no words, another may have: what is chosen among them is chosen later.
    fitting = next(((at, prompt) for at, prompt in prompts if len(prompt) + answer <= max_context), None)
    if fitting is not None:
        return BatchItem(sample, "", trained=True, teacher_prompt=fitting[1], hint_chosen=fitting[0])
    if sample.shown:
        return BatchItem(sample, "too_long" if prompts else "untaught", trained=False)
    return BatchItem(sample, "too_long" if prompts else "", trained=True)
