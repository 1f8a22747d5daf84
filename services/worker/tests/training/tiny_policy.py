"""A policy small enough to check by hand: a Llama of two layers and 13 tokens in float64, with samples and a recipe.

BACKTALK_TEST_DEVICE=cuda puts it on a card; what it is compared with is computed on the CPU either way.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from backtalk_worker.training.domain.adapter import AdaptedNetwork, AdapterShape, linear_modules
from backtalk_worker.training.domain.batch import BatchItem
from backtalk_worker.training.domain.recipe import Recipe
from backtalk_worker.training.domain.sample import Sample

DEVICE = torch.device(os.environ.get("BACKTALK_TEST_DEVICE", "cpu"))
VOCABULARY = 13

RECIPE = Recipe(
    method="combined",
    opd_form="full",
    divergence="reverse_kl",
    teacher="base",
    ema_decay=0.9,
    weight_rl=0.3,
    weight_opd=0.7,
    lora_rank=2,
    lora_alpha=4,
    learning_rate=1e-2,
    adam_beta1=0.9,
    adam_beta2=0.98,
    weight_decay=0.0,
    gradient_clip=1e9,
    clip_low=0.2,
    clip_high=0.28,
    dual_clip=3.0,
    opd_advantage_clip=0.0,
    top_k=3,
    told_share=0.5,
    distill_share=1.0,
    off_policy="drop",
    step_bound=0.0,
    kl_beta=0.0,
    kl_form="full",
    max_answer_tokens=32,
    micro_batch_tokens=10_000,
    optimizer_steps=1,
    jsd_beta=0.3,
    max_tokens=64,
    staleness_max=0.0,
    ess_min=0.0,
    masked_share_max=0.0,
    mean_answer_length=7.0,
)


def tiny_model(seed: int = 0, width: int = 16) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=width,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        initializer_range=0.4,
        tie_word_embeddings=True,
    )
    model = LlamaForCausalLM(config)
    for layer in (*model.model.layers, model.model):
        for name in ("input_layernorm", "post_attention_layernorm", "norm"):
            if hasattr(layer, name):
                # The model's own norms compute in float32 whatever they are given.
                setattr(layer, name, torch.nn.RMSNorm(width, eps=config.rms_norm_eps))
    torch.nn.Module.to(model, DEVICE)
    return model.double().eval().requires_grad_(False)


def logits_of(model: Any, ids: Sequence[int]) -> torch.Tensor:
    """The model's own, on the CPU: [time, vocabulary]."""
    return model(input_ids=torch.tensor([list(ids)], device=DEVICE)).logits[0].cpu()


def tiny_shape(model: LlamaForCausalLM) -> AdapterShape:
    return AdapterShape(RECIPE.lora_rank, RECIPE.lora_alpha, linear_modules(model))


def disturb(policy: AdaptedNetwork, seed: int = 5, scale: float = 0.06) -> None:
    """Moves a fresh adapter away from the base, so that no term is zero by chance."""
    generator = torch.Generator().manual_seed(seed)
    start = policy.tensors()
    policy.set_tensors(
        {n: t.cpu() + scale * torch.randn(t.shape, generator=generator, dtype=t.dtype) for n, t in start.items()}
    )


def items_of(model: LlamaForCausalLM, lengths: tuple[tuple[int, int], ...], seed: int = 3) -> list[BatchItem]:
    """Samples with random ids whose sampler is near, not equal to, the policy; each has a teacher's prompt."""
    generator = torch.Generator().manual_seed(seed)
    items: list[BatchItem] = []
    for number, (prompt, answer) in enumerate(lengths):
        ids = torch.randint(0, VOCABULARY, (prompt + answer,), generator=generator).tolist()
        with torch.no_grad():
            logits = logits_of(model, ids)[prompt - 1 : -1]
        temperature = 0.8 + 0.1 * (number % 3)
        known = torch.log_softmax(logits / temperature, -1).gather(-1, torch.tensor(ids[prompt:])[:, None])[:, 0]
        sampler = known + 0.05 * torch.randn(answer, generator=generator, dtype=known.dtype)
        hint = torch.randint(0, VOCABULARY, (3,), generator=generator).tolist()
        sample = Sample(
            turn=f"turn_{number}",
            prompt_ids=tuple(ids[:prompt]),
            answer_ids=tuple(ids[prompt:]),
            logprobs=tuple(sampler.clamp(max=0.0).tolist()),
            temperature=temperature,
            advantage=(-1.0, 0.6, 0.0)[number % 3],
            cut=False,
            teacher_prompt_ids=(*ids[:prompt], *hint),
        )
        items.append(BatchItem(sample, "", trained=True, teacher_prompt=(*ids[:prompt], *hint)))
    return items


def changed(item: BatchItem, **fields: object) -> BatchItem:
    return replace(item, sample=replace(item.sample, **fields))  # type: ignore[arg-type]


def silent(_phase: str, _number: int, _count: int, _loss: float) -> None:
    """Progress that nobody reads."""


def relative_error(found: torch.Tensor, expected: torch.Tensor) -> float:
    """Largest error, relative above 1 and absolute below."""
    return float(((found - expected).detach().abs() / expected.detach().abs().clamp(min=1.0)).max())
