"""A batch ready for a step: each sample with its trained part, its teacher's prompt, and why something was left out.

In: samples, recipe, a way to render messages. Out: items in the order of the request. No forward pass happens here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from backtalk_worker.training.domain.hinting import with_hints
from backtalk_worker.training.domain.recipe import Recipe
from backtalk_worker.training.domain.sample import Dropped, Message, Sample, reason_to_drop

Render = Callable[[Sequence[Message], Sequence[Message]], list[int] | None]
"""Messages and tools → prompt ids; None when the template refuses them."""


@dataclass(frozen=True)
class BatchItem:
    """One sample of a batch."""

    sample: Sample
    dropped: Dropped
    """Empty, or why; `template_mismatch` and a teacher that is `too_long` take only the distillation term away."""
    trained: bool
    teacher_prompt: tuple[int, ...] = ()
    """The prompt with hints; empty = no distillation term."""


def prepare_batch(samples: Sequence[Sample], recipe: Recipe, max_context: int, render: Render) -> list[BatchItem]:
    """Applies every rule that needs no forward pass."""
    return [_prepare(sample.trained_part(recipe.max_answer_tokens), recipe, max_context, render) for sample in samples]


def _prepare(sample: Sample, recipe: Recipe, max_context: int, render: Render) -> BatchItem:
    reason = reason_to_drop(sample, recipe, max_context)
    if reason:
        return BatchItem(sample, reason, trained=False)
    if not sample.hints or not recipe.term_weights[1]:
        return BatchItem(sample, "", trained=True)
    teacher = _teacher_prompt(sample, recipe, render)
    if teacher is None:
        return BatchItem(sample, "template_mismatch", trained=True)
    if len(teacher) + len(sample.answer_ids) > max_context:
        return BatchItem(sample, "too_long", trained=True)
    return BatchItem(sample, "", trained=True, teacher_prompt=tuple(teacher))


def _teacher_prompt(sample: Sample, recipe: Recipe, render: Render) -> list[int] | None:
    """The prompt that the teacher sees, or None if this template can't be shown to give the captured prompt ids."""
    plain = render(sample.messages, sample.tools)
    if plain is None or tuple(plain) != sample.prompt_ids:
        return None
    shown = with_hints(sample.messages, sample.hints, recipe.hint_place, sample.human_message)
    return None if shown is None else render(shown, sample.tools)
