"""`python test/bench/long_sample.py`: one step on one sample as long as agents' prompts make them.

In: nothing but the base model's folder. Out: seconds by phase, and the most memory. The ids are drawn by chance, since
what a step costs depends on their count alone.
"""

import argparse
import random
import resource
import sys
import time
from dataclasses import replace
from pathlib import Path

import torch
from backtalk_worker.model.location import BASE_MODEL_NAME, default_model_dir
from backtalk_worker.process.memory import give_back_large_blocks
from backtalk_worker.training.domain.adapter import AdapterShape, adapted
from backtalk_worker.training.domain.batch import BatchItem
from backtalk_worker.training.domain.optimizer import make_optimizer
from backtalk_worker.training.domain.sample import Sample
from backtalk_worker.training.domain.step import take_step
from backtalk_worker.training.outputs.base_model import load_base_model
from training_step import LAPTOP

HINT_TOKENS = 12


def main() -> int:
    """Prints seconds and memory of one step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=default_model_dir(), help="folder of the base model")
    parser.add_argument("--prompt", type=int, default=10_000, help="tokens of the prompt (default: %(default)s)")
    parser.add_argument("--answer", type=int, default=200, help="tokens of the answer (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="of torch (default: %(default)s)")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    give_back_large_blocks()
    base = load_base_model(given.model, BASE_MODEL_NAME, "cpu", "float32")
    _say(f"model loaded: {_peak_mb():.0f} MB at most")
    draw = random.Random(0)
    ids = tuple(draw.randrange(1_000, base.loaded.vocabulary_size) for _ in range(given.prompt + given.answer))
    prompt, answer = ids[: given.prompt], ids[given.prompt :]
    hinted = (*prompt, *ids[:HINT_TOKENS])
    # As unlikely as chance is: nothing of it counts as off policy.
    logprobs = (-11.0,) * given.answer
    item = BatchItem(Sample("long", prompt, answer, logprobs, 1.0, -1.0, False, hinted), "", True, hinted)
    recipe = replace(LAPTOP, max_answer_tokens=given.answer, max_tokens=10**6, ess_min=0.0)
    phases: dict[str, float] = {}
    last = ("load", time.perf_counter())

    def progress(phase: str, _number: int, _count: int, _loss: float) -> None:
        nonlocal last
        now = time.perf_counter()
        phases[last[0]] = phases.get(last[0], 0.0) + now - last[1]
        last = (phase, now)

    started, cpu = time.perf_counter(), time.process_time()
    with adapted(base.network, AdapterShape(8, 16, base.target_modules), seed=0) as policy:
        outcome = take_step(policy, make_optimizer(policy, recipe, {}), [item], recipe, 0, progress)
    progress("end", 0, 0, 0.0)
    seconds = time.perf_counter() - started
    _say(f"{given.prompt} + {given.answer} tokens: {seconds:.0f} s, {time.process_time() - cpu:.0f} s of CPU")
    _say("seconds by phase: " + ", ".join(f"{name} {s:.1f}" for name, s in phases.items()))
    _say(f"memory at most: {_peak_mb():.0f} MB; samples kept: {outcome.measurements['samples_trained']:.0f}")
    return 0


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
