"""`python test/bench/training_step.py`: one step of the laptop's size, against the same step in plain PyTorch.

In: nothing but the base model's folder. Out: a table of seconds and memory. Answers are drawn from the base, once.
"""

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from backtalk_worker.model.location import BASE_MODEL_NAME, default_model_dir
from backtalk_worker.training.domain.adapter import AdaptedNetwork, AdapterShape, adapted
from backtalk_worker.training.domain.batch import prepare_batch
from backtalk_worker.training.domain.optimizer import make_optimizer
from backtalk_worker.training.domain.recipe import Recipe
from backtalk_worker.training.domain.sample import Sample
from backtalk_worker.training.domain.step import take_step
from backtalk_worker.training.domain.teacher import Teacher
from backtalk_worker.training.outputs.base_model import BaseModel, load_base_model
from torch import Tensor

HINT = "Answer in one short sentence."
QUESTION = (
    "I am writing a page for a small magazine that people read at breakfast, and my readers like advice that they can "
    "use on the same day. Please explain to a curious reader, with the reasons that matter most in daily life, how one "
    "should {}."
)
TASKS = (
    "store fresh bread for a week",
    "choose a bicycle for the city",
    "learn ten new words a day",
    "clean a glass table",
    "start a small garden",
    "sleep well in summer",
    "plan a visit to a museum",
    "mend a wooden chair",
)
LAPTOP = Recipe(
    method="combined",
    opd_form="full",
    divergence="jeffreys",
    teacher="base",
    weight_rl=0.1,
    weight_opd=1.0,
    lora_rank=8,
    lora_alpha=16,
    learning_rate=2e-3,
    adam_beta1=0.9,
    adam_beta2=0.98,
    weight_decay=0.0,
    gradient_clip=1.0,
    clip_low=0.2,
    clip_high=0.28,
    dual_clip=3.0,
    opd_advantage_clip=2.0,
    top_k=20,
    ema_decay=0.9,
    told_share=0.5,
    distill_share=1.0,
    off_policy="drop",
    step_bound=4.0,
    kl_beta=0.0,
    kl_form="full",
    max_answer_tokens=48,
    micro_batch_tokens=512,
    optimizer_steps=1,
    jsd_beta=0.5,
    max_tokens=2048,
    staleness_max=0.1,
    ess_min=0.3,
    masked_share_max=0.2,
    mean_answer_length=40.0,
)


@dataclass(frozen=True)
class Row:
    """One way to take the step."""

    name: str
    seconds: list[float]
    cpu_seconds: list[float]
    peak_mb: float


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=default_model_dir(), help="folder of the base model")
    parser.add_argument("--rounds", type=int, default=3, help="steps of each kind (default: %(default)s)")
    parser.add_argument("--micro-batch-tokens", type=int, default=LAPTOP.micro_batch_tokens)
    given = parser.parse_args()
    recipe = replace(LAPTOP, micro_batch_tokens=given.micro_batch_tokens)
    torch.set_num_threads(1)
    base = load_base_model(given.model, BASE_MODEL_NAME, "cpu", "float32")
    samples = _samples(base)
    prompt = statistics.mean(len(sample.prompt_ids) for sample in samples)
    answer = statistics.mean(len(sample.answer_ids) for sample in samples)
    _say(f"{len(samples)} samples, {prompt:.0f} prompt and {answer:.0f} answer tokens each, one thread, float32")
    _say(f"resident with the model loaded: {_memory_mb('VmRSS'):.0f} MB")
    phases: dict[str, float] = {}
    rows = [
        _measured(
            "worker: teacher, base, gradient, AdamW, bound",
            given.rounds,
            lambda: _our_step(base, samples, recipe, phases),
        ),
        _measured("plain PyTorch: teacher, gradient, AdamW", given.rounds, lambda: _plain_step(base, samples)),
    ]
    _say(f"{'step':<46}{'median s':>10}{'least':>8}{'most':>8}{'median CPU s':>14}{'peak MB':>9}")
    for row in rows:
        median, cpu = statistics.median(row.seconds), statistics.median(row.cpu_seconds)
        least, most = min(row.seconds), max(row.seconds)
        _say(f"{row.name:<46}{median:>10.2f}{least:>8.2f}{most:>8.2f}{cpu:>14.2f}{row.peak_mb:>9.0f}")
    _say("the worker's last step, seconds by phase: " + ", ".join(f"{name} {s:.2f}" for name, s in phases.items()))
    return 0


