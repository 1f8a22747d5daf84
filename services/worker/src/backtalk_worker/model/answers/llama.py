"""Calls as Llama 3.1 and 3.2 write them: the whole answer is `{"name": …, "parameters": {…}}`, `<|python_tag|>` may
stand before it, and `;` between several.
"""

from backtalk_worker.model.answers.values import Call, Value, call_in

TAG = "<|python_tag|>"
CLOSING_SPACE = " \t\r\n;"


class LlamaCalls:
    """Reads one answer. From the first thing on that is no call, all of it is text."""

    def __init__(self) -> None:
        self._raw: list[str] = []
        """What stands behind the last call."""
        self._value: Value | None = None
        self._begun = ""
        """What may begin the tag."""
        self._is_plain = False
        self._has_calls = False

    def add(self, text: str) -> list[str | Call]:
        pieces: list[str | Call] = []
        while text and not self._is_plain:
            text = self._between(text, pieces) if self._value is None else self._inside(self._value, text, pieces)
        return [*pieces, text] if text else pieces

    def end(self) -> list[str | Call]:
        raw, self._raw = "".join(self._raw), []
        is_text = raw and not (self._has_calls and self._value is None and not raw.strip(CLOSING_SPACE))
        return [raw] if is_text else []

    def _between(self, text: str, pieces: list[str | Call]) -> str:
        """Before a call: white space, the tag before the first, a semicolon between two."""
        self._raw.append(text)
        text = self._begun + (text if self._begun else text.lstrip(CLOSING_SPACE if self._has_calls else None))
        self._begun = ""
        if not self._has_calls:
            if TAG.startswith(text):
                self._begun = text if text != TAG else ""
                return ""
            text = text.removeprefix(TAG).lstrip()
        if text.startswith("{"):
            self._value = Value()
            self._raw = ["".join(self._raw).removesuffix(text)]
            return text
        if text:
            self._turn_plain(pieces)
        return ""

    def _inside(self, value: Value, text: str, pieces: list[str | Call]) -> str:
        rest = value.add(text)
        self._raw.append(text if rest is None else text.removesuffix(rest))
        if value.has_failed:
            self._turn_plain(pieces)
            return rest or ""
        if rest is None:
            return ""
        self._value = None
        call = call_in(value.read(), "parameters", "arguments")
        if call is None:
            self._turn_plain(pieces)
        else:
            pieces.append(call)
            self._raw, self._has_calls = [], True
        return rest

    def _turn_plain(self, pieces: list[str | Call]) -> None:
        pieces.append("".join(self._raw))
        self._raw, self._is_plain = [], True
