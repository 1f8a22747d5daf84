"""Trains the adapter: cross-entropy on the rules' targets, and the plain model's distribution where no wish stands.

In: the plain model, rows, a seed. Out: LoRA tensors in a file, at the end and every few minutes.
The base is frozen in bfloat16, the adapter's own numbers are float32; both are what the saved adapter is used with.
"""

import multiprocessing
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
from backtalk_worker.laptop_model.packing import ATTENTION_NAME, Example, Packed, pack, register_attention
from backtalk_worker.laptop_model.rows import Row
from backtalk_worker.model.load import LoadedModel, load_model

Say = Callable[[str], None]


@dataclass(frozen=True)
class Recipe:
    """How it is trained."""

    seed: int = 1
    first_layer: int = 8
    """Layers below it stay as they are: what reads words needs no change, and a step costs a quarter less."""
    learning_rate: float = 5e-4
    rise: int = 6
    fall: int = 300
    """Steps at the end in which the learning rate falls to nothing."""
    answer_tokens: int = 56
    """A longer target is left out."""
    untold_tokens: int = 48
    untold_weight: float = 20.0
    """Of a token's divergence from the plain model, against a token's cross-entropy."""
    save_seconds: float = 240.0
    start: Path | None = None
    """Adapter that it goes on from; a fresh one when left out."""


def batch_of(rows: Sequence[Row], model: LoadedModel, recipe: Recipe) -> tuple[list[Example], int]:
    """The rows of one question, those with a wish first, and how many ids most of their prompts share."""
    made = [example_of(row, model, recipe) for row in sorted(rows, key=lambda row: not row.kinds)]
    question = rows[0].question
    shared = [model.render_chat([{"role": "user", "content": question + more}]) for more in ("\n\nA", " aa bb")]
    same = [left == right for left, right in zip(*shared, strict=False)]
    return [one for one in made if len(one.answer) <= recipe.answer_tokens], same.index(False)


def example_of(row: Row, model: LoadedModel, recipe: Recipe) -> Example:
    """A target of a wish ends; the base's own words may be cut."""
    system = [{"role": "system", "content": row.system}] if row.system else []
    prompt = model.render_chat([*system, {"role": "user", "content": row.user}])
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
    groups: Sequence[Sequence[Row]],
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
    for step, rows in enumerate(groups):
        for group in optimiser.param_groups:
            group["lr"] = rate_at(step, len(groups), recipe)
        examples, shared = batch_of(rows, model, recipe)
        mine = examples[rank::processes]
        seen.append(backward(network, mine, shared, sum(len(one.answer) for one in examples), recipe))
        add_up(weights, processes)
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimiser.step()
        optimiser.zero_grad()
        if step % 5 == 4 and rank == 0:
            told, untold = (_mean([one[name] for one in seen[-20:] if name in one]) for name in ("told", "untold"))
            seconds = time.monotonic() - began
            say(f"step {step + 1} of {len(groups)}: told {told:.3f}, untold {untold:.4f} nats a token, {seconds:.0f} s")
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
    network: PeftModel, examples: Sequence[Example], shared: int, tokens: int, recipe: Recipe
) -> dict[str, float]:
    """Adds the gradient of examples, told ones first, a share of `tokens`; gives the mean losses a token."""
    told = [one for one in examples if one.told]
    untold = [one for one in examples if not one.told]
    count = sum(len(one.answer) for one in told)
    losses: dict[str, float] = {}
    logits = answer_logits(network, pack(examples, shared))
    loss = torch.zeros(())
    if told:
        wanted = torch.tensor([token for one in told for token in one.answer])
        crossed = F.cross_entropy(logits[:count], wanted, reduction="sum")
        loss, losses["told"] = loss + crossed, crossed.item() / count
    if untold:
        with torch.no_grad():
            plain = answer_logits(network, pack(untold, shared), plain=True).log_softmax(-1)
        apart = _between(logits[count:].log_softmax(-1), plain)
        loss, losses["untold"] = loss + recipe.untold_weight * apart, apart.item() / (len(logits) - count)
    (loss / tokens).backward()  # type: ignore[no-untyped-call]
    return losses


def _between(adapted: Tensor, plain: Tensor) -> Tensor:
    """Half of each direction's divergence, summed over tokens. In: log probabilities, [tokens, vocabulary] each."""
    return 0.5 * ((adapted.exp() - plain.exp()) * (adapted - plain)).sum()


def answer_logits(network: PeftModel, packed: Packed, *, plain: bool = False) -> Tensor:
    """[answer tokens of all examples in order, vocabulary], float32: what predicts each token of the answers."""
    base: Any = network.get_base_model()
    with network.disable_adapter() if plain else nullcontext(), torch.autocast("cpu", torch.bfloat16):
        states = base.model(
            input_ids=packed.ids, position_ids=packed.positions, use_cache=False, packed=packed
        ).last_hidden_state
        logits: Tensor = base.lm_head(states[0, packed.predicting])
    return logits.float()


def train_in_processes(
    folder: Path, groups: Sequence[Sequence[Row]], recipe: Recipe, out: Path, processes: int, say: Say
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
    groups: Sequence[Sequence[Row]],
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
