"""Answers of the network as it stands: with its adapter, or of the frozen base inside `without_adapter`."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from backtalk_worker.training.domain.network import ChunkedNetwork
from backtalk_worker.training.domain.token_budget import TokenBudget, micro_batches

GENERATION_FACTOR = 8
"""A token keeps far less while an answer is made than while it is trained on."""
TOKENS_A_TICK = 8
"""Processes that share the base ask each other at each tick, which costs more than a token of a small model."""


def answers_within(
    budget: TokenBudget,
    network: ChunkedNetwork,
    prompts: Sequence[Sequence[int]],
    temperatures: Sequence[float],
    end_ids: Sequence[int],
    tokens_max: int,
    seed: int,
    tick: Callable[[], None],
) -> list[list[int]]:
    """One answer for each prompt, of as many at once as the budget holds; the same for the same weights and seed."""
    generator = torch.Generator()

    def answered(tokens: int) -> list[list[int]]:
        generator.manual_seed(seed)
        found: dict[int, list[int]] = {}
        for group in micro_batches([len(prompt) + tokens_max for prompt in prompts], GENERATION_FACTOR * tokens):
            given, warmth = [prompts[i] for i in group], [temperatures[i] for i in group]
            answers = sample_answers(network, given, warmth, end_ids, tokens_max, generator, tick)
            found |= zip(group, answers, strict=True)
        return [found[i] for i in range(len(prompts))]

    return budget.spend(answered)


@torch.no_grad()
def sample_answers(
    network: ChunkedNetwork,
    prompts: Sequence[Sequence[int]],
    temperatures: Sequence[float],
    end_ids: Sequence[int],
    tokens_max: int,
    generator: torch.Generator,
    tick: Callable[[], None],
) -> list[list[int]]:
    """Plain sampling of all prompts at once, padded on the left; a finished row goes on unread.

    An answer holds the token that ended it. The same weights and generator give the same answers.
    """
    width = max(map(len, prompts))
    ids = torch.tensor([[0] * (width - len(p)) + list(p) for p in prompts])  # [batch, time]
    seen = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])  # [batch, time]
    places = (seen.cumsum(-1) - 1).clamp(min=0)  # [batch, time]
    warmth = torch.tensor(temperatures, dtype=torch.float64)[:, None]  # [batch, 1]
    answers: list[list[int]] = [[] for _ in prompts]
    ends = set(end_ids)
    cache: Any = None
    sharing = network.layout.sharing
    for place in range(tokens_max):
        if place % TOKENS_A_TICK == 0:
            # Where one is stopped, none goes on into a pass that all take together.
            sharing.apart(tick)
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
        ids = torch.multinomial((logits / warmth).softmax(-1), 1, generator=generator)  # [batch, 1]
        for answer, token in zip(answers, ids, strict=True):
            if not (answer and answer[-1] in ends):
                answer.append(int(token))
        # Processes that share the base take the same number of passes, whatever each would say.
        if sharing.size == 1 and all(answer[-1] in ends for answer in answers):
            break
        seen = torch.cat([seen, torch.ones(len(prompts), 1, dtype=seen.dtype)], dim=1)
        places = places[:, -1:] + 1
    return sharing.gather(answers)[0]
