"""What one answer tells, in the words of the dialect: content, `reasoning` and `tool_calls`, whole or as deltas.

A call is told once it is whole: first its name with index and id, then its arguments.
"""

import secrets
import string

from backtalk_worker.engine.inputs.answer import Json
from backtalk_worker.model.answers.reading import AnswerReader
from backtalk_worker.model.answers.thoughts import Thought
from backtalk_worker.model.answers.values import Call

ARGUMENTS_CHARACTERS = 1_024
"""Of arguments in one frame."""
SHORT_ID = string.ascii_letters + string.digits


class Told:
    """One row's."""

    def __init__(self, reader: AnswerReader, has_short_ids: bool) -> None:
        self._reader = reader
        self._has_short_ids = has_short_ids
        self._content: list[str] = []
        self._thoughts: list[str] = []
        self._deltas: list[Json] = []
        """Of the newest token."""
        self.calls: list[Json] = []

    def take(self, text: str, *, is_last: bool) -> None:
        """What a token adds to the text."""
        pieces = self._reader.add(text)
        if is_last:
            pieces += self._reader.end()
        self._deltas = []
        for piece in pieces:
            if isinstance(piece, Call):
                self._call(piece)
            elif isinstance(piece, Thought):
                self._thoughts.append(piece.text)
                self._deltas.append({"reasoning": piece.text})
            elif self._deltas and self._deltas[-1].get("content") is not None:
                self._content.append(piece)
                self._deltas[-1]["content"] += piece
            else:
                self._content.append(piece)
                self._deltas.append({"content": piece})

    def _call(self, call: Call) -> None:
        name, words = call.name, call.arguments
        index = len(self.calls)
        own_id = f"chatcmpl-tool-{secrets.token_hex(8)}"
        if self._has_short_ids:
            own_id = "".join(secrets.choice(SHORT_ID) for _ in range(9))
        self.calls.append({"id": own_id, "type": "function", "function": {"name": name, "arguments": words}})
        named = {"id": own_id, "type": "function", "index": index, "function": {"name": name, "arguments": ""}}
        parts = [words[at : at + ARGUMENTS_CHARACTERS] for at in range(0, len(words), ARGUMENTS_CHARACTERS)]
        rest = [{"index": index, "function": {"arguments": part}} for part in parts]
        self._deltas += [{"content": None, "tool_calls": [each]} for each in (named, *rest)]

    def deltas(self, *, is_last: bool) -> list[Json]:
        """Of the newest token, one or more; the last one of an answer holds no call."""
        ends = not self._deltas or (is_last and "tool_calls" in self._deltas[-1])
        return [*self._deltas, {}] if ends else self._deltas

    def message(self) -> Json:
        """The fields of a whole message."""
        content, thoughts = "".join(self._content), "".join(self._thoughts)
        told: Json = {"content": content or (None if self.calls or thoughts else "")}
        if self.calls:
            told["tool_calls"] = self.calls
        return {**told, "reasoning": thoughts or None}
