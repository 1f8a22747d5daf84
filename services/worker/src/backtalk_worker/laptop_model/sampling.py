"""Many answers of a model at once, by plain sampling.

In: a model, prompts, a seed. Out: answers of each prompt, the same for the same input on one machine.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from backtalk_worker.model.load import LoadedModel

TEMPERATURE = 0.6
"""Lower than where it is served: fewer of the answers that are turned into targets lose the thread."""
TOKENS_MAX = 64
BATCH = 100
LIVE_SHARE = 0.85
"""Where fewer of the answers still go on, those that have ended are computed no further."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Drawn:
    """One answer of the model's own."""

    ids: list[int]
    """With the id of an end, unless it was cut."""
    logprob: float
    """Of all its tokens at temperature 1, nats."""
    text: str
    ended: bool


def answer_all(
    model: LoadedModel,
    prompts: Sequence[str],
    *,
    seed: int,
    temperature: float = TEMPERATURE,
    tokens_max: int = TOKENS_MAX,
    say: Say = lambda _: None,
) -> list[tuple[str, bool]]:
    """One answer a prompt, with whether it ended by itself; prompts of like length are computed together."""
    torch.manual_seed(seed)
    ids = [model.render_chat([{"role": "user", "content": prompt}]) for prompt in prompts]
    drawn = draw_all(model, ids, 1, BATCH, temperature, tokens_max, say)
    return [(one.text, one.ended) for [one] in drawn]


def draw_all(
    model: LoadedModel,
    prompts: Sequence[Sequence[int]],
    copies: int,
    at_once: int,
    temperature: float,
    tokens_max: int,
    say: Say,
) -> list[list[Drawn]]:
    """`copies` answers of each prompt; so many prompts are answered together, those of like length."""
    order = sorted(range(len(prompts)), key=lambda at: len(prompts[at]))
    made: dict[int, list[Drawn]] = {}
    for start in range(0, len(order), at_once):
        places = order[start : start + at_once]
        drawn = draw(model, [prompts[at] for at in places], copies, temperature, tokens_max)
        made |= zip(places, drawn, strict=True)
        say(f"answered {len(made)} of {len(order)}")
    return [made[at] for at in range(len(prompts))]


@torch.inference_mode()
def draw(
    model: LoadedModel, prompts: Sequence[Sequence[int]], copies: int, temperature: float, tokens_max: int
) -> list[list[Drawn]]:
    """No cuts of the distribution. A prompt is read once for all of its answers."""
    longest = max(map(len, prompts))
    ids = torch.tensor([[model.pad_id] * (longest - len(row)) + list(row) for row in prompts])
    seen = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in prompts])
    places = (seen.cumsum(1) - 1).clamp(min=0)
    out = model.network(input_ids=ids, attention_mask=seen, position_ids=places, use_cache=True, logits_to_keep=1)
    cache, logits = out.past_key_values, out.logits[:, -1].repeat_interleave(copies, 0)
    cache.batch_repeat_interleave(copies)
    seen = seen.repeat_interleave(copies, 0)
    told: list[list[int]] = [[] for _ in logits]
    nats = torch.zeros(len(logits))
    going = torch.ones(len(logits), dtype=torch.bool)
    kept = torch.arange(len(logits))
    for _ in range(tokens_max):
        tokens = _pick(logits.float() / temperature)
        picked = logits.float().log_softmax(-1).gather(1, tokens[:, None])[:, 0]
        for at, token in zip(kept.tolist(), tokens.tolist(), strict=True):
            if going[at]:
                told[at].append(token)
        nats[kept] += torch.where(going[kept], picked, 0.0)
        going[kept] &= ~torch.isin(tokens, torch.tensor(model.end_ids))
        live = going[kept]
        if not live.any():
            break
        if int(live.sum()) <= LIVE_SHARE * len(kept):
            cache.batch_select_indices(live.nonzero()[:, 0])
            seen, tokens, kept = seen[live], tokens[live], kept[live]
        seen = torch.cat([seen, torch.ones(len(seen), 1, dtype=seen.dtype)], 1)
        places = seen.sum(1, keepdim=True) - 1
        logits = model.network(
            input_ids=tokens[:, None], attention_mask=seen, position_ids=places, past_key_values=cache, use_cache=True
        ).logits[:, -1]
    ended = [bool(row) and row[-1] in model.end_ids for row in told]
    texts = [model.decode(row[: len(row) - end]).strip() for row, end in zip(told, ended, strict=True)]
    made = [Drawn(*one) for one in zip(told, nats.tolist(), texts, ended, strict=True)]
    return [made[at : at + copies] for at in range(0, len(made), copies)]


def _pick(logits: Tensor) -> Tensor:
    """One id a row, by where a number drawn from 0 to the sum of all falls."""
    sums = logits.softmax(-1).cumsum(-1)
    drawn = torch.rand(len(logits), 1) * sums[:, -1:]
    return torch.searchsorted(sums, drawn)[:, 0].clamp(max=logits.shape[1] - 1)
