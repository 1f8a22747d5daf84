"""Short answers to probe prompts under the new weights, with their logprobs under new and base weights.

An engine that loads the weights must give the same logprobs (parity), and the gap to the base says how far the weights
have drifted. Answers are drawn at temperature 1 from a seeded generator, so that the mean gap estimates KL(new ‖ base).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from backtalk_worker.training.domain.frozen_states import score_answers
from backtalk_worker.training.domain.network import ChunkedNetwork
from backtalk_worker.training.domain.sampling import sample_answers
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
    ones = [1.0] * len(prompts)
    generator = torch.Generator().manual_seed(seed)
    answers = sample_answers(network, prompts, ones, end_ids, ANSWER_TOKENS_MAX, generator, tick)

    def score() -> list[list[float]]:
        return score_answers(network, prompts, answers, ones, budget, lambda _number, _count: tick())

    new = score()
    with network.without_adapter():
        base = score()
    return [
        ProbeAnswer(tuple(prompt), tuple(answer), tuple(new_row), tuple(base_row))
        for prompt, answer, new_row, base_row in zip(prompts, answers, new, base, strict=True)
    ]
