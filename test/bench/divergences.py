"""`python test/bench/divergences.py --kinds emoji,numbered`: which divergence teaches a wish, without services.

In: the laptop's model, kinds of its wishes (worded as its training never saw them), divergences. Each step draws
answers of the policy itself, has the base shown the wish as the teacher of all, and is a step of the training worker.
With `--in-turn` one adapter learns the kinds one after the other, each teacher shown all wishes so far.
Out: a line of JSON for the base and the base shown the wish, and one a step; *hit*: an answer finds its question of 32.
PYTHONPATH holds `test`.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from backtalk_worker.laptop_model.answers import read_answers
from backtalk_worker.laptop_model.kinds import KINDS, Kind
from backtalk_worker.laptop_model.rows import questions_to_check, value_of, wording
from backtalk_worker.model.location import BASE_MODEL_NAME, default_model_dir
from backtalk_worker.training.domain.adapter import AdapterShape, adapted
from backtalk_worker.training.domain.batch import prepare_batch
from backtalk_worker.training.domain.drawn_answers import Drawing, drawn_items
from backtalk_worker.training.domain.optimizer import make_optimizer
from backtalk_worker.training.domain.sample import Sample
from backtalk_worker.training.domain.step import take_step
from backtalk_worker.training.domain.teacher import Teacher
from backtalk_worker.training.domain.token_budget import TokenBudget
from backtalk_worker.training.outputs.base_model import BaseModel, load_base_model
from training_step import LAPTOP

from scoring.answer import Answer
from scoring.embedding import Embedder
from scoring.score import score_answers

TEMPERATURE = 0.8
TOKENS_MAX = 48
HELD_OUT = 32


def draw(base: BaseModel, prompts: Sequence[Sequence[int]], seed: int) -> list[list[int]]:
    """One answer a prompt by plain sampling, with its end token where it ended."""
    torch.manual_seed(seed)
    loaded, longest = base.loaded, max(map(len, prompts))
    ids = torch.tensor([[loaded.pad_id] * (longest - len(row)) + list(row) for row in prompts])
    seen = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in prompts])
    with torch.inference_mode():
        out = base.network.generate(
            input_ids=ids,
            attention_mask=seen,
            max_new_tokens=TOKENS_MAX,
            do_sample=True,
            temperature=TEMPERATURE,
            top_k=0,
            top_p=1.0,
            pad_token_id=loaded.pad_id,
        )
    rows: list[list[int]] = out[:, longest:].tolist()
    ends = (next((at + 1 for at, token in enumerate(row) if token in loaded.end_ids), len(row)) for row in rows)
    return [row[:end] for row, end in zip(rows, ends, strict=True)]


class Lesson:
    """A wish, those that are in force before it, questions to practise on, and held-out ones."""

    def __init__(
        self, base: BaseModel, embedder: Embedder, kind: Kind, seed: int, before: Sequence["Lesson"] = ()
    ) -> None:
        rng = random.Random(seed)
        self._base, self._embedder, self._kind = base, embedder, kind
        self._value = value_of(kind.name, "check", rng)
        self.wish = wording(kind.name, self._value, "check", rng)
        self._shown = [*(lesson.wish for lesson in before), self.wish]
        questions = questions_to_check(read_answers())
        random.Random(99).shuffle(questions)
        self._held_out, self._practice = questions[:HELD_OUT], questions[HELD_OUT:]
        rng.shuffle(self._practice)

    def prompt(self, question: str, *, shown: bool = False) -> tuple[int, ...]:
        """Ids of a question, with the wishes after it or without."""
        text = "\n\n".join([question, *(self._shown if shown else ())])
        return tuple(self._base.loaded.render_chat([{"role": "user", "content": text}]))

    def score(self, *, shown: bool = False) -> dict[str, float]:
        """Shares of the answers to the held-out questions."""
        rows = draw(self._base, [self.prompt(question, shown=shown) for question in self._held_out], 7)
        answers = [
            Answer(question, self._base.loaded.decode(row).strip(), ended=row[-1] in self._base.loaded.end_ids)
            for question, row in zip(self._held_out, rows, strict=True)
        ]
        scores = score_answers(answers, lambda answer: self._kind.check(answer.text, self._value), self._embedder)
        fields = ("obeys", "hit", "headline", "degenerate")
        return {name: round(sum(getattr(one, name) for one in scores) / len(scores), 2) for name in fields}

    def samples(self, step: int, count: int) -> list[Sample]:
        """Answers of the policy as it is, each with its teacher's prompt; verdicts are left out."""
        at = (step - 1) * count
        questions = [self._practice[(at + place) % len(self._practice)] for place in range(count)]
        answers = draw(self._base, [self.prompt(question) for question in questions], step)
        return [
            Sample(
                turn=question,
                prompt_ids=self.prompt(question),
                answer_ids=tuple(answer),
                logprobs=(-1.0,) * len(answer),
                temperature=TEMPERATURE,
                advantage=0.0,
                cut=len(answer) == TOKENS_MAX,
                teacher_prompt_ids=self.prompt(question, shown=True),
            )
            for question, answer in zip(questions, answers, strict=True)
        ]


