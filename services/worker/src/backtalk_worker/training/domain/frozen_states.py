"""Hidden states without gradient: of the teacher, of the base, of the policy after a step."""

# torch annotates tolist in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from backtalk_worker.training.domain.each_micro_batch import each_micro_batch
from backtalk_worker.training.domain.network import ChunkedNetwork, answers_in
from backtalk_worker.training.domain.token_budget import TokenBudget

Tick = Callable[[int, int], None]
"""Called before each micro-batch with its number and their count; raises to stop the work."""


def frozen_states(
    network: ChunkedNetwork,
    prompts: Sequence[Sequence[int]],
    answers: Sequence[Sequence[int]],
    budget: TokenBudget,
    tick: Tick,
) -> list[Tensor]:
    """States that predict each answer's tokens: [tokens, hidden] for each answer."""
    lengths = [len(prompt) + len(answer) - 1 for prompt, answer in zip(prompts, answers, strict=True)]

    # Threads have a mode of their own.
    @torch.no_grad()
    def states_of(group: Sequence[int]) -> dict[int, Tensor]:
        states = network.answer_states([prompts[i] for i in group], [answers[i] for i in group])
        return dict(zip(group, answers_in(states, [len(answers[i]) for i in group]), strict=True))

    def work(tokens: int) -> dict[int, Tensor]:
        parts = each_micro_batch(network, lengths, tokens, tick, states_of, trains=False)
        return {index: states for part in parts for index, states in part.items()}

    by_index = budget.spend(work)
    return [by_index[i] for i in range(len(lengths))]


def score_answers(
    network: ChunkedNetwork,
    prompts: Sequence[Sequence[int]],
    answers: Sequence[Sequence[int]],
    temperatures: Sequence[float],
    budget: TokenBudget,
    tick: Tick,
) -> list[list[float]]:
    """Logprobs of given answers, each at its own temperature."""
    states = frozen_states(network, prompts, answers, budget, tick)
    scored: list[list[float]] = []
    for answer, temperature, state in zip(answers, temperatures, states, strict=True):
        ids = torch.tensor(list(answer), device=state.device)
        wide = torch.full((len(ids),), temperature, dtype=torch.float64, device=state.device)
        scored.append(network.token_logprobs(state, ids, wide).tolist())
    return scored
