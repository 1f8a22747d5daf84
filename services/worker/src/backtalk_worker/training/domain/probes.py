"""Short answers to probe prompts under the new weights, with their logprobs under new and base weights.

An engine that loads the weights must give the same logprobs (parity), and the gap to the base says how far the weights
have drifted. Answers are drawn at temperature 1 from a seeded generator, so that the mean gap estimates KL(new ‖ base).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from backtalk_worker.training.domain.frozen_states import score_answers
from backtalk_worker.training.domain.network import ChunkedNetwork
from backtalk_worker.training.domain.token_budget import TokenBudget

ANSWER_TOKENS_MAX = 16


@dataclass(frozen=True)
class ProbeAnswer:
    """Ids of one answer with logprobs at temperature 1."""

    prompt_ids: tuple[int, ...]
    answer_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    base_logprobs: tuple[float, ...]


def answer_probes(
    network: ChunkedNetwork,
    prompts: Sequence[Sequence[int]],
    end_ids: Sequence[int],
    seed: int,
    budget: TokenBudget,
    tick: Callable[[], None],
) -> list[ProbeAnswer]:
    """One answer for each prompt, the same for the same weights and seed."""
    if not prompts:
        return []
    answers = _sample(network, prompts, end_ids, torch.Generator().manual_seed(seed), tick)
    ones = [1.0] * len(prompts)

    def score() -> list[list[float]]:
        return score_answers(network, prompts, answers, ones, budget, lambda _number, _count: tick())

    new = score()
    with network.without_adapter():
        base = score()
    return [
        ProbeAnswer(tuple(prompt), tuple(answer), tuple(new_row), tuple(base_row))
        for prompt, answer, new_row, base_row in zip(prompts, answers, new, base, strict=True)
    ]


@torch.no_grad()
def _sample(
    network: ChunkedNetwork,
    prompts: Sequence[Sequence[int]],
    end_ids: Sequence[int],
    generator: torch.Generator,
    tick: Callable[[], None],
) -> list[list[int]]:
    """Plain sampling of all prompts at once, padded on the left; a finished row goes on unread."""
    width = max(map(len, prompts))
    ids = torch.tensor([[0] * (width - len(p)) + list(p) for p in prompts])  # [batch, time]
    seen = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])  # [batch, time]
    places = (seen.cumsum(-1) - 1).clamp(min=0)  # [batch, time]
    answers: list[list[int]] = [[] for _ in prompts]
    ends = set(end_ids)
    cache: Any = None
    for _ in range(ANSWER_TOKENS_MAX):
        tick()
        out = network.model(
            input_ids=ids.to(network.device),
            attention_mask=seen.to(network.device),
            position_ids=places.to(network.device),
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        cache = out.past_key_values
        logits: Tensor = out.logits[:, -1].double().cpu()  # [batch, vocabulary]
        ids = torch.multinomial(logits.softmax(-1), 1, generator=generator)  # [batch, 1]
        for answer, token in zip(answers, ids, strict=True):
            if not (answer and answer[-1] in ends):
                answer.append(int(token))
        # Processes that share the base take the same number of passes, whatever each would say.
        if network.sharing.size == 1 and all(answer[-1] in ends for answer in answers):
            break
        seen = torch.cat([seen, torch.ones(len(prompts), 1, dtype=seen.dtype)], dim=1)
        places = places[:, -1:] + 1
    return network.sharing.gather(answers)[0]
