"""Makes the rows to train on: questions with wishes and targets by rules, and questions without a wish.

In: the base's own answers, a seed. Out: rows, the same for the same input on every machine.
A question is given many wishes, alone and several at once, so that what differs between its rows is the wish alone.
"""

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backtalk_worker.laptop_model.answers import Answered
from backtalk_worker.laptop_model.kinds import BY_NAME, KINDS, NUMBERS, made_for

FOLDER = Path(__file__).parent
WORDINGS: Mapping[str, Any] = json.loads((FOLDER / "wordings.json").read_text("utf-8"))
PHRASES: Mapping[str, Any] = json.loads((FOLDER / "phrases.json").read_text("utf-8"))

SEED = 1
"""Of what is kept for checking."""
ORDER = 99
CHECKED = 60
"""Questions that are kept out of the rows with a wish."""
FIRST = 398
"""Of the list's first questions those to check are drawn, so that one run keeps out what the next does."""
UNTOLD = 8
"""Rows without a wish beside those of a question."""
UNTOLD_OWN = 2
ALONE = 5
"""Rows of a question with one wish, each of another kind."""
SEVERAL = 8
"""Rows of a question with wishes of several kinds at once: more than with one, for a person's lessons add up."""
REPEATED = 1
"""Rows of a question with one wish in several wordings, as a person repeats what was not followed."""
TRIES = 40
"""Not every rule goes with every other, nor with every answer: so many combinations are tried for a row."""
DRAWN_FROM = 6
"""Of a question's best sentences so many are drawn from, so that no row is learned by heart."""
ALONE_FROM = 3
"""Where one sentence has to do: it must be one that tells most."""
TYPO_SHARE = 0.06
BLANK_LINE_SHARE = 0.75


@dataclass(frozen=True)
class Row:
    """One example. `target` is None where there is no wish: there the plain model itself is the target."""

    kinds: tuple[str, ...]
    values: tuple[str, ...]
    question: str
    wish: str
    system: str
    user: str
    answer: str
    """What is trained on: made by rules, or the base's own words."""


def questions_to_train(answers: Sequence[Answered]) -> list[Answered]:
    """Those that are not to check, in one order for every seed: rounds of training take parts of it."""
    checked = set(questions_to_check(answers))
    trained = [one for one in answers if one.question not in checked]
    return random.Random(ORDER).sample(trained, len(trained))


def questions_to_check(answers: Sequence[Answered]) -> list[str]:
    """Those that no row with a wish is made of, whatever the seed of the rows."""
    first = list(answers)[:FIRST]
    ordered = random.Random(SEED).sample(first, len(first))
    return [one.question for one in ordered[len(ordered) - CHECKED :]]


def told_rows(one: Answered, rng: random.Random) -> list[Row]:
    """A question's rows with wishes."""
    alone = [told_row(one, [kind.name], "train", rng) for kind in rng.sample(KINDS, ALONE)]
    several = [several_row(one, "train", rng) for _ in range(SEVERAL)]
    repeated = [_repeated(one, "train", rng) for _ in range(REPEATED)]
    return [row for row in (*alone, *several, *repeated) if row is not None]


def untold_rows(one: Answered, others: Sequence[Answered], rng: random.Random) -> list[Row]:
    """Rows without a wish beside a question's: some of its own, the rest of other questions."""
    chosen = (*[one] * UNTOLD_OWN, *rng.sample(list(others), UNTOLD - UNTOLD_OWN))
    return [untold_row(own, "train", rng) for own in chosen]


def told_row(one: Answered, names: Sequence[str], split: str, rng: random.Random, *, wordings: int = 1) -> Row | None:
    """A question, wishes of the named kinds, and the answer that obeys them all; None where no rule can make it."""
    values = {name: value_of(name, split, rng) for name in names}
    alone = any(BY_NAME[name].slot == "length" for name in names)
    answer = made_for(values, one.sentences[: ALONE_FROM if alone else DRAWN_FROM], rng)
    if answer is None:
        return None
    wishes = [wording(name, values[name], split, rng) for name in names for _ in range(wordings)]
    # Mostly as the trainer shows several: a blank line apart.
    wish = ("\n\n" if rng.random() < BLANK_LINE_SHARE else "\n").join(wishes)
    system, user = _placed(one.question, wish, rng, several=len(wishes) > 1)
    return Row(tuple(names), tuple(values.values()), one.question, wish, system, user, answer)


