"""Makes the rows that a curve is read against: answers cut to their first sentence, and answers to other questions.

In: answers. Out: answers, the same for the same input. The first shows what cutting alone would reach, the second is
the floor of any measure of relevance.
"""

import random
import re
from collections.abc import Sequence

from scoring.answer import Answer

# Tried once for each run of marks, however long it is.
SENTENCE_END = re.compile(r"(?<![.!?])[.!?]++[\"')\]*]*+(?=\s|$)")
LIST_NUMBER = re.compile(r"\d{1,2}\.")


def first_sentences(answers: Sequence[Answer]) -> list[Answer]:
    """Each answer up to its first sentence's end, which counts as its own end; without one it stays as it is."""
    return [_first_sentence(answer) for answer in answers]


def shuffled(answers: Sequence[Answer], seed: int) -> list[Answer]:
    """Every question gets the answers of another one; all answers are used once when each question has as many."""
    questions = list(dict.fromkeys(answer.question for answer in answers))
    order = questions[:]
    random.Random(seed).shuffle(order)
    # One round through all questions in random order: nobody keeps their own.
    giver = dict(zip(order, [*order[1:], order[0]], strict=True))
    by_question = {q: [answer for answer in answers if answer.question == q] for q in questions}
    taken = dict.fromkeys(questions, 0)
    moved: list[Answer] = []
    for answer in answers:
        given = by_question[giver[answer.question]]
        other = given[taken[answer.question] % len(given)]
        taken[answer.question] += 1
        moved.append(Answer(answer.question, other.text, other.ended))
    return moved


def _first_sentence(answer: Answer) -> Answer:
    for end in SENTENCE_END.finditer(answer.text):
        line = answer.text[answer.text.rfind("\n", 0, end.end()) + 1 : end.end()]
        if not LIST_NUMBER.fullmatch(line.strip()):
            return Answer(answer.question, answer.text[: end.end()].strip(), ended=True)
    return answer
