"""`python test/bench/laptop_model.py --model DIR`: are wishes obeyed when they are shown, and only then.

In: a model's folder, wishes: the check split of the tree, or a file of another hand (`--wishes`):
`{"kinds": [{"kind", "check": {"violates_if"}, "wordings_plain", "wordings_own"}], "questions"}`.
Out: a line of JSON for each kind, then one for answers without a wish. *hit*: the answer finds its question among 32.
PYTHONPATH holds `test` and `services/worker/src`.
"""

import argparse
import json
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from backtalk_worker.laptop_model.answers import read_answers
from backtalk_worker.laptop_model.kinds import KINDS, obeys_all
from backtalk_worker.laptop_model.rows import questions_to_check, several_row, value_of, wording
from backtalk_worker.laptop_model.sampling import answer_all
from backtalk_worker.model.load import LoadedModel, load_model

from scoring.answer import Answer
from scoring.embedding import Embedder
from scoring.rule import obeys_by
from scoring.score import score_answers

TOKENS_MAX = 48
Obeys = Callable[[str], bool]


@dataclass(frozen=True)
class Asked:
    """A question, the wish shown with it, and the rule that says whether an answer obeys."""

    kind: str
    question: str
    wish: str
    obeys: Obeys


def own_wishes(count: int, seed: int) -> list[Asked]:
    """Wordings and phrases that training never sees, on questions that it never sees."""
    rng = random.Random(seed)
    asked: list[Asked] = []
    for kind in KINDS:
        for question in rng.sample(questions_to_check(read_answers()), count):
            value = value_of(kind.name, "check", rng)
            wish = wording(kind.name, value, "check", rng)
            asked.append(Asked(kind.name, question, wish, lambda text, k=kind, v=value: k.check(text, v)))
    return asked


def wishes_at_once(count: int, seed: int) -> list[Asked]:
    """Two to four wishes of different kinds, in wordings and on questions that training never sees."""
    rng = random.Random(seed)
    checked = set(questions_to_check(read_answers()))
    answers = [one for one in read_answers() if one.question in checked]
    asked: list[Asked] = []
    for kinds in (2, 3, 4):
        drawn = (several_row(rng.choice(answers), "check", rng) for _ in range(40 * count))
        rows = [row for row in drawn if row is not None and len(row.kinds) == kinds and not row.system][:count]
        for row in rows:
            wishes = dict(zip(row.kinds, row.values, strict=True))
            asked.append(
                Asked(f"{kinds} at once", row.question, row.wish, lambda text, w=wishes: obeys_all(w, text.strip()))
            )
    return asked


def given_wishes(path: Path, count: int, seed: int) -> list[Asked]:
    """Those of a file; questions and wordings are drawn."""
    rng = random.Random(seed)
    given: dict[str, Any] = json.loads(path.read_text("utf-8"))
    asked: list[Asked] = []
    for one in given["kinds"]:
        for question in rng.sample(given["questions"], min(count, len(given["questions"]))):
            wish = rng.choice([*one["wordings_plain"], *one["wordings_own"]])
            text, number = (wish["text"], wish["n"]) if isinstance(wish, dict) else (wish, 0)
            asked.append(Asked(str(one["kind"]), question, text, _rule(one["check"], number)))
    return asked


def _rule(check: dict[str, Any], number: int) -> Obeys:
    """The wording's own number stands in place of "n"."""
    bounded = [{name: number if value == "n" else value for name, value in one.items()} for one in check["violates_if"]]
    obeys = obeys_by({"violates_if": bounded})
    return lambda text: obeys(Answer("", text, ended=True))


