"""One LoRA adapter around a base model, for the time of a step or of a score; the base is left as it was.

Its tensors have the names that vLLM and SGLang load.
"""

# torch annotates its random state in part.
# pyright: reportUnknownMemberType=false

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from torch import Tensor, nn

from backtalk_worker.training.domain.network import PLAIN, ChunkedNetwork, Layout, network_of


@dataclass(frozen=True)
class AdapterShape:
    """What decides an adapter's tensors."""

    rank: int
    alpha: int
    target_modules: tuple[str, ...]


@dataclass(frozen=True)
class AdaptedNetwork:
    """A network whose adapter can be trained, by saved name."""

    network: ChunkedNetwork
    parameters: Mapping[str, nn.Parameter]

    def tensors(self) -> dict[str, Tensor]:
        """Copies of the adapter's tensors."""
        return {name: value.detach().clone() for name, value in self.parameters.items()}

    @torch.no_grad()
    def set_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Sets all tensors; the caller has checked names and shapes with `mismatch`."""
        for name, parameter in self.parameters.items():
            parameter.copy_(tensors[name])

    def mismatch(self, tensors: Mapping[str, Tensor]) -> str:
        """Why these tensors are not this adapter's; empty when they fit."""
        if missing := sorted(self.parameters.keys() - tensors.keys()):
            return f"{len(missing)} tensors are missing, {missing[0]} for one"
        if extra := sorted(tensors.keys() - self.parameters.keys()):
            return f"{len(extra)} tensors are unknown, {extra[0]} for one"
        wrong = [name for name, value in self.parameters.items() if value.shape != tensors[name].shape]
        return f"{wrong[0]} has the wrong shape" if wrong else ""


def linear_modules(model: Any) -> tuple[str, ...]:
    """Names of all linear layers but the output head (whose delta engines leave out of prompt logprobs)."""
    head = model.get_output_embeddings()
    names = {
        name.rpartition(".")[2]
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and module is not head
    }
    return tuple(sorted(names))


@contextmanager
def adapted(
    model: Any, shape: AdapterShape, seed: int, layout: Layout = PLAIN
) -> Generator[AdaptedNetwork, None, None]:
    """Puts a fresh adapter around the model, and takes it off: A by the seed, B zero, so the base's own answers."""
    config = LoraConfig(
        r=shape.rank,
        lora_alpha=shape.alpha,
        lora_dropout=0.0,
        bias="none",
        target_modules=list(shape.target_modules),
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        wrapped = get_peft_model(model, config)
    wrapped.eval()
    named = {
        name.replace(".default.", "."): parameter
        for name, parameter in wrapped.named_parameters()
        if parameter.requires_grad
    }
    try:
        yield AdaptedNetwork(network_of(wrapped, layout), dict(sorted(named.items())))
    finally:
        wrapped.unload()
        # Torch would keep the memory of layers: an engine that shares the card could not start again beside it.
        torch.cuda.empty_cache()


def adapter_config(shape: AdapterShape, base_model: str) -> bytes:
    """adapter_config.json: only fields that vLLM and SGLang both load, in one fixed order: equal means equal bytes."""
    fields = {
        "base_model_name_or_path": base_model,
        "bias": "none",
        "lora_alpha": shape.alpha,
        "lora_dropout": 0.0,
        "peft_type": "LORA",
        "r": shape.rank,
        "target_modules": list(shape.target_modules),
        "task_type": "CAUSAL_LM",
    }
    return (json.dumps(fields, indent=2, sort_keys=True) + "\n").encode()


def rank_and_alpha_in(config: bytes) -> tuple[int, int]:
    """What an adapter_config.json states that may name no layers; ValueError when it states neither."""
    try:
        fields = json.loads(config)
        return int(fields["r"]), int(fields["lora_alpha"])
    except (KeyError, TypeError, UnicodeDecodeError) as error:
        raise ValueError("it lacks rank or alpha") from error


def shape_in(config: bytes) -> AdapterShape:
    """The shape that an adapter_config.json states; ValueError when it states none."""
    try:
        fields = json.loads(config)
        modules = tuple(sorted(map(str, fields["target_modules"])))
        return AdapterShape(int(fields["r"]), int(fields["lora_alpha"]), modules)
    except (KeyError, TypeError, UnicodeDecodeError) as error:
        raise ValueError("the adapter's configuration lacks rank, alpha or target modules") from error
