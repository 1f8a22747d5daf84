"""What is measured of each answer under π_old, and what follows for the step's report.

A divergence to teacher or base is exact, over the whole vocabulary at T = 1, in nats an answer; so is the entropy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from backtalk_worker.training.domain.batch import BatchItem
from backtalk_worker.training.domain.correction import effective_share, staleness, token_mask
from backtalk_worker.training.domain.recipe import Recipe
from backtalk_worker.training.domain.sample import Dropped


@dataclass
class Observation:
    """One answer under π_old."""

    states: Tensor
    """[tokens, hidden]"""
    log_old: Tensor
    """[tokens]"""
    log_v: Tensor
    """[tokens]"""
    kept: bool
    """False when the sequence is too far from π_old to be trained on."""
    fresh: bool = True
    """False when it is too stale for the terms that weigh by v; exact divergences are taken all the same."""
    entropy: float = 0.0
    """Summed over the tokens."""
    entropy_base: float | None = None
    """Of the base on the same tokens, where it was asked."""
    kl_base: float | None = None
    divergence: float | None = None
    gradient: float = 0.0
    """Squared norm of the loss's gradient at the answer's last hidden states, in the newest pass."""
    pulled: float = 0.0
    """The same, summed over the steps of the batch."""

    def without_states(self) -> "Observation":
        """What other processes are told of it."""
        return replace(self, states=self.states.new_empty(0), log_old=self.log_old.cpu(), log_v=self.log_v.cpu())


@dataclass(frozen=True)
class SampleOutcome:
    """What became of one sample."""

    turn: str
    dropped: Dropped
    divergence: float
    staleness: float
    gradient_share: float = 0.0
    """Of the squared norm of the gradient at last hidden states; all samples' are 1, or 0 where nothing pulls."""
    answer_replaced: bool = False
    """The own answer that it was trained on was given in the worker; that of its turn was a teacher's, if anything."""
    hint_chosen: int = 0
    """Of several prompts with hints, the one that its teacher was given; 0 = the first."""


def gradient_shares(items: Sequence[BatchItem], gradients: Mapping[int, float]) -> dict[str, float]:
    """By turn, with what the teacher answered in its place; `gradients` are squared norms by index of the item."""
    whole = sum(gradients.values())
    shares: dict[str, float] = {}
    for index, gradient in gradients.items() if whole > 0 else ():
        turn = items[index].sample.turn
        shares[turn] = shares.get(turn, 0.0) + gradient / whole
    return shares


def sample_outcomes(
    items: Sequence[BatchItem], observed: dict[int, Observation], shares: Mapping[str, float]
) -> list[SampleOutcome]:
    """One outcome for each item, in order; `observed` is by index of the item, `shares` by turn."""
    outcomes: list[SampleOutcome] = []
    for index, item in enumerate(items):
        turn, dropped, divergence, stale = item.sample.turn, item.dropped, 0.0, 0.0
        if (seen := observed.get(index)) is not None:
            dropped = (item.dropped or ("" if seen.fresh else "stale")) if seen.kept else "ratio_too_small"
            divergence, stale = seen.divergence or 0.0, staleness(seen.log_v)
        replaced = not dropped and (item.sample.anew or item.sample.shown)
        share = shares.get(turn, 0.0)
        outcomes.append(SampleOutcome(turn, dropped, divergence, stale, share, replaced, item.hint_chosen))
    return outcomes


def tripped_guards(observed: Sequence[Observation], recipe: Recipe) -> dict[str, float]:
    """Guards of the batch for which terms that weigh by v are left out, as figures of the report; empty = none.

    Judged on the answers that such terms are taken of: where few of them count, or v is out of its bounds on many of
    their tokens, the rest would be moved by the few.
    """
    log_v = [seen.log_v for seen in observed if seen.kept and seen.fresh]
    if not log_v or not recipe.weighs_by_v:
        return {}
    tokens = torch.cat(log_v).double()  # [tokens]
    masked_share = 1 - float(token_mask(tokens).double().mean())
    tripped = {
        "guard_ess": effective_share(tokens.exp()) < recipe.ess_min,
        "guard_masked_share": 0 < recipe.masked_share_max < masked_share,
    }
    return {name: 1.0 for name, has_tripped in tripped.items() if has_tripped}


def batch_measurements(observed: Sequence[Observation]) -> dict[str, float]:
    """Figures of the whole batch; means over tokens, or over answers where they are in nats an answer.

    `masked_share` counts tokens that sampled terms leave out. `ess` is a share, 1 = all. `logprob_difference` is
    mean |log μ − log π_old|, `logprob_bias` the same with its sign.
    """
    if not observed:
        return {}
    log_v = torch.cat([seen.log_v for seen in observed]).double()  # [tokens]
    kept = torch.cat([torch.full_like(seen.log_v, seen.kept, dtype=torch.bool) for seen in observed])  # [tokens]
    fresh = torch.cat([torch.full_like(seen.log_v, seen.fresh, dtype=torch.bool) for seen in observed])  # [tokens]
    v = log_v.exp()
    tokens = log_v.numel()
    measured = {
        "v_mean": float(v.mean()),
        "v_max": float(v.max()),
        "ess": effective_share(v),
        "masked_share": 1 - int((token_mask(log_v) & kept & fresh).sum()) / tokens,
        "logprob_difference": float(log_v.abs().mean()),
        "logprob_bias": float(-log_v.mean()),
        "entropy": sum(seen.entropy for seen in observed) / tokens,
        "tokens": float(int(kept.sum())),
        "samples_trained": float(sum(seen.kept for seen in observed)),
        "samples_stale": float(sum(not seen.fresh for seen in observed)),
    }
    compared = [(seen.entropy, seen.entropy_base) for seen in observed if seen.entropy_base]
    if compared:
        # On the same answers, so that it says nothing about which questions were asked.
        measured["entropy_ratio"] = sum(own for own, _ in compared) / sum(base for _, base in compared)
    for name, values in (
        ("kl_base", [seen.kl_base for seen in observed if seen.kl_base is not None]),
        ("divergence", [seen.divergence for seen in observed if seen.divergence is not None]),
    ):
        if values:
            measured[name] = sum(values) / len(values)
    return measured