def _samples(base: BaseModel) -> list[Sample]:
    torch.manual_seed(1)
    samples: list[Sample] = []
    for task in TASKS:
        question = QUESTION.format(task)
        ids = base.loaded.render_chat([{"role": "user", "content": question}])
        hinted = base.loaded.render_chat([{"role": "user", "content": f"{question}\n\n{HINT}"}])
        prompt = torch.tensor([ids])
        out = base.network.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            do_sample=True,
            top_k=0,
            temperature=0.8,
            max_new_tokens=48,
            pad_token_id=base.loaded.pad_id,
        )
        answer = tuple(out[0, len(ids) :].tolist())
        samples.append(Sample(task, tuple(ids), answer, (-1.0,) * len(answer), 0.8, -1.0, True, tuple(hinted)))
    return samples


def _our_step(base: BaseModel, samples: list[Sample], recipe: Recipe, phases: dict[str, float]) -> None:
    phases.clear()
    last: list[tuple[str, float]] = []

    def progress(phase: str, _number: int, _count: int, _loss: float) -> None:
        now = time.perf_counter()
        if last:
            phases[last[0][0]] = phases.get(last[0][0], 0.0) + now - last[0][1]
        last[:] = [(phase, now)]

    items = prepare_batch(samples, recipe, base.loaded.context_length, base.loaded.vocabulary_size)
    with adapted(base.network, AdapterShape(8, 16, base.target_modules), seed=0) as policy:
        take_step(Teacher(policy, recipe.teacher), make_optimizer(policy, recipe, {}), items, recipe, 0, progress)
    progress("end", 0, 0, 0.0)


def _plain_step(base: BaseModel, samples: list[Sample]) -> None:
    items = prepare_batch(samples, LAPTOP, base.loaded.context_length, base.loaded.vocabulary_size)
    answers = [item.sample.answer_ids for item in items]
    with adapted(base.network, AdapterShape(8, 16, base.target_modules), seed=0) as policy:
        optimizer = torch.optim.AdamW(
            list(policy.parameters.values()), lr=LAPTOP.learning_rate, betas=(0.9, 0.98), weight_decay=0.0
        )
        with torch.no_grad(), policy.network.without_adapter():
            teacher = _plain_logits(policy, [item.teacher_prompt for item in items], answers)
        student = _plain_logits(policy, [item.sample.prompt_ids for item in items], answers)
        log_student, log_teacher = student.log_softmax(-1), teacher.log_softmax(-1)
        lengths = torch.tensor([len(answer) for answer in answers])
        mask = torch.arange(student.shape[1]) < lengths[:, None]  # [batch, time]
        jeffreys = ((log_student.exp() - log_teacher.exp()) * (log_student - log_teacher)).sum(-1) / 2
        loss = (jeffreys * mask).sum() / (len(items) * 40)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(list(policy.parameters.values()), 1.0)
        optimizer.step()


def _plain_logits(policy: AdaptedNetwork, prompts: list[tuple[int, ...]], answers: list[tuple[int, ...]]) -> Tensor:
    """Prompts padded on the left, answers on the right; logits of answer positions only. [batch, time, vocabulary]."""
    left, right = max(map(len, prompts)), max(map(len, answers))
    pairs = list(zip(prompts, answers, strict=True))
    ids = torch.tensor([[0] * (left - len(p)) + [*p, *a] + [0] * (right - len(a)) for p, a in pairs])
    seen = torch.tensor([[0] * (left - len(p)) + [1] * (len(p) + right) for p, _ in pairs])
    places = (seen.cumsum(-1) - 1).clamp(min=0)
    out = policy.network.model(
        input_ids=ids, attention_mask=seen, position_ids=places, use_cache=False, logits_to_keep=right + 1
    )
    return out.logits[:, :-1]


def _measured(name: str, rounds: int, step: Callable[[], None]) -> Row:
    seconds: list[float] = []
    cpu_seconds: list[float] = []
    gc.collect()
    # Forgets the highest resident memory so far.
    Path("/proc/self/clear_refs").write_text("5")
    for _ in range(rounds):
        started, cpu_started = time.perf_counter(), time.process_time()
        step()
        seconds.append(time.perf_counter() - started)
        cpu_seconds.append(time.process_time() - cpu_started)
    return Row(name, seconds, cpu_seconds, _memory_mb("VmHWM"))


def _memory_mb(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
