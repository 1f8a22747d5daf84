"""How the laptop model's adapter is made: `python -m backtalk_worker.laptop_model answers|rows|train|mix`.

answers: the plain model answers the list of questions (answers.jsonl).
rows: prints the rows that a seed makes of them, or their digest.
train: makes the adapter from rows and the plain model (`python -m backtalk_worker.model.convert --plain --to DIR`).
mix: an adapter between one and what training made of it.
"""

import argparse
import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path

from backtalk_worker.laptop_model.answers import FOLDER, Answered, read_answers, read_questions, write_answers
from backtalk_worker.laptop_model.rows import SEED, digest_of, make_groups
from backtalk_worker.process.first_signal import exit_at_signal


def _say(line: str) -> None:
    sys.stderr.write(f"[{time.strftime('%H:%M:%S')}] {line}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m backtalk_worker.laptop_model",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    made = {name: commands.add_parser(name, help=text) for name, text in HELP.items()}
    for name, command in made.items():
        if name == "mix":
            continue
        command.add_argument("--seed", type=int, default=SEED, help="default: %(default)s")
        if name != "rows":
            command.add_argument("--model", type=Path, required=True, help="folder of the plain model")
        if name != "answers":
            command.add_argument("--answers", type=Path, default=FOLDER / "answers.jsonl", help="default: %(default)s")
            command.add_argument("--steps", type=int, help="questions to stop after (default: all)")
    made["answers"].add_argument("--to", type=Path, default=FOLDER / "answers.jsonl", help="default: %(default)s")
    made["answers"].add_argument(
        "--before", type=Path, help="folder of the model that training goes on from: it, too, answers at temperature 1"
    )
    made["rows"].add_argument("--json", action="store_true", help="a line for each row instead of the digest")
    made["train"].add_argument("--to", type=Path, required=True, help="file of the adapter (.safetensors)")
    made["train"].add_argument("--from", dest="start", type=Path, help="adapter to go on from (default: a fresh one)")
    made["train"].add_argument(
        "--processes", type=int, default=2, help="processes, one thread each (default: %(default)s)"
    )
    made["mix"].add_argument("one", type=Path, help="file of the adapter that training went on from")
    made["mix"].add_argument("other", type=Path, help="file of the adapter that it made")
    made["mix"].add_argument("--share", type=float, default=0.5, help="of the second, 0 to 1 (default: %(default)s)")
    made["mix"].add_argument("--to", type=Path, required=True, help="file of the adapter (.safetensors)")
    return parser


DRAFTS = 3
"""Answers of a question whose sentences are weighed."""
HELP = {
    "answers": "the plain model answers the questions that the file lacks, and weighs its sentences",
    "rows": "shows what is trained on",
    "train": "makes the adapter",
    "mix": "an adapter between two",
}


def main() -> int:
    """Progress on standard error, results on standard output; exit code 1 with one line when a file is missing."""
    given = _parser().parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        {"answers": _answers, "rows": _rows, "train": _train, "mix": _mix}[given.command](given)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"cannot make the adapter: {error}\n")
        return 1
    return 0


def _answers(given: argparse.Namespace) -> None:
    import torch

    from backtalk_worker.laptop_model.sampling import answer_all
    from backtalk_worker.laptop_model.telling import most_telling
    from backtalk_worker.model.load import load_model

    questions = read_questions()
    known = {one.question: one for one in read_answers(given.to)} if given.to.exists() else {}
    lacking = [question for question in questions if question not in known]
    model = load_model(given.model, dtype=torch.bfloat16)
    drafts = [answer_all(model, lacking, seed=given.seed + at, say=_say) for at in range(DRAFTS)]
    texts = {question: [draft[at][0] for draft in drafts] for at, question in enumerate(lacking)}
    told = most_telling(model, texts, given.seed, _say)
    drawers = [model, *([] if given.before is None else [load_model(given.before, dtype=torch.bfloat16)])]
    drawn = {question: list(known[question].drawn) if question in known else [] for question in questions}
    for at, drawer in enumerate(drawers):
        short = [question for question in questions if len(drawn[question]) <= at]
        answers = answer_all(drawer, short, seed=given.seed, temperature=1.0, say=_say)
        for question, (text, _) in zip(short, answers, strict=True):
            drawn[question].append(text)
    made = {question: known[question].sentences if question in known else told[question] for question in questions}
    write_answers([Answered(question, made[question], drawn[question]) for question in questions], given.to)


def _rows(given: argparse.Namespace) -> None:
    groups = make_groups(read_answers(given.answers), given.seed)[: given.steps]
    rows = [row for group in groups for row in group]
    for row in rows if given.json else []:
        sys.stdout.write(json.dumps(asdict(row), ensure_ascii=False) + "\n")
    if not given.json:
        sys.stdout.write(f"{len(rows)} rows of {len(groups)} questions, sha256 {digest_of(groups)}\n")


def _train(given: argparse.Namespace) -> None:
    from backtalk_worker.laptop_model.train import Recipe, train_in_processes

    groups = make_groups(read_answers(given.answers), given.seed)[: given.steps]
    _say(f"{sum(map(len, groups))} rows, sha256 {digest_of(groups)}")
    train_in_processes(given.model, groups, Recipe(seed=given.seed, start=given.start), given.to, given.processes, _say)


def _mix(given: argparse.Namespace) -> None:
    from backtalk_worker.laptop_model.adapter import mix_adapters

    if not 0 <= given.share <= 1:
        raise ValueError(f"--share is {given.share}: give a number from 0 to 1")
    mix_adapters(given.one, given.other, given.share, given.to)


if __name__ == "__main__":
    exit_at_signal()
    sys.exit(main())
