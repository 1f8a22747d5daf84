"""Many answers of a model at once, by plain sampling.

In: a model, prompts, a seed. Out: an answer a prompt, the same for the same input on one machine.
"""

from collections.abc import Callable, Sequence

import torch

from backtalk_worker.model.load import LoadedModel

TEMPERATURE = 0.6
"""Lower than where it is served: fewer of the answers that are turned into targets lose the thread."""
TOKENS_MAX = 64
BATCH = 100

Say = Callable[[str], None]


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
    order = sorted(range(len(ids)), key=lambda at: len(ids[at]))
    made: dict[int, tuple[str, bool]] = {}
    for start in range(0, len(order), BATCH):
        places = order[start : start + BATCH]
        made |= zip(places, sample(model, [ids[at] for at in places], temperature, tokens_max), strict=True)
        say(f"answered {len(made)} of {len(order)}")
    return [made[at] for at in range(len(ids))]


@torch.inference_mode()
def sample(
    model: LoadedModel, prompts: Sequence[Sequence[int]], temperature: float, tokens_max: int
) -> list[tuple[str, bool]]:
    """Plain sampling, no cuts of the distribution."""
    longest = max(map(len, prompts))
    ids = torch.tensor([[model.pad_id] * (longest - len(row)) + list(row) for row in prompts])
    seen = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in prompts])
    out = model.network.generate(  # type: ignore[operator]
        input_ids=ids,
        attention_mask=seen,
        max_new_tokens=tokens_max,
        do_sample=True,
        temperature=temperature,
        top_k=0,
        top_p=1.0,
        pad_token_id=model.pad_id,
    )
    rows = [row.tolist() for row in out[:, longest:]]
    return [(model.decode(row).strip(), any(end in row for end in model.end_ids)) for row in rows]
