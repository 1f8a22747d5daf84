"""What training steps cost on a device, as lines of a page; and how far a small step is from the same step on the CPU.

Apart from the command, so that what it is asked for wrongly is refused before torch is imported.
"""

import gc
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec

import torch
from backtalk_worker.process.memory import give_back_large_blocks
from backtalk_worker.training.domain.adapter import AdapterShape, adapted, linear_modules
from backtalk_worker.training.domain.batch import BatchItem
from backtalk_worker.training.domain.optimizer import make_optimizer
from backtalk_worker.training.domain.sample import Sample
from backtalk_worker.training.domain.step import take_step
from backtalk_worker.training.domain.teacher import Teacher
from backtalk_worker.training.errors import OutOfMemoryError
from long_step import LongStep, long_step
from other_steps import OtherStep, plain_step, trl_step
from shapes import made_network
from training_step import LAPTOP

TERAFLOPS = {"A100": 312, "H100": 989, "H200": 989, "L4": 121, "L40S": 362, "4090": 165, "3090": 71}
"""Dense bfloat16, of NVIDIA's data sheets (SXM for A100 and H100)."""
ANSWER_TOKENS = 512


def measured(
    shapes: Sequence[str], tokens: Sequence[int], device: str, rank: int, teraflops: float | None
) -> list[str]:
    """Measures, and prints each line as it is known."""
    give_back_large_blocks()
    peak = teraflops or _teraflops(device)
    lines = [_machine(device, peak), "", *_equality(device), "", *HEADER]
    _say("\n".join(lines))
    for shape in shapes:
        for each in tokens:
            lines.append(_row(shape, each, device, rank, peak))
            _say(lines[-1])
    return lines


COLUMNS = (
    "model's shape", "sample", "seconds", "tokens a second", "MFU", "memory at most", "of this the model",
    "the part that others take, too", "plain PyTorch", "TRL's GKD",
)  # fmt: skip
HEADER = [f"| {' | '.join(COLUMNS)} |", f"| {' | '.join('-' * len(name) for name in COLUMNS)} |"]
OUT_OF_MEMORY = "out of memory"


def _row(shape: str, tokens: int, device: str, rank: int, peak: float) -> str:
    answer = min(ANSWER_TOKENS, tokens // 2)
    network = made_network(shape, device, torch.bfloat16 if device == "cuda" else torch.float32)

    def step() -> LongStep:
        # The first one compiles and allocates.
        long_step(network, tokens - answer, answer, rank)
        return long_step(network, tokens - answer, answer, rank)

    def trl() -> OtherStep | None:
        return trl_step(network, tokens - answer, answer, rank) if find_spec("trl") else None

    cells = [
        _tried(lambda: _own_cells(step(), peak), f"{OUT_OF_MEMORY} |  |  |  |  | "),
        _tried(lambda: _other_cell(plain_step(network, tokens - answer, answer, rank)), OUT_OF_MEMORY),
        _tried(lambda: _other_cell(trl()), OUT_OF_MEMORY),
    ]
    return f"| {shape} | {tokens} | {' | '.join(cells)} |"


def _tried(way: Callable[[], str], otherwise: str) -> str:
    try:
        return way()
    except (OutOfMemoryError, torch.OutOfMemoryError):
        return otherwise
    finally:
        gc.collect()
        torch.cuda.empty_cache()


def _own_cells(step: LongStep, peak: float) -> str:
    rate = step.tokens / step.seconds
    used = f"{step.floating_point_operations / step.seconds / peak / 1e12:.0%}" if peak else ""
    memory, model = f"{step.peak_bytes / 1e9:.1f} GB", f"{step.loaded_bytes / 1e9:.1f} GB"
    # One of the two passes without gradient is the base's, which the others do not take.
    same = step.phases["teacher"] / 2 + step.phases["forward_backward"] + step.phases["optimizer"]
    return f"{step.seconds:.2f} | {rate:.0f} | {used} | {memory} | {model} | {same:.2f}"


def _other_cell(step: OtherStep | None) -> str:
    if step is None:
        return "not installed"
    return f"{step.seconds:.2f}, {step.peak_bytes / 1e9:.1f} GB" if step.peak_bytes else f"{step.seconds:.2f}"


def _equality(device: str) -> list[str]:
    """A step in float32 on the device beside the same on the CPU."""
    # As the worker takes it: with several threads, sums may be shared out otherwise from one step to the next.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    here, there = _small_step("cpu"), _small_step(device)
    torch.set_num_threads(threads)
    moved = torch.cat([(here[name] - start).flatten() for name, start in _start().items()])
    apart = torch.cat([(here[name] - there[name]).flatten() for name in here])
    share = float(apart.norm() / moved.norm())
    words = f"A step of the shape `tiny` in float32 on {device} differs from the same step on the CPU by {share:.1e} "
    words += "of its length."
    return [words if device != "cpu" else f"{words} (The CPU was compared with itself.)"]


def _small_step(device: str) -> dict[str, torch.Tensor]:
    recipe = replace(LAPTOP, step_bound=0.0, ess_min=0.0, max_answer_tokens=16)
    # Made on the CPU: generators of two devices draw different weights.
    network = made_network("tiny", "cpu", torch.float32).to(device)
    ids = tuple(torch.randint(0, 4_096, (96,), generator=torch.Generator().manual_seed(1)).tolist())
    sample = Sample("small", ids[:80], ids[80:], (-8.0,) * 16, 1.0, -1.0, False, ids[:84])
    with adapted(network, AdapterShape(8, 16, linear_modules(network)), seed=0) as policy:
        items = [BatchItem(sample, "", True, sample.teacher_prompt_ids)]
        take_step(
            Teacher(policy, recipe.teacher), make_optimizer(policy, recipe, {}), items, recipe, 0, lambda *_: None
        )
        return {name: value.cpu() for name, value in policy.tensors().items()}


def _start() -> dict[str, torch.Tensor]:
    network = made_network("tiny", "cpu", torch.float32)
    with adapted(network, AdapterShape(8, 16, linear_modules(network)), seed=0) as policy:
        return policy.tensors()


def _teraflops(device: str) -> float:
    name = torch.cuda.get_device_name() if device == "cuda" else ""
    return next((rate for part, rate in TERAFLOPS.items() if part in name), 0)


def _machine(device: str, peak: float) -> str:
    if device == "cpu":
        return f"Measured on a CPU ({torch.get_num_threads()} threads, float32), torch {torch.__version__}."
    memory = torch.cuda.get_device_properties(0).total_memory / 1e9
    known = f"{peak:.0f} TFLOPS in bfloat16" if peak else "its arithmetic is not known here: --teraflops"
    name = torch.cuda.get_device_name()
    return f"Measured on {name} ({memory:.0f} GB; {known}), torch {torch.__version__}."


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
