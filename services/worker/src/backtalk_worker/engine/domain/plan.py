"""Decides which tokens of which rows are computed in the next step.

Rows that are answering get one token each in every step; prompts share what is left, the earliest first, so a long
prompt delays the others by one bounded chunk a step.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Need:
    """What one row still has to compute: tokens, and whether they are its prompt."""

    tokens: int
    is_prompt: bool


@dataclass(frozen=True, slots=True)
class Budget:
    """Prompt tokens a step may compute: beside rows that are answering, and when there are none."""

    beside_answers: int
    alone: int


def plan_step(needs: Sequence[Need], budget: Budget) -> list[int]:
    """Tokens to compute for each row in this step, 0 for rows that wait."""
    answering = any(not need.is_prompt for need in needs)
    left = budget.beside_answers if answering else budget.alone
    counts: list[int] = []
    for need in needs:
        count = min(need.tokens, left) if need.is_prompt else need.tokens
        left -= count if need.is_prompt else 0
        counts.append(count)
    return counts
