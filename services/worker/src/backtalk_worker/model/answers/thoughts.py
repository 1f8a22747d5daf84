"""Thoughts between `<think>` and `</think>` at the beginning of an answer. The prompt may have opened them already.

Line breaks next to the tags are the format's: templates write them again.
"""

from dataclasses import dataclass
from enum import Enum

from backtalk_worker.model.answers.marked import ending_that_begins

OPENING = "<think>"
CLOSING = "</think>"


@dataclass(frozen=True, slots=True)
class Thought:
    """A piece of what the model thinks."""

    text: str


class _Place(Enum):
    BEFORE = 0
    OPENED = 1
    """In the thoughts, and nothing but line breaks yet."""
    INSIDE = 2
    CLOSED = 3
    """Behind them, and nothing but line breaks yet."""
    BEHIND = 4


class Thoughts:
    """Tells thoughts from what is said, for one answer."""

    def __init__(self, are_opened: bool) -> None:
        self._place = _Place.OPENED if are_opened else _Place.BEFORE
        self._held: list[str] = []
        """White space, or what may begin a tag."""

    def add(self, text: str) -> list[str | Thought]:
        pieces: list[str | Thought] = []
        while text:
            text = self._step(text, pieces)
        return pieces

    def end(self) -> list[str | Thought]:
        held, self._held = "".join(self._held), []
        if self._place is _Place.BEFORE:
            return [held] if held else []
        thought = held.rstrip("\n") if self._place is _Place.INSIDE else ""
        return [Thought(thought)] if thought else []

    def _step(self, text: str, pieces: list[str | Thought]) -> str:
        """Takes some of the text, and gives the rest."""
        if self._place is _Place.BEFORE:
            return self._begin(text, pieces)
        if self._place in (_Place.OPENED, _Place.CLOSED):
            text = text.lstrip("\n")
            if text:
                self._place = _Place.INSIDE if self._place is _Place.OPENED else _Place.BEHIND
            return text
        if self._place is _Place.INSIDE:
            return self._think(text, pieces)
        pieces.append(text)
        return ""

    def _begin(self, text: str, pieces: list[str | Thought]) -> str:
        if text.isspace():
            self._held.append(text)
            return ""
        # A tag that has begun is the last that is held.
        text = "".join(self._held) + text
        bare = text.lstrip()
        self._held = []
        if bare.startswith(OPENING):
            self._place = _Place.OPENED
            return bare.removeprefix(OPENING)
        if OPENING.startswith(bare):
            self._held = [text]
        else:
            self._place = _Place.BEHIND
            pieces.append(text)
        return ""

    def _think(self, text: str, pieces: list[str | Thought]) -> str:
        """Line breaks are held back, because a closing tag may follow them."""
        if not text.strip("\n"):
            self._held.append(text)
            return ""
        before, closing, after = ("".join(self._held) + text).partition(CLOSING)
        self._held = []
        if not closing:
            begun = ending_that_begins(before, CLOSING)
            said = before.removesuffix(begun).rstrip("\n")
            self._held = [before[len(said) :]] if len(said) < len(before) else []
            before = said
        before = before.rstrip("\n") if closing else before
        if before:
            pieces.append(Thought(before))
        if closing:
            self._place = _Place.CLOSED
        return after
