"""Trains the adapter: towards answers that are preferred, or that rules made, and the plain model's without a wish.

In: the plain model, attempts at rows, a seed. Out: LoRA tensors in a file, at the end and every few minutes.
The base is frozen in bfloat16, the adapter's own numbers are float32; both are what the saved adapter is used with.
"""

import multiprocessing
import random
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import torch.distributed
import torch.nn.functional as F
from peft import LoraConfig, PeftModel, get_peft_model
from torch import Tensor

from backtalk_worker.laptop_model.adapter import ALPHA, RANK, TARGETS, load_adapter, save_adapter
from backtalk_worker.laptop_model.answers import Answered
from backtalk_worker.laptop_model.attempts import Attempted, prompt_of
from backtalk_worker.laptop_model.packing import (
    ATTENTION_NAME,
    Example,
    Packed,
    pack,
    packed_logits,
    register_attention,
)
from backtalk_worker.laptop_model.rows import Row, untold_rows
from backtalk_worker.model.load import LoadedModel, load_model

Say = Callable[[str], None]


@dataclass(frozen=True)
class Recipe:
    """How it is trained."""

    seed: int = 1
    first_layer: int = 8
    """Layers below it stay as they are: what reads words needs no change, and a step costs a quarter less."""
    learning_rate: float = 1e-4
    rise: int = 10
    fall: int = 80
    """Steps at the end in which the learning rate falls to nothing."""
    answer_tokens: int = 56
    """A longer target is left out."""
    untold_tokens: int = 48
    untold_weight: float = 30.0
    """Of a token's divergence from the plain model, against a token's cross-entropy."""
    preferred_weight: float = 10.0
    """Of a pair's log odds, against a token's cross-entropy."""
    preferred_scale: float = 0.1
    """Of the nats by which the better answer gained on the worse (DPO's beta)."""
    save_seconds: float = 240.0
    start: Path | None = None
    """Adapter that it goes on from, the one that made the attempts; a fresh one when left out."""


@dataclass(frozen=True)
class Group:
    """What one step is taken on: the rows of a question."""

    attempted: Sequence[Attempted]
    untold: Sequence[Row]


def groups_of(attempts: Sequence[Sequence[Attempted]], answers: Sequence[Answered], seed: int) -> list[Group]:
    """Of each attempted question its rows and others without a wish, questions in random order."""
    rng = random.Random(seed)
    known = {one.question: one for one in answers}
    return [
        Group(rows, untold_rows(known[rows[0].row.question], answers, rng))
        for rows in rng.sample(list(attempts), len(attempts))
    ]


def batch_of(group: Group, model: LoadedModel, recipe: Recipe) -> tuple[list[list[Example]], int]:
    """The rows of one question, those with a wish first, and how many ids most of their prompts share.

    A row is one example, or two that are compared, the preferred first.
    """
    made = [compared(one, model, recipe) for one in group.attempted]
    made += [[example_of(row, model, recipe)] for row in group.untold]
    question = group.attempted[0].row.question
    shared = [model.render_chat([{"role": "user", "content": question + more}]) for more in ("\n\nA", " aa bb")]
    same = [left == right for left, right in zip(*shared, strict=False)]
    return [one for one in made if len(one[0].answer) <= recipe.answer_tokens], same.index(False)


def compared(one: Attempted, model: LoadedModel, recipe: Recipe) -> list[Example]:
    """The answer that is preferred and the one that is not; what rules made is compared with nothing."""
    if one.good is None:
        return [example_of(one.row, model, recipe)]
    prompt = prompt_of(model, one.row)
    return [Example(prompt, drawn.ids, True, drawn.logprob) for drawn in (one.good, one.bad) if drawn is not None]


def example_of(row: Row, model: LoadedModel, recipe: Recipe) -> Example:
    """A target of a wish ends; the base's own words may be cut."""
    prompt = prompt_of(model, row)
    answer = model.encode(row.answer)
    if row.kinds:
        return Example(prompt, [*answer, model.end_ids[0]], told=True)
    return Example(prompt, answer[: recipe.untold_tokens], told=False)


def adapted(model: LoadedModel, recipe: Recipe) -> Any:
    """The plain model with a fresh adapter, and with attention for examples that lie end to end."""
    register_attention()
    model.network.set_attn_implementation(ATTENTION_NAME)
    config = LoraConfig(
        r=RANK,
        lora_alpha=ALPHA,
        lora_dropout=0.0,
        target_modules=list(TARGETS),
        layers_to_transform=list(range(recipe.first_layer, int(model.network.config.num_hidden_layers))),
        task_type="CAUSAL_LM",
    )
    return get_peft_model(model.network, config)


