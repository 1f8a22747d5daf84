"""`npm run bench:gpu`: what training steps cost on a CUDA card, written into docs/gpu.md.

In: shapes of models, which get random weights, and lengths of samples. Out: for each a step's seconds, tokens a second,
share of the card's arithmetic (MFU) and memory; and how far a small step on the card is from the same step on the CPU.
On a CPU no page is written unless --page names one.
"""

import argparse
import gc
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

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
from shapes import made_network, shape_named
from training_step import LAPTOP

START, END = "<!-- figures -->", "<!-- end of figures -->"
TERAFLOPS = {"A100": 312, "H100": 989, "H200": 989, "L4": 121, "L40S": 362, "4090": 165, "3090": 71}
"""Dense bfloat16, of NVIDIA's data sheets (SXM for A100 and H100)."""
ANSWER_TOKENS = 512
PAGE = Path(__file__).parents[2] / "docs" / "gpu.md"


def main() -> int:
    """Measures, prints, and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--shape",
        action="append",
        help="of a model, several times (default: qwen3-4b, qwen3-8b), as in shapes.py",
    )
    parser.add_argument("--tokens", default="2000,10000,32000", help="of the samples (default: %(default)s)")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--rank", type=int, default=16, help="of the adapter (default: %(default)s)")
    parser.add_argument("--teraflops", type=float, help="of the card in bfloat16; known: " + ", ".join(TERAFLOPS))
    parser.add_argument("--page", type=Path, help="whose figures are replaced (on cuda: docs/gpu.md)")
    given = parser.parse_args()
    shapes = given.shape or ["qwen3-4b", "qwen3-8b"]
    problem = _problem(shapes, given.tokens, given.device)
    if problem:
        sys.stderr.write(f"{problem}\n")
        return 2
    give_back_large_blocks()
    peak = given.teraflops or _teraflops(given.device)
    lines = [_machine(given.device, peak), "", *_equality(given.device), "", *HEADER]
    _say("\n".join(lines))
    for shape in shapes:
        for tokens in map(int, given.tokens.split(",")):
            lines.append(_row(shape, tokens, given.device, given.rank, peak))
            _say(lines[-1])
    page = given.page or (PAGE if given.device == "cuda" else None)
    if page is not None:
        _replace(page, lines)
        _say(f"written to {page}")
    return 0


COLUMNS = (
    "model's shape", "sample", "seconds", "tokens a second", "MFU", "memory at most", "of this the model",
    "the part that others take, too", "plain PyTorch", "TRL's GKD",
)  # fmt: skip
HEADER = [f"| {' | '.join(COLUMNS)} |", f"| {' | '.join('-' * len(name) for name in COLUMNS)} |"]
OUT_OF_MEMORY = "out of memory"


def _problem(shapes: Sequence[str], tokens: str, device: str) -> str:
    """Why nothing can be measured; empty where all can."""
    try:
        for shape in shapes:
            shape_named(shape)
    except ValueError as error:
        return f"--shape: {error}"
    if not all(one.isdigit() and int(one) > 1 for one in tokens.split(",")):
        return f"--tokens '{tokens}' is no list of whole numbers, such as 2000,10000"
    if device == "cuda" and not torch.cuda.is_available():
        return "--device cuda: torch sees no CUDA card (--device cpu --shape tiny tries the command)"
    return ""


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


def _replace(page: Path, lines: Sequence[str]) -> None:
    before, _, rest = page.read_text().partition(START)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{START}\n\n" + "\n".join(lines) + f"\n\n{END}{after}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
