"""Short answers to probe prompts under the new weights, with their logprobs under new and base weights.

An engine that loads the weights must give the same logprobs (parity), and the gap to the base says how far the weights
have drifted. The base is asked twice, as it is and shown the lessons in force: what a lesson asks for is no drift.
Answers are drawn at temperature 1 from a seeded generator, so that the mean gap estimates KL(new ‖ base).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from backtalk_worker.training.domain.frozen_states import score_answers
from backtalk_worker.training.domain.network import ChunkedNetwork
from backtalk_worker.training.domain.sampling import answers_within
from backtalk_worker.training.domain.token_budget import TokenBudget

ANSWER_TOKENS_MAX = 16


@dataclass(frozen=True)
class ProbeAnswer:
    """Ids of one answer with logprobs at temperature 1."""

    prompt_ids: tuple[int, ...]
    answer_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    base_logprobs: tuple[float, ...]
    told_logprobs: tuple[float, ...]
    """Of the base after the prompt that shows the lessons; empty where there is none."""


def answer_probes(
    network: ChunkedNetwork,
    prompts: Sequence[Sequence[int]],
    told_prompts: Sequence[Sequence[int]],
    end_ids: Sequence[int],
    seed: int,
    budget: TokenBudget,
    tick: Callable[[], None],
) -> list[ProbeAnswer]:
    """One answer for each prompt, the same for the same weights and seed.

    `told_prompts` are the same prompts with the lessons in them, or none.
    """
    if not prompts:
        return []
    ones = [1.0] * len(prompts)
    answers = answers_within(budget, network, prompts, ones, end_ids, ANSWER_TOKENS_MAX, seed, tick)

    def score(after: Sequence[Sequence[int]]) -> list[list[float]]:
        return score_answers(network, after, answers, ones, budget, lambda _number, _count: tick())

    new = score(prompts)
    with network.without_adapter():
        base = score(prompts)
        told: list[list[float]] = score(told_prompts) if told_prompts else [[] for _ in prompts]
    return [
        ProbeAnswer(tuple(prompt), tuple(answer), tuple(new_row), tuple(base_row), tuple(told_row))
        for prompt, answer, new_row, base_row, told_row in zip(prompts, answers, new, base, told, strict=True)
    ]