def train(
    model: LoadedModel,
    groups: Sequence[Group],
    recipe: Recipe,
    out: Path,
    say: Say,
    rank: int = 0,
    processes: int = 1,
) -> None:
    """One step a question; each of several processes takes its part of the examples."""
    torch.manual_seed(recipe.seed)
    network = adapted(model, recipe)
    if recipe.start is not None:
        load_adapter(network, recipe.start)
    weights = [value for value in network.parameters() if value.requires_grad]
    optimiser = torch.optim.AdamW(weights, lr=recipe.learning_rate, weight_decay=0.0)
    began = saved = time.monotonic()
    seen: list[dict[str, float]] = []
    for step, group in enumerate(groups):
        for parameters in optimiser.param_groups:
            parameters["lr"] = rate_at(step, len(groups), recipe)
        units, shared = batch_of(group, model, recipe)
        tokens = sum(len(one.answer) for unit in units for one in unit)
        seen.append(backward(network, units[rank::processes], shared, tokens, recipe))
        add_up(weights, processes)
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimiser.step()
        optimiser.zero_grad()
        if step % 5 == 4 and rank == 0:
            told, untold, margin = (
                _mean([one[name] for one in seen[-20:] if name in one]) for name in ("told", "untold", "margin")
            )
            seconds = time.monotonic() - began
            losses = f"told {told:.3f}, untold {untold:.4f} nats a token, margin {margin:.2f} nats"
            say(f"step {step + 1} of {len(groups)}: {losses}, {seconds:.0f} s")
        if rank == 0 and time.monotonic() - saved > recipe.save_seconds:
            save_adapter(network, out.with_suffix(".part.safetensors"))
            saved = time.monotonic()
    if rank == 0:
        save_adapter(network, out)


def add_up(weights: Sequence[Tensor], processes: int) -> None:
    """Gradients of all processes; one whose examples had none counts as zero."""
    if processes == 1:
        return
    joined = torch.cat([(torch.zeros_like(one) if one.grad is None else one.grad).flatten() for one in weights])
    torch.distributed.all_reduce(joined)
    for one, part in zip(weights, joined.split([one.numel() for one in weights]), strict=True):
        one.grad = part.view_as(one)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))


def rate_at(step: int, steps: int, recipe: Recipe) -> float:
    """A short rise, level for most of the way, a straight fall at the end: a longer run begins like a shorter one."""
    return recipe.learning_rate * min(1.0, (step + 1) / recipe.rise, (steps - step) / recipe.fall)


def backward(
    network: PeftModel, units: Sequence[Sequence[Example]], shared: int, tokens: int, recipe: Recipe
) -> dict[str, float]:
    """Adds the gradient of rows, told ones first, a share of `tokens`; gives the mean losses a token.

    `margin` is by how many nats more an answer gained that is preferred than the other of its row.
    """
    told = [unit for unit in units if unit[0].told]
    untold = [one for [one] in units[len(told) :]]
    answers = [one.answer for unit in told for one in unit]
    count = sum(map(len, answers))
    losses: dict[str, float] = {}
    logits = answer_logits(network, pack([one for unit in units for one in unit], shared))
    loss = torch.zeros(())
    if told:
        wanted = torch.tensor([token for answer in answers for token in answer])
        crossed = F.cross_entropy(logits[:count], wanted, reduction="none").split([len(one) for one in answers])
        nats = iter([part.sum() for part in crossed])
        rows = [[next(nats) for _ in unit] for unit in told]
        kept = torch.stack([row[0] for row in rows]).sum()
        loss, losses["told"] = loss + kept, kept.item() / sum(len(unit[0].answer) for unit in told)
        pairs = [(unit, row) for unit, row in zip(told, rows, strict=True) if len(unit) > 1]
        if pairs:
            margins = torch.stack([_gained(unit, row) for unit, row in pairs])
            loss = loss - recipe.preferred_weight * F.logsigmoid(recipe.preferred_scale * margins).sum()
            losses["margin"] = margins.mean().item()
    if untold:
        with torch.no_grad():
            plain = answer_logits(network, pack(untold, shared), plain=True).log_softmax(-1)
        apart = _between(logits[count:].log_softmax(-1), plain)
        loss, losses["untold"] = loss + recipe.untold_weight * apart, apart.item() / (len(logits) - count)
    (loss / tokens).backward()  # type: ignore[no-untyped-call]
    return losses


def _gained(unit: Sequence[Example], nats: Sequence[Tensor]) -> Tensor:
    """Of the log probability, by the first more than by the second, from where both were drawn."""
    good, bad = (-now - one.before for one, now in zip(unit, nats, strict=True))
    return good - bad


def _between(adapted: Tensor, plain: Tensor) -> Tensor:
    """Half of each direction's divergence, summed over tokens. In: log probabilities, [tokens, vocabulary] each."""
    return 0.5 * ((adapted.exp() - plain.exp()) * (adapted - plain)).sum()


def answer_logits(network: PeftModel, packed: Packed, *, plain: bool = False) -> Tensor:
    """[answer tokens of all examples in order, vocabulary], float32: what predicts each token of the answers."""
    base: Any = network.get_base_model()
    with network.disable_adapter() if plain else nullcontext(), torch.autocast("cpu", torch.bfloat16):
        return packed_logits(base, packed)


def train_in_processes(
    folder: Path, groups: Sequence[Group], recipe: Recipe, out: Path, processes: int, say: Say
) -> None:
    """Processes of one thread each: on a busy machine they wait for each other once a step, not in every layer."""
    with TemporaryDirectory() as name:
        meeting = f"file://{name}/meeting"
        others = [
            multiprocessing.get_context("spawn").Process(
                target=_take_part, args=(folder, groups, recipe, out, (rank, processes), meeting), daemon=True
            )
            for rank in range(1, processes)
        ]
        for other in others:
            other.start()
        _take_part(folder, groups, recipe, out, (0, processes), meeting, say)
        for other in others:
            other.join()


def _take_part(
    folder: Path,
    groups: Sequence[Group],
    recipe: Recipe,
    out: Path,
    place: tuple[int, int],
    meeting: str,
    say: Say = lambda _: None,
) -> None:
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=meeting, rank=place[0], world_size=place[1])
    train(load_model(folder, dtype=torch.bfloat16), groups, recipe, out, say, *place)
    torch.distributed.destroy_process_group()
