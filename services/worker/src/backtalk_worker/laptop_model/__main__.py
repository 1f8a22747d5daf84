"""How the laptop model's adapter is made: `python -m backtalk_worker.laptop_model answers|attempts|train`.

answers: the plain model answers the list of questions (answers.jsonl).
attempts: the model so far answers questions with wishes, and its answers are told apart by rules.
train: goes on from its adapter, towards the answers that are preferred.
The plain model is made by `python -m backtalk_worker.model.convert --plain --to DIR`.
"""

import argparse
import os
import sys
import time
from pathlib import Path

from backtalk_worker.laptop_model.answers import FOLDER, Answered, read_answers, read_questions, write_answers
from backtalk_worker.laptop_model.rows import questions_to_train
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
    for command in made.values():
        command.add_argument("--seed", type=int, default=1, help="default: %(default)s")
        command.add_argument("--model", type=Path, required=True, help="folder of the plain model")
    made["answers"].add_argument("--to", type=Path, default=FOLDER / "answers.jsonl", help="default: %(default)s")
    made["answers"].add_argument(
        "--before", type=Path, help="folder of the model that training goes on from: it, too, answers at temperature 1"
    )
    made["attempts"].add_argument("--by", type=Path, required=True, help="folder of the model so far, adapter merged")
    made["attempts"].add_argument("--questions", type=_part, default=slice(None), help="FROM:TO:EVERY (default: all)")
    made["attempts"].add_argument("--to", type=Path, required=True, help="file of the attempts (.jsonl)")
    made["train"].add_argument("attempts", type=Path, nargs="+", help="files of attempts")
    made["train"].add_argument("--from", dest="start", type=Path, required=True, help="adapter of the model so far")
    made["train"].add_argument("--steps", type=int, help="questions to stop after (default: all)")
    made["train"].add_argument("--to", type=Path, required=True, help="file of the adapter (.safetensors)")
    made["train"].add_argument(
        "--processes", type=int, default=2, help="processes, one thread each (default: %(default)s)"
    )
    return parser


def _part(text: str) -> slice:
    start, end, every = (int(number) for number in text.split(":"))
    return slice(start, end, every)


DRAFTS = 3
"""Answers of a question whose sentences are weighed."""
HELP = {
    "answers": "the plain model answers the questions that the file lacks, and weighs its sentences",
    "attempts": "the model so far answers questions with wishes, and rules tell its answers apart",
    "train": "makes the adapter",
}


def main() -> int:
    """Progress on standard error, results on standard output; exit code 1 with one line when a file is missing."""
    given = _parser().parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        {"answers": _answers, "attempts": _attempts, "train": _train}[given.command](given)
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


def _attempts(given: argparse.Namespace) -> None:
    import torch

    from backtalk_worker.laptop_model.attempts import attempt_all, write_attempts
    from backtalk_worker.model.load import load_model

    torch.set_num_threads(1)
    plain, model = (load_model(folder, dtype=torch.bfloat16) for folder in (given.model, given.by))
    chosen = questions_to_train(read_answers())[given.questions]
    write_attempts(attempt_all(plain, model, chosen, given.seed, _say), given.to)


def _train(given: argparse.Namespace) -> None:
    from backtalk_worker.laptop_model.attempts import read_attempts
    from backtalk_worker.laptop_model.train import Recipe, groups_of, train_in_processes

    attempts = [rows for file in given.attempts for rows in read_attempts(file)]
    groups = groups_of(attempts, read_answers(), given.seed)[: given.steps]
    recipe = Recipe(seed=given.seed, start=given.start)
    train_in_processes(given.model, groups, recipe, given.to, given.processes, _say)


if __name__ == "__main__":
    exit_at_signal()
    sys.exit(main())
