"""`python test/bench/long_step.py`: one step of the training worker on one sample as long as agents' prompts make them.

In: a folder of a model, or the shape of one that gets random weights. Out: seconds by phase, the most memory, and how
much of the device's arithmetic was used; with --json one line for programs. The ids are drawn by chance: what a step
costs depends on their count, and on how often the step bound shrinks the step, which is printed.
"""

import argparse
import gc
import json
import random
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from backtalk_worker.model.load import load_model
from backtalk_worker.model.location import default_model_dir
from backtalk_worker.process.memory import give_back_large_blocks
from backtalk_worker.training.domain.adapter import AdaptedNetwork, AdapterShape, adapted, linear_modules
from backtalk_worker.training.domain.batch import BatchItem
from backtalk_worker.training.domain.optimizer import make_optimizer
from backtalk_worker.training.domain.sample import Sample
from backtalk_worker.training.domain.step import take_step
from backtalk_worker.training.domain.teacher import Teacher
from shapes import made_network
from training_step import LAPTOP

HINT_TOKENS = 12


@dataclass(frozen=True)
class LongStep:
    """What one step took; bytes are the most at any time, those of the loaded model among them."""

    tokens: int
    seconds: float
    cpu_seconds: float
    loaded_bytes: int
    peak_bytes: int
    floating_point_operations: float
    """That the result needs: what checkpointing computes again is not counted."""
    bound_passes: int
    phases: dict[str, float]


def main() -> int:
    """Prints seconds and memory of one step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=default_model_dir(), help="folder of the base model")
    parser.add_argument("--shape", help="in place of a folder: a shape by name (test/bench/shapes.py)")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--prompt", type=int, default=9_800, help="tokens of the prompt (default: %(default)s)")
    parser.add_argument("--answer", type=int, default=200, help="tokens of the answer (default: %(default)s)")
    parser.add_argument("--rank", type=int, default=LAPTOP.lora_rank, help="of the adapter (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="of torch (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    give_back_large_blocks()
    dtype = getattr(torch, given.dtype)
    network: Any
    if given.shape is None:
        network = load_model(given.model, dtype=dtype).network.requires_grad_(requires_grad=False)
        network.to(torch.device(given.device))
    else:
        network = made_network(given.shape, given.device, dtype)
    step = long_step(network, given.prompt, given.answer, given.rank)
    if given.json:
        _say(json.dumps({**asdict(step), "rank": given.rank, "config": network.config.to_dict()}, default=str))
        return 0
    _say(f"{given.prompt} + {given.answer} tokens: {step.seconds:.0f} s, {step.cpu_seconds:.0f} s of CPU")
    shown = [f"{name} {seconds:.1f}" for name, seconds in step.phases.items() if seconds >= 0.05]
    _say("seconds by phase: " + ", ".join(shown))
    _say(f"memory: {step.loaded_bytes / 1e9:.2f} GB with the model loaded, {step.peak_bytes / 1e9:.2f} GB at most")
    _say(f"passes by which the step bound was measured: {step.bound_passes}")
    return 0


def long_step(network: Any, prompt_tokens: int, answer_tokens: int, rank: int) -> LongStep:
    """Takes one step on a sample of so many tokens, and says what it took."""
    device = next(network.parameters()).device
    draw = random.Random(0)
    vocabulary = int(network.config.vocab_size)
    # Not of the first ones, among which are those of templates.
    ids = tuple(draw.randrange(vocabulary // 8, vocabulary) for _ in range(prompt_tokens + answer_tokens))
    prompt, answer = ids[:prompt_tokens], ids[prompt_tokens:]
    hinted = (*prompt, *ids[:HINT_TOKENS])
    # Less likely than the model finds chance: a sample that it finds far less likely than its sampler is dropped.
    logprobs = (-25.0,) * answer_tokens
    item = BatchItem(Sample("long", prompt, answer, logprobs, 1.0, -1.0, False, hinted), "", True, hinted)
    recipe = replace(LAPTOP, max_answer_tokens=answer_tokens, max_tokens=10**6, ess_min=0.0, lora_rank=rank)
    phases: dict[str, float] = {}
    last = ("start", time.perf_counter())
    bound_passes = 0

    def progress(phase: str, _number: int, count: int, _loss: float) -> None:
        nonlocal last, bound_passes
        _settle(device)
        now = time.perf_counter()
        phases[last[0]] = phases.get(last[0], 0.0) + now - last[1]
        # Count 0 announces a measurement of the step bound, its micro-batches follow.
        bound_passes += phase == "step_bound" and count > 0
        last = (phase, now)

    # Weights are read from the disk when they are first used.
    with torch.no_grad():
        network(input_ids=torch.tensor([ids[:8]], device=device))
    _forget_peak(device)
    loaded = _bytes(device, "VmRSS")
    started, cpu = time.perf_counter(), time.process_time()
    with adapted(network, AdapterShape(rank, 2 * rank, linear_modules(network)), seed=0) as policy:
        outcome = take_step(
            Teacher(policy, recipe.teacher), make_optimizer(policy, recipe, {}), [item], recipe, 0, progress
        )
        operations = _operations(policy, item, bound_passes)
    progress("end", 0, 0, 0.0)
    if outcome.measurements["samples_trained"] != 1 or not bound_passes:
        raise RuntimeError(f"the step trained nothing: {outcome.samples[0].dropped or 'no gradient'}")
    return LongStep(
        tokens=len(ids),
        seconds=time.perf_counter() - started,
        cpu_seconds=time.process_time() - cpu,
        loaded_bytes=loaded,
        peak_bytes=_bytes(device, "VmHWM"),
        floating_point_operations=operations,
        bound_passes=bound_passes,
        phases=phases,
    )


def _operations(policy: AdaptedNetwork, item: BatchItem, bound_passes: int) -> float:
    """Forward passes of teacher, base, gradient and step bound, and a backward pass that needs no gradient of weights.

    A forward pass: two for each weight and token, and causal attention, half of 4 · tokens² · width for each layer; its
    backward pass takes twice that for attention, and once for the weights. The head is needed on the answer alone.
    """
    decoder: Any = policy.network.decoder
    config = policy.network.model.config
    tokens, answer = item.sample.length, len(item.sample.answer_ids)
    layers = [one for one in decoder.parameters() if one.ndim == 2 and one is not decoder.embed_tokens.weight]
    head: Any = policy.network.head
    weights = 2.0 * (sum(one.numel() for one in layers) * tokens + head.weight.numel() * answer)
    width = config.num_attention_heads * getattr(config, "head_dim", config.hidden_size // config.num_attention_heads)
    attention = 2.0 * config.num_hidden_layers * width * tokens**2
    return (3 + bound_passes) * (weights + attention) + weights + 2 * attention


def _settle(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _forget_peak(device: torch.device) -> None:
    gc.collect()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    else:
        Path("/proc/self/clear_refs").write_text("5")


def _bytes(device: torch.device, field: str) -> int:
    if device.type == "cuda":
        of = torch.cuda.max_memory_allocated if field == "VmHWM" else torch.cuda.memory_allocated
        return of(device)
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
