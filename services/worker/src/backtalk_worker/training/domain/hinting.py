"""Puts hints into a conversation, as the teacher is shown them.

In: messages, hints, where they go. Out: new messages; the given ones are never changed.
"""

from collections.abc import Sequence
from typing import Any, cast

from backtalk_worker.training.domain.recipe import HintPlace
from backtalk_worker.training.domain.sample import Message


def with_hints(
    messages: Sequence[Message], hints: Sequence[str], place: HintPlace, human_message: int
) -> list[dict[str, Any]] | None:
    """All hints as one text, a line each, after a blank line: at the end of the human or of the system message.

    `human_message` is the index of the last message that a human wrote; -1 means the last user message. Without a
    system message one is put first. None when there is no message to append to.
    """
    text = "\n".join(hint.strip() for hint in hints)
    shown = [dict(message) for message in messages]
    if place == "system":
        if shown and shown[0].get("role") in ("system", "developer"):
            shown[0]["content"] = _appended(shown[0].get("content"), text)
        else:
            shown.insert(0, {"role": "system", "content": text})
        return shown
    index = human_message if human_message >= 0 else _last_user_message(messages)
    if index is None or index >= len(shown):
        return None
    shown[index]["content"] = _appended(shown[index].get("content"), text)
    return shown


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
