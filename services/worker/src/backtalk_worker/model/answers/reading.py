"""Which calls and thoughts a model writes, and how its answers are read.

A template writes the calls of a history as its model does, so the format is the one that reads a call in a rendered
history back. ARCHITECTURE.md says what was found of transformers' `ResponseParser`.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from os.path import commonprefix
from typing import Any

from transformers import PreTrainedTokenizerBase

from backtalk_worker.model.answers import hermes, llama, mistral, thoughts
from backtalk_worker.model.answers.thoughts import Thought, Thoughts
from backtalk_worker.model.answers.values import Call, CallReader

QUESTION = {"role": "user", "content": "q"}
CALLED = Call("probe", '{"of": "x"}')
TOOL = {
    "type": "function",
    "function": {
        "name": CALLED.name,
        "description": "d",
        "parameters": {"type": "object", "properties": {"of": {"type": "string", "description": "d"}}},
    },
}


@dataclass(frozen=True, slots=True)
class CallFormat:
    """One way to write calls."""

    name: str
    shown: str
    """How it looks, in short."""
    reader: Callable[[], CallReader]
    markers: tuple[str, ...]
    """Read even where they are special tokens, which answers leave out otherwise."""
    has_short_ids: bool = False
    """Templates take ids of nine letters and digits only."""


FORMATS = (
    CallFormat("hermes", hermes.OPENING, hermes.HermesCalls, (hermes.OPENING, hermes.CLOSING)),
    CallFormat("mistral", mistral.OPENING, mistral.MistralCalls, (mistral.OPENING, mistral.ARGUMENTS), True),
    CallFormat("llama", '{"name": …, "parameters": …}', llama.LlamaCalls, (llama.TAG,)),
)


@dataclass(frozen=True, slots=True)
class AnswerFormat:
    """How the answers of one model are read."""

    calls: CallFormat | None
    has_thoughts: bool
    calls_max: int | None
    """The most calls of one answer that the template takes back; None = any."""
    reason: str
    """What was found, in one line."""

    @property
    def markers(self) -> frozenset[str]:
        marks = [*(self.calls.markers if self.calls else ()), thoughts.OPENING, thoughts.CLOSING]
        return frozenset(marks if self.has_thoughts else marks[:-2])

    def reader(self, are_thoughts_opened: bool, only_one_call: bool) -> "AnswerReader | None":
        """Of one answer; None where there is nothing to be read."""
        if self.calls is None and not self.has_thoughts:
            return None
        return AnswerReader(
            Thoughts(are_thoughts_opened) if self.has_thoughts else None,
            self.calls.reader() if self.calls else None,
            1 if only_one_call else self.calls_max,
        )


class AnswerReader:
    """One answer as it grows: text, thoughts, calls. What it gives does not depend on where pieces are cut."""

    def __init__(self, told: Thoughts | None, calls: CallReader | None, calls_max: int | None) -> None:
        self._thoughts = told
        self._calls = calls
        self._left = calls_max

    def add(self, text: str) -> list[str | Thought | Call]:
        """More of the answer → what is certain by now."""
        pieces = [text] if self._thoughts is None else self._thoughts.add(text)
        return self._read(pieces)

    def end(self) -> list[str | Thought | Call]:
        """The rest, once the answer has ended."""
        read = self._read([] if self._thoughts is None else self._thoughts.end())
        return read + self._counted([] if self._calls is None else self._calls.end())

    def _read(self, pieces: list[str] | list[str | Thought]) -> list[str | Thought | Call]:
        read: list[str | Thought | Call] = []
        for piece in pieces:
            if isinstance(piece, str) and self._calls is not None:
                read += self._counted(self._calls.add(piece))
            else:
                read.append(piece)
        return read

    def _counted(self, pieces: list[str | Call]) -> list[str | Thought | Call]:
        """Calls beyond the bound are left out, as vLLM leaves them out."""
        kept: list[str | Thought | Call] = []
        for piece in pieces:
            if isinstance(piece, Call) and self._left is not None:
                if self._left == 0:
                    continue
                self._left -= 1
            kept.append(piece)
        return kept


def answer_format(tokenizer: PreTrainedTokenizerBase) -> AnswerFormat:
    """What the model's template tells of its answers; asks nothing but the template."""
    has_thoughts = thoughts.CLOSING in _template_text(tokenizer)
    none = AnswerFormat(None, has_thoughts, None, "")
    if not (written := _written(tokenizer, [CALLED])):
        return _with_reason(none, "no calls: its template takes none back")
    known = next((form for form in FORMATS if any(CALLED in _read_once(form, text) for text in written)), None)
    if known is None:
        return _with_reason(none, "no calls: its template writes them in no format that is known here")
    only_one = not _written(tokenizer, [CALLED, CALLED])
    found = replace(none, calls=known, calls_max=1 if only_one else None)
    one = ", one an answer" if only_one else ""
    return _with_reason(found, f"calls as {known.name} (its template writes {known.shown}{one})")


def _with_reason(found: AnswerFormat, of_calls: str) -> AnswerFormat:
    named = f"thoughts (its template names {thoughts.CLOSING})" if found.has_thoughts else "no thoughts"
    return replace(found, reason=f"{of_calls}; {named}")


def _template_text(tokenizer: PreTrainedTokenizerBase) -> str:
    try:
        return str(tokenizer.get_chat_template(tools=[TOOL]))
    except ValueError:
        return ""


def _read_once(form: CallFormat, text: str) -> list[str | Call]:
    reader = form.reader()
    return [*reader.add(text), *reader.end()]


def _written(tokenizer: PreTrainedTokenizerBase, calls: list[Call]) -> list[str]:
    """An answer with these calls as the template writes it, behind what opens an answer and behind the question; empty
    where it writes none. What opens an answer may begin as a call does (`<think>`, `<tool_call>`)."""
    listed = [
        {"id": f"abcdefgh{at}", "type": "function", "function": {"name": c.name, "arguments": json.loads(c.arguments)}}
        for at, c in enumerate(calls)
    ]
    answer: dict[str, Any] = {"role": "assistant", "content": "", "tool_calls": listed}
    try:
        asked = [_render(tokenizer, [QUESTION], opens=opens) for opens in (True, False)]
        whole = _render(tokenizer, [QUESTION, answer], opens=False)
    except Exception:  # A template may raise whatever it likes.
        return []
    rests = [whole[len(commonprefix([prompt, whole])) :] for prompt in asked]  # noqa: RUF071
    texts = [rest.split(thoughts.CLOSING)[-1] for rest in rests]
    return [text for text in texts if text.count(CALLED.name) >= len(calls)]


def _render(tokenizer: PreTrainedTokenizerBase, messages: list[dict[str, Any]], *, opens: bool) -> str:
    return str(tokenizer.apply_chat_template(messages, tools=[TOOL], tokenize=False, add_generation_prompt=opens))
