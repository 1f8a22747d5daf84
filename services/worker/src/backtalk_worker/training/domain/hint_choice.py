"""Of several hints for one answer, the one under which teacher and policy agree most on what may come next.

At each place of the answer, how many of the teacher's k likeliest tokens are among the policy's k likeliest; the mean
over the answer decides. What a teacher says who would have gone on in quite another way is of little use to the answer
that was given: hardly any of its likely tokens is one that the policy would try.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from backtalk_worker.training.domain.batch import BatchItem
from backtalk_worker.training.domain.frozen_states import frozen_states
from backtalk_worker.training.domain.network import ChunkedNetwork
from backtalk_worker.training.domain.teacher import Teacher
from backtalk_worker.training.domain.token_budget import TokenBudget

LIKELIEST = 20
"""k, where the recipe names none."""


def with_chosen_hints(
    teacher: Teacher,
    items: Sequence[BatchItem],
    likeliest: int,
    context: int,
    budget: TokenBudget,
    tick: Callable[[], None],
) -> list[BatchItem]:
    """The items, each with the teacher's prompt that is chosen; of equal ones the first.

    An answer that was given with lessons shown, or that is none of the policy's, has nothing to be compared on.
    """
    several = {i: _prompts(item, context) for i, item in enumerate(items) if item.teacher_prompt}
    several = {i: prompts for i, prompts in several.items() if len(prompts) > 1 and not items[i].sample.shown}
    if not several:
        return list(items)
    size = likeliest or LIKELIEST
    answers = {i: items[i].sample.answer_ids for i in several}
    plain = {(i, 0): items[i].sample.prompt_ids for i in several}
    policy = _likeliest(teacher.policy.network, plain, answers, size, budget, tick)
    hinted = {(i, at): prompt for i, prompts in several.items() for at, prompt in prompts.items()}
    with teacher.present() as network:
        taught = _likeliest(network, hinted, answers, size, budget, tick)
    chosen = list(items)
    for i, prompts in several.items():
        shares = {at: overlap(policy[i, 0], taught[i, at]) for at in prompts}
        best = max(shares, key=lambda at: (shares[at], -at))
        chosen[i] = replace(items[i], teacher_prompt=prompts[best], hint_chosen=best)
    return chosen


def overlap(one: Tensor, other: Tensor) -> float:
    """Mean share of tokens that both have. [tokens, k], [tokens, k] → 0 to 1."""
    return float((one[:, :, None] == other[:, None, :]).any(-1).double().mean())


def _prompts(item: BatchItem, context: int) -> dict[int, tuple[int, ...]]:
    """By number; those that the context has no room for are none."""
    all_of_them = (item.sample.teacher_prompt_ids, *item.sample.other_teacher_prompts)
    room = context - len(item.sample.answer_ids)
    return {at: prompt for at, prompt in enumerate(all_of_them) if 0 < len(prompt) <= room}


def _likeliest(
    network: ChunkedNetwork,
    prompts: Mapping[tuple[int, int], Sequence[int]],
    answers: Mapping[int, Sequence[int]],
    size: int,
    budget: TokenBudget,
    tick: Callable[[], None],
) -> dict[tuple[int, int], Tensor]:
    """Ids of the likeliest tokens at each place of each answer: [tokens, k]."""
    states = frozen_states(
        network,
        list(prompts.values()),
        [answers[i] for i, _ in prompts],
        budget,
        lambda _number, _count: tick(),
    )
    return dict(zip(prompts, (_top(network, part, size) for part in states), strict=True))


@torch.no_grad()
def _top(network: ChunkedNetwork, states: Tensor, size: int) -> Tensor:
    parts = [network.log_probabilities(states[part]) for part in network.chunks(len(states))]
    return torch.cat([part.topk(min(size, part.shape[-1])).indices for part in parts])