def untold_row(one: Answered, split: str, rng: random.Random) -> Row:
    """A question as it is, or with a remark that asks for nothing, where a wish would stand."""
    remark = rng.choice(PHRASES["plain"][split]) if rng.random() < 0.35 else ""
    system, user = _placed(one.question, remark, rng, several=False) if remark else ("", one.question)
    return Row((), (), one.question, "", "" if remark and remark in system else system, user, rng.choice(one.drawn))


def wording(name: str, value: str, split: str, rng: random.Random) -> str:
    """One wish in somebody's words."""
    listed = WORDINGS[name]
    if split == "train":
        text = (
            _wrapped(rng.choice(listed["imperative"]), split, rng)
            if rng.random() < 0.25
            else rng.choice(listed["free"])
        )
    else:
        text = (
            rng.choice(listed["check"])
            if rng.random() < 0.8
            else _wrapped(rng.choice(listed["imperative"]), split, rng)
        )
    return _filled(_roughened(text, rng), name, value, rng)


def _wrapped(imperative: str, split: str, rng: random.Random) -> str:
    pattern = rng.choice(WORDINGS["wrappers"][split])
    return pattern.replace("{w}", imperative).replace("{W}", imperative[0].upper() + imperative[1:])


def _roughened(text: str, rng: random.Random) -> str:
    """As people type: small letters, no full stop, two letters swapped."""
    if rng.random() < 0.25:
        text = re.sub(r"[A-Z](?!\})", lambda found: found.group().lower(), text)
    if rng.random() < 0.25:
        text = text.rstrip(".")
    return _misspelt(text, rng) if rng.random() < TYPO_SHARE else text


def _misspelt(text: str, rng: random.Random) -> str:
    places = [found.start() for found in re.finditer(r"(?<=[a-z])[a-z]{2}(?=[a-z])(?![^{]*\})", text)]
    if not places:
        return text
    at = rng.choice(places)
    return text[:at] + text[at + 1] + text[at] + text[at + 2 :]


def _filled(text: str, name: str, value: str, rng: random.Random) -> str:
    if name == "words":
        number = int(value)
        spelled = number < len(NUMBERS) - 1 and rng.random() < 0.35
        shown, above = (NUMBERS[number], NUMBERS[number + 1]) if spelled else (str(number), str(number + 1))
        return text.replace("{n}", shown).replace("{m}", above)
    return text.replace("{p}", value)


def value_of(name: str, split: str, rng: random.Random) -> str:
    """A number or a phrase for a wish; empty where its kind needs none."""
    if name == "words":
        return str(rng.choice([5, 6, 7, 8, 8, 9, 10, 10, 12, 15]))
    if name == "question":
        return str(rng.choice(PHRASES["closing_question"][split]))
    phrases = "emoji" if name == "emoji_first" else name
    return str(rng.choice(PHRASES[phrases][split])) if phrases in PHRASES else ""


def several_row(one: Answered, split: str, rng: random.Random) -> Row | None:
    """Two to four kinds that go together."""
    count = rng.choice([2, 2, 2, 3, 3, 3, 4, 4])
    tried = (told_row(one, chosen, split, rng) for chosen in _combinations(count, rng))
    return next((row for row in tried if row is not None), None)


def _combinations(count: int, rng: random.Random) -> Iterator[list[str]]:
    """One kind is in each of them, so that those that go with few others come as often as the rest."""
    first = rng.choice(KINDS)
    others = [kind for kind in KINDS if kind is not first]
    for _ in range(TRIES):
        chosen = rng.sample([first, *rng.sample(others, count - 1)], count)
        if len({kind.slot for kind in chosen}) == count:
            yield [kind.name for kind in chosen]


def _repeated(one: Answered, split: str, rng: random.Random) -> Row | None:
    return told_row(one, [rng.choice(KINDS).name], split, rng, wordings=rng.choice([2, 2, 3, 4]))


def _placed(question: str, wish: str, rng: random.Random, *, several: bool) -> tuple[str, str]:
    """System and user message: mostly where the trainer shows hints, after a blank line."""
    drawn = rng.random()
    if drawn < (0.9 if several else 0.7):
        return "", f"{question}\n\n{wish}"
    if several:
        return wish, question
    if drawn < 0.82:
        return "", f"{question} {wish}"
    if drawn < 0.9:
        return "", f"{wish} {question}" if wish[-1] in ".!?" else f"{wish}. {question}"
    return rng.choice(["", "You are a helpful assistant. "]) + wish, question
