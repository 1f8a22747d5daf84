"""What the scorer is given: an answer, its question, and whether it ended by itself."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """One answer; `ended` is False when it was cut by length."""

    question: str
    text: str
    ended: bool