def measure(model: LoadedModel, asked: Sequence[Asked], temperature: float, seed: int) -> list[dict[str, Any]]:
    """A row for each kind: shares of the answers with the wish shown, and of those without."""
    plain = list(dict.fromkeys(one.question for one in asked))
    prompts = [f"{one.question}\n\n{one.wish}" for one in asked] + plain
    made = answer_all(model, prompts, seed=seed, temperature=temperature, tokens_max=TOKENS_MAX, say=_say)
    answer_of = dict(zip(plain, made[len(asked) :], strict=True))
    shown, untold = made[: len(asked)], [answer_of[one.question] for one in asked]
    embedder = Embedder()
    hits, plain_hits = (_hits(asked, answers, embedder) for answers in (shown, untold))
    rows: list[dict[str, Any]] = []
    for kind in dict.fromkeys(one.kind for one in asked):
        at = [place for place, one in enumerate(asked) if one.kind == kind]
        obeyed = [asked[place].obeys(shown[place][0]) for place in at]
        both = [obeyed[n] and hits[place] for n, place in enumerate(at)]
        rows.append(
            {
                "kind": kind,
                "answers": len(at),
                "shown": _share(obeyed),
                "hit": _share([hits[place] for place in at]),
                "headline": _share(both),
                "not_shown": _share([asked[place].obeys(untold[place][0]) for place in at]),
                "example": shown[at[0]][0],
            }
        )
    return [*rows, {"kind": None, "answers": len(asked), "hit": _share(plain_hits), "example": untold[0][0]}]


def _hits(asked: Sequence[Asked], answers: Sequence[tuple[str, bool]], embedder: Embedder) -> list[bool]:
    scored = [Answer(one.question, text, ended) for one, (text, ended) in zip(asked, answers, strict=True)]
    # What obeys is decided wish by wish; here only the hits are looked at.
    return [score.hit for score in score_answers(scored, lambda _: True, embedder)]


def divergence(model: LoadedModel, plain: LoadedModel, questions: Sequence[str], seed: int) -> float:
    """KL(model ‖ plain) in nats an answer of at most 48 tokens, on the model's own answers without a wish, T = 1."""
    answers = answer_all(model, questions, seed=seed, temperature=1.0, tokens_max=TOKENS_MAX, say=_say)
    total = 0.0
    for question, (text, ended) in zip(questions, answers, strict=True):
        prompt = model.render_chat([{"role": "user", "content": question}])
        ids = [*prompt, *model.encode(text), *([model.end_ids[0]] if ended else [])]
        with torch.inference_mode():
            own, base = (
                one.network(torch.tensor([ids])).logits[0, len(prompt) - 1 : -1].float().log_softmax(-1)
                for one in (model, plain)
            )
        total += float((own.exp() * (own - base)).sum())
    return total / len(questions)


def _share(values: Sequence[bool]) -> float:
    return round(sum(values) / max(1, len(values)), 3)


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")


def main() -> int:
    """Results on standard output, progress on standard error."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="folder of the model to measure")
    parser.add_argument(
        "--plain", type=Path, help="folder of the plain model: its divergence without a wish is measured"
    )
    parser.add_argument("--wishes", type=Path, help="file of wishes (default: the check split of the tree)")
    parser.add_argument("--at-once", action="store_true", help="several wishes of the check split with each question")
    parser.add_argument("--count", type=int, default=16, help="questions for each kind (default: %(default)s)")
    parser.add_argument("--temperature", type=float, default=0.8, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=7, help="default: %(default)s")
    given = parser.parse_args()
    torch.set_num_threads(1)
    model = load_model(given.model, dtype=torch.bfloat16)
    if given.wishes:
        asked = given_wishes(given.wishes, given.count, given.seed)
    else:
        asked = (wishes_at_once if given.at_once else own_wishes)(given.count, given.seed)
    for row in measure(model, asked, given.temperature, given.seed):
        sys.stdout.write(json.dumps(row, ensure_ascii=False) + "\n")
    if given.plain is not None:
        questions = list(dict.fromkeys(one.question for one in asked))[:64]
        nats = divergence(model, load_model(given.plain, dtype=torch.bfloat16), questions, given.seed)
        sys.stdout.write(json.dumps({"divergence_without_a_wish": round(nats, 3), "answers": len(questions)}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
