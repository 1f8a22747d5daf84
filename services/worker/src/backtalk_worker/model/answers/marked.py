"""Calls behind a marker that may stand anywhere in the text, as Hermes and Mistral have them.

White space alone beside calls is no text of the answer: it is the format's, and the template writes it again.
"""

from collections.abc import Callable
from typing import Protocol

from backtalk_worker.model.answers.values import Call


class Body(Protocol):
    """What follows a marker."""

    calls: list[Call]
    """Empty, once it is over, if it is no call."""

    def add(self, text: str) -> str | None:
        """More of it → None while it goes on, or the text behind it."""
        ...

    def end(self) -> None:
        """The answer has ended in it."""
        ...


class MarkedCalls:
    """Text with calls in it."""

    def __init__(self, marker: str, body: Callable[[], Body], cuts_line: bool) -> None:
        self._marker = marker
        self._new_body = body
        self._cuts_line = cuts_line
        """Whether one line break before a marker is the format's."""
        self._body: Body | None = None
        self._raw: list[str] = []
        """Of the body, as it was written."""
        self._begun = ""
        """The end of the text, while it may begin a marker."""
        self._spaces: list[str] = []
        """White space, while a call may follow it."""
        self._is_bare = True
        """Nothing but white space stands between here and the beginning, or the last call."""
        self._has_calls = False

    def add(self, text: str) -> list[str | Call]:
        pieces: list[str | Call] = []
        while text:
            text = self._outside(text, pieces) if self._body is None else self._inside(self._body, text, pieces)
        return pieces

    def end(self) -> list[str | Call]:
        pieces: list[str | Call] = []
        if self._body is not None:
            self._body.end()
            self._close(self._body, pieces)
        self._say(self._begun, pieces)
        if self._spaces and not (self._is_bare and self._has_calls):
            pieces.append("".join(self._spaces))
        return pieces

    def _outside(self, text: str, pieces: list[str | Call]) -> str:
        before, marker, after = (self._begun + text).partition(self._marker)
        self._begun = "" if marker else ending_that_begins(before, self._marker)
        self._say(before.removesuffix(self._begun), pieces)
        if marker:
            self._body, self._raw = self._new_body(), [marker]
        return after

    def _inside(self, body: Body, text: str, pieces: list[str | Call]) -> str:
        self._raw.append(text)
        rest = body.add(text)
        if rest is None:
            return ""
        if rest:
            # Some of it may have come earlier: a closing mark that was none.
            self._raw = ["".join(self._raw).removesuffix(rest)]
        self._close(body, pieces)
        return rest

    def _close(self, body: Body, pieces: list[str | Call]) -> None:
        self._body = None
        if body.calls:
            pieces.extend(body.calls)
            self._spaces, self._is_bare, self._has_calls = [], True, True
        else:
            self._say("".join(self._raw), pieces)

    def _say(self, text: str, pieces: list[str | Call]) -> None:
        if not text:
            return
        if self._is_bare and text.isspace():
            self._spaces.append(text)
            return
        text, self._spaces, self._is_bare = "".join(self._spaces) + text, [], False
        if self._cuts_line and text.endswith("\n"):
            text, self._spaces = text[:-1], ["\n"]
        if text:
            pieces.append(text)


def ending_that_begins(text: str, marker: str) -> str:
    """The longest end of a text that is the beginning of a marker."""
    longest = min(len(marker) - 1, len(text))
    return next((marker[:n] for n in range(longest, 0, -1) if text.endswith(marker[:n])), "")
