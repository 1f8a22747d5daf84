"""Calls as JSON: where a value ends while it is being written, and what it calls.

An answer may be any text. Each character is looked at once, nesting is bounded, and nothing here raises.
"""

import json
import re
from dataclasses import dataclass
from typing import Never, Protocol, cast

DEPTH_MAX = 100
"""Arguments that are nested deeper are no call: the reader of JSON would recurse as deep."""
NAME_MAX = 256
"""Characters of a tool's name."""
MARKS = re.compile(r'["\\{}\[\]]')


@dataclass(frozen=True, slots=True)
class Call:
    """One tool that the answer calls."""

    name: str
    arguments: str
    """A JSON object, written as chat templates write it."""


class CallReader(Protocol):
    """Reads one answer, piece by piece; what is no whole call stays the text that it is."""

    def add(self, text: str) -> list[str | Call]:
        """More of the answer → what is certain by now."""
        ...

    def end(self) -> list[str | Call]:
        """What was held back, once the answer has ended."""
        ...


class Value:
    """A JSON object or list that is being written. It begins with its bracket."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._depth = 0
        self._is_in_text = False
        self._is_escaped = False
        self.has_failed = False
        """It is nested too deep."""

    def add(self, text: str) -> str | None:
        """More of it → None while it goes on, or what follows it."""
        at = self._end_in(text)
        self._parts.append(text if at is None else text[:at])
        return None if at is None else text[at:]

    def _end_in(self, text: str) -> int | None:
        at = 0
        if self._is_escaped and text:
            at, self._is_escaped = 1, False
        while found := MARKS.search(text, at):
            mark, at = found[0], found.end()
            if mark == '"':
                self._is_in_text = not self._is_in_text
            elif self._is_in_text:
                if mark == "\\":
                    self._is_escaped = at == len(text)
                    at += 1
            elif mark in "{[":
                self._depth += 1
                self.has_failed = self.has_failed or self._depth > DEPTH_MAX
            elif mark in "}]":
                self._depth -= 1
                if self._depth == 0:
                    return at
        return None

    def read(self) -> object:
        """What it says once it has ended; None for what is no JSON."""
        if self.has_failed:
            return None
        try:
            return json.loads("".join(self._parts), parse_constant=_refuse)
        except (ValueError, RecursionError):
            return None


def _refuse(constant: str) -> Never:
    """NaN and the infinities are no JSON, though Python reads them."""
    raise ValueError(constant)


def call_in(value: object, *keys: str) -> Call | None:
    """The call that an object states, with its arguments under one of these keys."""
    if not isinstance(value, dict):
        return None
    fields = cast(dict[str, object], value)
    return call_of(fields.get("name"), next((fields[key] for key in keys if key in fields), None))


def call_of(name: object, arguments: object) -> Call | None:
    """A call, unless its name is none, its arguments are no object, or what they hold cannot be sent."""
    if not isinstance(name, str) or not 0 < len(name) <= NAME_MAX or not isinstance(arguments, dict):
        return None
    try:
        written = json.dumps(arguments, ensure_ascii=False, allow_nan=False)
        (name + written).encode()
    except (ValueError, RecursionError):
        return None
    return Call(name, written)
