"""How the laptop model's adapter is made: `python -m backtalk_worker.laptop_model answers|rows|train`.

answers: the plain model answers the list of questions (answers.jsonl).
rows: prints the rows that a seed makes of them, or their digest.
train: makes the adapter from rows and the plain model (`python -m backtalk_worker.model.convert --plain --to DIR`).
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
        command.add_argument("--seed", type=int, default=SEED, help="default: %(default)s")
        if name != "rows":
            command.add_argument("--model", type=Path, required=True, help="folder of the plain model")
        if name != "answers":
            command.add_argument("--answers", type=Path, default=FOLDER / "answers.jsonl", help="default: %(default)s")
            command.add_argument("--steps", type=int, help="questions to stop after (default: all)")
    made["answers"].add_argument("--to", type=Path, default=FOLDER / "answers.jsonl", help="default: %(default)s")
    made["rows"].add_argument("--json", action="store_true", help="a line for each row instead of the digest")
    made["train"].add_argument("--to", type=Path, required=True, help="file of the adapter (.safetensors)")
    made["train"].add_argument("--from", dest="start", type=Path, help="adapter to go on from (default: a fresh one)")
    made["train"].add_argument(
        "--processes", type=int, default=2, help="processes, one thread each (default: %(default)s)"
    )
    return parser


DRAFTS = 6
"""Answers of a question whose sentences are weighed."""
HELP = {
    "answers": "the plain model answers the questions, and weighs its sentences",
    "rows": "shows what is trained on",
    "train": "makes the adapter",
}


def main() -> int:
    """Progress on standard error, results on standard output; exit code 1 with one line when a file is missing."""
    given = _parser().parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        {"answers": _answers, "rows": _rows, "train": _train}[given.command](given)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"cannot make the adapter: {error}\n")
        return 1
    return 0


def _answers(given: argparse.Namespace) -> None:
    import torch

    from backtalk_worker.laptop_model.sampling import answer_all
    from backtalk_worker.laptop_model.telling import most_telling
    from backtalk_worker.model.load import load_model

    torch.set_num_threads(1)
    questions = read_questions()
    model = load_model(given.model, dtype=torch.bfloat16)
    drafts = [answer_all(model, questions, seed=given.seed + at, say=_say) for at in range(DRAFTS)]
    texts = {question: [draft[at][0] for draft in drafts] for at, question in enumerate(questions)}
    told = most_telling(model, texts, given.seed, _say)
    drawn = answer_all(model, questions, seed=given.seed, temperature=1.0, say=_say)
    made = zip(questions, drawn, strict=True)
    write_answers([Answered(question, told[question], text) for question, (text, _) in made], given.to)


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


if __name__ == "__main__":
    exit_at_signal()
    sys.exit(main())
