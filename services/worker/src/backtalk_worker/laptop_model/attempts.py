"""What the model that is trained makes of wishes by itself, and which of its answers are to be preferred.

In: the plain model, the model so far, questions. Out: for each row an answer of the model's own that obeys its wishes
and tells much of its question, and one that does not, each with the log probability that it had.
"""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from backtalk_worker.laptop_model.answers import Answered
from backtalk_worker.laptop_model.kinds import obeys_all
from backtalk_worker.laptop_model.rows import Row, told_rows
from backtalk_worker.laptop_model.sampling import Drawn, Say, draw_all
from backtalk_worker.laptop_model.telling import OTHERS, Telling, telling
from backtalk_worker.model.load import LoadedModel

ATTEMPTS = 4
"""Answers to each row."""
TEMPERATURE = 0.8
TOKENS_MAX = 56
AT_ONCE = 32
"""Rows that are answered together."""
TELLS = 0.6
"""Nats a token from which an answer tells something of its question."""
LESS = 0.6
"""Of the nats that the best tells: one that obeys and tells no more than this share is worse."""


@dataclass(frozen=True)
class Attempted:
    """A row with what came of it."""

    row: Row
    good: Drawn | None = None
    """Obeys, and tells most; None where no attempt did both."""
    bad: Drawn | None = None
    """Does not obey, or tells nothing, or much less."""


def attempt_all(
    plain: LoadedModel, model: LoadedModel, answers: Sequence[Answered], seed: int, say: Say
) -> list[list[Attempted]]:
    """The attempts at the rows of each question."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    groups = [rows for one in answers if (rows := told_rows(one, rng))]
    prompts = [prompt_of(model, row) for rows in groups for row in rows]
    drawn = iter(draw_all(model, prompts, ATTEMPTS, AT_ONCE, TEMPERATURE, TOKENS_MAX, say))
    made: list[list[Attempted]] = []
    for rows in groups:
        others = [one.question for one in answers if one.question != rows[0].question]
        others = rng.sample(others, min(OTHERS, len(others)))
        tries = [(row, next(drawn)) for row in rows]
        obeying = {one.text for row, tried in tries for one in tried if _obeys(row, one)}
        texts = sorted(obeying)
        scores = telling(plain, rows[0].question, others, texts) if texts else []
        made.append([preferred(row, tried, dict(zip(texts, scores, strict=True)), rng) for row, tried in tries])
        say(f"weighed the attempts at {len(made)} of {len(groups)} questions")
    return made


def prompt_of(model: LoadedModel, row: Row) -> list[int]:
    """As training shows it."""
    system = [{"role": "system", "content": row.system}] if row.system else []
    return model.render_chat([*system, {"role": "user", "content": row.user}])


def _obeys(row: Row, one: Drawn) -> bool:
    return one.ended and obeys_all(dict(zip(row.kinds, row.values, strict=True)), one.text)


def preferred(row: Row, tried: Sequence[Drawn], tells: Mapping[str, Telling], rng: random.Random) -> Attempted:
    """The best of a row's answers, and one of those that are worse; `tells` has what each that obeys tells."""
    told = {one.text: tells[one.text] for one in tried if _obeys(row, one) and tells[one.text].a_token >= TELLS}
    most = max((one.nats for one in told.values()), default=0.0)
    good = next((one for one in tried if one.text in told and told[one.text].nats == most), None)
    worse = [one for one in tried if one.text not in told or told[one.text].nats <= LESS * most]
    return Attempted(row, good, rng.choice(worse) if worse else None)


def write_attempts(groups: Sequence[Sequence[Attempted]], path: Path) -> None:
    """A line a question."""
    lines = (json.dumps([asdict(one) for one in group], ensure_ascii=False) + "\n" for group in groups)
    path.write_text("".join(lines), "utf-8")


def read_attempts(path: Path) -> list[list[Attempted]]:
    """What was written. ValueError names a file that holds something else."""
    try:
        return [[_read(one) for one in json.loads(line)] for line in path.read_text("utf-8").splitlines()]
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{path} holds no attempts: make them by the command attempts") from error


def _read(one: Mapping[str, Any]) -> Attempted:
    row: dict[str, Any] = {**one["row"]}
    row |= {name: tuple(row[name]) for name in ("kinds", "values")}
    good, bad = (None if one[name] is None else Drawn(**one[name]) for name in ("good", "bad"))
    return Attempted(Row(**row), good, bad)