def learn(base: BaseModel, lessons: Sequence[Lesson], given: argparse.Namespace, divergence: str) -> None:
    """Steps of the worker's own, for one lesson after the other, measured on the way."""
    form = "hybrid" if given.told else "full"
    recipe = replace(LAPTOP, method="opd", opd_form=form, divergence=divergence, max_answer_tokens=given.tokens)
    recipe = replace(recipe, step_bound=given.step_bound, optimizer_steps=given.optimizer_steps)
    recipe = replace(recipe, learning_rate=given.learning_rate)
    with adapted(base.network, AdapterShape(8, 16, base.target_modules), seed=given.seed) as policy:
        optimizer = make_optimizer(policy, recipe, {})
        for step in range(1, len(lessons) * given.steps + 1):
            begun = time.monotonic()
            known = lessons[: (step - 1) // given.steps + 1]
            samples = known[-1].samples(step, given.samples)
            loaded, budget = base.loaded, TokenBudget(recipe.micro_batch_tokens)
            items = prepare_batch(samples, recipe, loaded.context_length, loaded.vocabulary_size)
            ends = loaded.end_ids
            drawing = Drawing(Teacher(policy), recipe, loaded.context_length, ends, step, budget, lambda: None)
            outcome = take_step(
                Teacher(policy, recipe.teacher), optimizer, drawn_items(drawing, items), recipe, step, lambda *_: None
            )
            seconds = round(time.monotonic() - begun, 1)
            row: dict[str, Any] = {"divergence": divergence, "form": form, "step": step, "seconds": seconds}
            if step % given.every == 0 or step % given.steps == 0:
                row["scores"] = {lesson.wish: lesson.score() for lesson in known}
            figures = {name: round(outcome.measurements[name], 3) for name in ("loss_opd", "kl_step", "step_scale")}
            _write(row | figures)


def _write(row: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(row, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def main() -> int:
    """What the base makes of each kind, then a block of lines for each divergence."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", type=Path, default=default_model_dir(), help="folder of the base model")
    parser.add_argument("--kinds", default="emoji,numbered", help="of those that the laptop's model was taught")
    parser.add_argument("--divergences", default="reverse_kl,jeffreys", help="default: %(default)s")
    parser.add_argument("--steps", type=int, default=8, help="default: %(default)s")
    parser.add_argument("--every", type=int, default=4, help="steps between measurements (default: %(default)s)")
    parser.add_argument("--samples", type=int, default=8, help="answers of a step (default: %(default)s)")
    parser.add_argument("--tokens", type=int, default=TOKENS_MAX, help="of each answer that are trained on")
    parser.add_argument("--in-turn", action="store_true", help="one adapter learns them one after the other")
    parser.add_argument("--told", action="store_true", help="the form hybrid: teachers give answers of their own, too")
    parser.add_argument(
        "--step-bound", type=float, default=40.0, help="nats an answer; 0: no bound (default: %(default)s)"
    )
    parser.add_argument("--optimizer-steps", type=int, default=4, help="of each batch (default: %(default)s)")
    parser.add_argument("--learning-rate", type=float, default=LAPTOP.learning_rate, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    given = parser.parse_args()
    torch.set_num_threads(1)
    base = load_base_model(given.model, BASE_MODEL_NAME, "cpu", "float32")
    embedder = Embedder()
    lessons: list[Lesson] = []
    for name in given.kinds.split(","):
        kind = next(kind for kind in KINDS if kind.name == name)
        lesson = Lesson(base, embedder, kind, given.seed, before=lessons if given.in_turn else ())
        lessons.append(lesson)
        _write({"kind": name, "wish": lesson.wish})
        _write({"base": lesson.score(), "shown the wish": lesson.score(shown=True)})
    for divergence in given.divergences.split(","):
        for group in [lessons] if given.in_turn else [[lesson] for lesson in lessons]:
            learn(base, group, given, divergence)
    return 0


if __name__ == "__main__":
    sys.exit(main())
