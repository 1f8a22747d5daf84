"""The questions of the list, and what the plain model says to each, which rules turn into targets."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Answered:
    """A question with what the plain model says to it."""

    question: str
    sentences: list[str]
    """Of several of its answers, those that say most of this question and of no other, best first."""
    drawn: list[str]
    """Answers at temperature 1: what rows without a wish are measured on."""


def read_questions(path: Path = FOLDER / "questions.txt") -> list[str]:
    """Each pattern of the file filled with each of its words, without repeats."""
    lines = [line for line in path.read_text("utf-8").splitlines() if line.strip() and not line.startswith("#")]
    made = [
        pattern.strip().replace("{}", words.strip())
        for pattern, _, listed in (line.rpartition(" : ") for line in lines)
        for words in listed.split(";")
    ]
    return list(dict.fromkeys(made))


def read_answers(path: Path = FOLDER / "answers.jsonl") -> list[Answered]:
    """The answers that lie in the tree, or those of another file."""
    return [Answered(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]


def write_answers(answers: Sequence[Answered], path: Path) -> None:
    """A line each."""
    path.write_text("".join(json.dumps(asdict(one), ensure_ascii=False) + "\n" for one in answers), "utf-8")
