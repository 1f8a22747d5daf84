"""Answers to probe prompts: how many go through the network at once, and what they hold."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tiny_policy import disturb, tiny_model, tiny_shape

from backtalk_worker.training.domain.adapter import AdaptedNetwork, adapted
from backtalk_worker.training.domain.probes import ANSWER_TOKENS_MAX, ProbeAnswer, answer_probes
from backtalk_worker.training.domain.sampling import GENERATION_FACTOR
from backtalk_worker.training.domain.token_budget import TOKENS_MIN, TokenBudget

PROMPTS = [[1 + at % 12 for at in range(length)] for length in (30, 5, 40, 5, 20, 40, 8, 33)]


@pytest.fixture
def policy() -> Iterator[AdaptedNetwork]:
    model = tiny_model()
    with adapted(model, tiny_shape(model), seed=1) as one:
        disturb(one, scale=2.0)
        yield one


def answered(policy: AdaptedNetwork, tokens: int) -> list[ProbeAnswer]:
    return answer_probes(policy.network, PROMPTS, [], [2], 7, TokenBudget(tokens), lambda: None)


@contextmanager
def memory_for(policy: AdaptedNetwork, tokens_max: int) -> Iterator[list[int]]:
    """Inside, the network has no room for more positions than these; gives how many each of its passes held."""
    held: list[int] = []

    def hold(_decoder: object, _given: object, named: dict[str, Any]) -> None:
        mask = named.get("attention_mask")
        held.append((named["input_ids"] if mask is None else mask).numel())
        if held[-1] > tokens_max:
            raise MemoryError

    hook = policy.network.decoder.register_forward_pre_hook(hold, with_kwargs=True)
    yield held
    hook.remove()


def test_they_are_drawn_within_the_budget_and_in_the_order_of_their_prompts(policy: AdaptedNetwork):
    with memory_for(policy, 10_000) as held:
        answers = answered(policy, TOKENS_MIN)
    assert max(held) <= GENERATION_FACTOR * TOKENS_MIN
    assert [list(answer.prompt_ids) for answer in answers] == PROMPTS
    assert all(1 <= len(answer.answer_ids) <= ANSWER_TOKENS_MAX for answer in answers)
    assert answers == answered(policy, TOKENS_MIN)


def test_fewer_are_drawn_at_once_where_memory_has_no_room_for_all(policy: AdaptedNetwork):
    with memory_for(policy, GENERATION_FACTOR * TOKENS_MIN):
        assert [list(answer.prompt_ids) for answer in answered(policy, 1_000)] == PROMPTS
