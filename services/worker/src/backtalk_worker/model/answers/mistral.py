"""Calls as Mistral writes them: `[TOOL_CALLS] [{"name": …, "arguments": {…}}, …]`, and later
`[TOOL_CALLS]name[ARGS]{…}` for each.
"""

import re
from typing import cast

from backtalk_worker.model.answers.marked import MarkedCalls
from backtalk_worker.model.answers.values import NAME_MAX, Call, Value, call_in, call_of

OPENING = "[TOOL_CALLS]"
ARGUMENTS = "[ARGS]"
SPACE_MAX = 32
NAME = re.compile(rf"([\w.-]{{1,{NAME_MAX}}})\s*(?:\[ARGS\]\s*)?")
BEGUN = re.compile(
    rf"[\w.-]{{0,{NAME_MAX}}}\s{{0,{SPACE_MAX}}}(?:\[(?:A(?:R(?:G(?:S(?:\]\s{{0,{SPACE_MAX}}})?)?)?)?)?)?"
)
"""All that may become a name."""


class MistralCalls(MarkedCalls):
    """Reads one answer."""

    def __init__(self) -> None:
        super().__init__(OPENING, _Body, cuts_line=False)


class _Body:
    """A list of calls, or a name with its arguments."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._before = ""
        self._value: Value | None = None

    def add(self, text: str) -> str | None:
        if self._value is None:
            self._before += text if self._before else text.lstrip()
            begun = BEGUN.match(self._before)
            at = 0 if begun is None or self._before.startswith("[") else begun.end()
            if at == len(self._before):
                return None
            self._before, text = self._before[:at], self._before[at:]
            if not (text.startswith("{") and NAME.fullmatch(self._before)) and not (text.startswith("[") and at == 0):
                return text
            self._value = Value()
        rest = self._value.add(text)
        if self._value.has_failed:
            return rest or ""
        if rest is not None:
            self.calls = self._calls(self._value.read())
        return rest

    def _calls(self, value: object) -> list[Call]:
        if named := NAME.fullmatch(self._before):
            call = call_of(named[1], value)
            return [] if call is None else [call]
        listed = cast(list[object], value) if isinstance(value, list) else []
        calls = [call_in(each, "arguments") for each in listed]
        return [] if None in calls else [call for call in calls if call is not None]

    def end(self) -> None:
        """What has no end is no call."""
