"""A batch ready for a step: each sample with its trained part, its teacher's prompt, and why something was left out.

No forward pass happens here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from backtalk_worker.training.domain.recipe import HintPlace, Recipe
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
    """The prompt that the teacher sees, or None if this template does not give the captured prompt ids."""
    plain = render(sample.messages, sample.tools)
    if plain is None or tuple(plain) != sample.prompt_ids:
        return None
    hinted = with_hints(sample.messages, sample.hints, recipe.hint_place, sample.human_message)
    return None if hinted is None else render(hinted, sample.tools)


def with_hints(
    messages: Sequence[Message], hints: Sequence[str], place: HintPlace, human_message: int
) -> list[dict[str, Any]] | None:
    """All hints as one text, a line each, after a blank line: at the end of the human or of the system message.

    `human_message` is the index of the last message that a human wrote; -1 means the last user message. Without a
    system message one is put first. None when there is no message to append to.
    """
    text = "\n".join(hint.strip() for hint in hints)
    changed = [dict(message) for message in messages]
    if place == "system":
        if changed and changed[0].get("role") in ("system", "developer"):
            changed[0]["content"] = _appended(changed[0].get("content"), text)
        else:
            changed.insert(0, {"role": "system", "content": text})
        return changed
    index = human_message if human_message >= 0 else _last_user_message(messages)
    if index is None or index >= len(changed):
        return None
    changed[index]["content"] = _appended(changed[index].get("content"), text)
    return changed


def _last_user_message(messages: Sequence[Message]) -> int | None:
    return next((i for i in reversed(range(len(messages))) if messages[i].get("role") == "user"), None)


def _appended(content: Any, text: str) -> Any:
    """Content is a string, or OpenAI's list of parts: then the last text part grows, or one is added."""
    if not isinstance(content, list):
        return f"{content}\n\n{text}" if content else text
    parts = [dict(part) for part in cast(list[dict[str, Any]], content)]
    for part in reversed(parts):
        if part.get("type") == "text":
            part["text"] = f"{part.get('text', '')}\n\n{text}"
            return parts
    return [*parts, {"type": "text", "text": text}]
