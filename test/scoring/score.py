"""Scores a set of answers to held-out questions: each answer, and the means.

In: answers in the order of their questions, an embedder. Out: plain values. A question competes with the others of its
block of 32, in order of appearance, so sets that are to be compared hold the same questions in the same order.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from torch import Tensor

from scoring.answer import Answer
from scoring.embedding import Embedder
from scoring.one_answer import is_echo, is_empty, is_looping, without_copied_words, words
from scoring.rule import Rule

BLOCK = 32
NEAR_SHARE = 0.6


@dataclass(frozen=True)
class AnswerScore:
    """One answer."""

    obeys: bool
    hit: bool
    """Less the words copied from it, the answer ranks its own question first of its block."""
    headline: bool
    """Obeys and hit."""
    empty: bool
    looping: bool
    degenerate: bool
    """Empty or looping."""
    echo: bool
    near_identical: bool
    """Nearly the same words as the answer to another question."""
    relevance: float
    """Similarity of the whole answer to its question, −1 to 1."""
    words: int


def score_answers(answers: Sequence[Answer], obeys: Rule, embedder: Embedder) -> list[AnswerScore]:
    """One score for each answer, in order."""
    questions = list(dict.fromkeys(answer.question for answer in answers))
    place = {question: index for index, question in enumerate(questions)}
    asked = embedder.embed(questions)  # [questions, 384]
    told = embedder.embed([answer.text.strip() or "." for answer in answers])  # [answers, 384]
    own = embedder.embed([without_copied_words(answer) for answer in answers])  # [answers, 384]
    near = _near_identical(answers)
    scores: list[AnswerScore] = []
    for index, answer in enumerate(answers):
        question = place[answer.question]
        obedient, hit = obeys(answer), _ranks_first(own[index], asked, question)
        empty, looping = is_empty(answer.text), is_looping(answer.text)
        scores.append(
            AnswerScore(
                obeys=obedient,
                hit=hit,
                headline=obedient and hit,
                empty=empty,
                looping=looping,
                degenerate=empty or looping,
                echo=is_echo(answer),
                near_identical=near[index],
                relevance=float(asked[question] @ told[index]),
                words=len(answer.text.split()),
            )
        )
    return scores


def mean_scores(scores: Sequence[AnswerScore]) -> dict[str, float]:
    """The mean of every figure."""
    rows = [asdict(score) for score in scores]
    return {name: sum(float(row[name]) for row in rows) / len(rows) for name in rows[0]}


def _ranks_first(answer: Tensor, questions: Tensor, own: int) -> bool:
    """[384], [questions, 384]."""
    start = own // BLOCK * BLOCK
    return int((questions[start : start + BLOCK] @ answer).argmax()) == own - start


def _near_identical(answers: Sequence[Answer]) -> list[bool]:
    sets = [frozenset(words(answer.text)) for answer in answers]

    def near(i: int) -> bool:
        return any(
            len(sets[i] & sets[j]) >= NEAR_SHARE * len(sets[i] | sets[j])
            for j in range(len(answers))
            if answers[j].question != answers[i].question and sets[i] and sets[j]
        )

    return [near(i) for i in range(len(answers))]
