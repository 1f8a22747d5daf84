"""One sample as others would train on it: by plain PyTorch with PEFT, and by the loss of TRL's GKD trainer.

Both take a forward pass of the teacher (the base, without the adapter), one of the policy with its gradient, layers
computed again, and AdamW. The worker's step does more: it measures KL to the base, and bounds itself.
"""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from torch import Tensor

LEARNING_RATE = 1e-3
STEPS = 2
"""The last is the one that counts: the others compile and allocate."""


@dataclass(frozen=True)
class OtherStep:
    """What one step took; bytes are the most at any time, those of the loaded model among them."""

    seconds: float
    peak_bytes: int


def plain_step(network: Any, prompt_tokens: int, answer_tokens: int, rank: int) -> OtherStep:
    """Logits of the answer alone, Jeffreys' divergence over the vocabulary, as `long_step` takes it."""
    device = next(network.parameters()).device
    ids = _ids(network, prompt_tokens + answer_tokens).to(device)  # [1, tokens]
    with _adapted(network, rank) as policy:
        parameters = [one for one in policy.parameters() if one.requires_grad]
        optimizer = torch.optim.AdamW(parameters, lr=LEARNING_RATE)

        def step() -> None:
            with torch.no_grad(), policy.disable_adapter():
                teacher = _answer_logprobs(policy, ids, answer_tokens)
            student = _answer_logprobs(policy, ids, answer_tokens)
            gap = (student.exp() - teacher.exp()) * (student - teacher)
            (gap.sum(-1) / 2).mean().backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            optimizer.zero_grad()

        return _measured(step, device)


def trl_step(network: Any, prompt_tokens: int, answer_tokens: int, rank: int) -> OtherStep:
    """The loss of `trl.experimental.gkd` (`pip install trl`) by its trainer's own `compute_loss`, without its loop."""
    # Not among what the worker needs.
    from trl.experimental.gkd import GKDTrainer  # type: ignore[import-not-found]

    device = next(network.parameters()).device
    ids = _ids(network, prompt_tokens + answer_tokens).to(device)  # [1, tokens]
    labels = ids.clone()
    labels[:, :prompt_tokens] = -100
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}
    with _adapted(network, rank) as policy:
        parameters = [one for one in policy.parameters() if one.requires_grad]
        optimizer = torch.optim.AdamW(parameters, lr=LEARNING_RATE)
        # Its loop wants a data set, a tokenizer and accelerate's launcher, and adds nothing to a step of one device.
        trainer = object.__new__(GKDTrainer)
        trainer.teacher_model, trainer.beta = _Base(policy), 0.5

        def step() -> None:
            trainer.compute_loss(policy, inputs).backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            optimizer.zero_grad()

        return _measured(step, device)


class _Base:
    """The policy without its adapter, for what calls it as a model."""

    def __init__(self, policy: Any) -> None:
        self._policy = policy

    def eval(self) -> None:
        """It has no dropout."""

    def __call__(self, **inputs: Tensor) -> Any:
        with self._policy.disable_adapter():
            return self._policy(**inputs, use_cache=False)


@contextmanager
def _adapted(network: Any, rank: int) -> Iterator[Any]:
    """The network with LoRA on all of its layers, each of which is computed again."""
    network.gradient_checkpointing_enable({"use_reentrant": False})
    shape = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM")
    policy = get_peft_model(network, shape).train()
    try:
        yield policy
    finally:
        policy.unload()
        network.gradient_checkpointing_disable()
        network.eval().requires_grad_(requires_grad=False)


def _answer_logprobs(policy: Any, ids: Tensor, count: int) -> Tensor:
    """[1, count, vocabulary]."""
    logits: Tensor = policy(input_ids=ids, use_cache=False, logits_to_keep=count + 1).logits
    return logits[:, :-1].float().log_softmax(-1)


def _ids(network: Any, count: int) -> Tensor:
    draw = random.Random(0)
    vocabulary = int(network.config.vocab_size)
    return torch.tensor([[draw.randrange(vocabulary // 8, vocabulary) for _ in range(count)]])


def _measured(step: Any, device: torch.device) -> OtherStep:
    seconds = 0.0
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    for _ in range(STEPS):
        started = time.perf_counter()
        step()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        seconds = time.perf_counter() - started
    return OtherStep(seconds, torch.cuda.max_memory_allocated(device) if device.type == "cuda" else 0)
