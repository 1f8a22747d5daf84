"""Calls as Hermes, Qwen2.5 and Qwen3 write them, one or several: `{"name": …, "arguments": {…}}` on a line between
`<tool_call>` and `</tool_call>`.
"""

from backtalk_worker.model.answers.marked import MarkedCalls
from backtalk_worker.model.answers.values import Call, Value, call_in

OPENING = "<tool_call>"
CLOSING = "</tool_call>"


class HermesCalls(MarkedCalls):
    """Reads one answer."""

    def __init__(self) -> None:
        super().__init__(OPENING, _Body, cuts_line=True)


class _Body:
    """An object and the closing tag. The tag may be missing at the end of the answer."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._value: Value | None = None
        self._is_whole = False
        self._closed = ""
        """How much of the closing tag is there."""

    def add(self, text: str) -> str | None:
        if self._value is None:
            text = text.lstrip()
            if not text:
                return None
            if not text.startswith("{"):
                return text
            self._value = Value()
        if not self._is_whole:
            rest = self._value.add(text)
            if self._value.has_failed:
                return rest or ""
            if rest is None:
                return None
            self._is_whole, text = True, rest
        return self._close(text)

    def _close(self, text: str) -> str | None:
        text = self._closed + (text if self._closed else text.lstrip())
        if text.startswith(CLOSING):
            self.end()
            return text.removeprefix(CLOSING)
        self._closed = text
        return None if CLOSING.startswith(text) else text

    def end(self) -> None:
        if self._is_whole and self._value is not None:
            call = call_in(self._value.read(), "arguments")
            self.calls = [] if call is None else [call]
