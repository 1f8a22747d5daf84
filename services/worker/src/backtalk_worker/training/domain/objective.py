"""The loss of some answer tokens: the terms of the method, each apart, before weights and normaliser.

L = (w_rl · binary + w_opd · opd + β · kl) / (N · L̄), N the samples of the whole batch, L̄ a constant length: a token
weighs the same in a short and in a long answer, and in any split into micro-batches.
"""

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from backtalk_worker.training.domain.binned import Bins, binned_term
from backtalk_worker.training.domain.correction import bounded_log_ratio, importance_weight, token_mask
from backtalk_worker.training.domain.divergence import divergence, forward_kl, reverse_kl
from backtalk_worker.training.domain.network import sampled_logprobs
from backtalk_worker.training.domain.policy_term import (
    Clip,
    binary_advantage,
    clipped_tokens,
    distillation_advantage,
    policy_term,
    sampled_base_kl,
)
from backtalk_worker.training.domain.recipe import Recipe


@dataclass(frozen=True)
class Tokens:
    """Constants of answer tokens; every tensor is [tokens]."""

    ids: Tensor
    temperature: Tensor
    log_old: Tensor
    """Under π_old."""
    log_sampler: Tensor
    """Under μ."""
    advantage: Tensor
    cut: Tensor
    taught: Tensor
    """True where the sample has a teacher."""
    distilled: Tensor
    """True where it has one and the token is one of those that are distilled."""
    kept: Tensor
    """False where the whole sequence is dropped."""
    told: Tensor
    """True where the answer is the teacher's own."""
    fresh: Tensor
    """False where the sequence is too stale for the terms that weigh by v."""

    def __getitem__(self, part: slice) -> "Tokens":
        return Tokens(*(getattr(self, field.name)[part] for field in fields(self)))


@dataclass(frozen=True)
class Terms:
    """Sums over tokens, scalars."""

    binary: Tensor
    opd: Tensor
    kl: Tensor

    def weighted(self, recipe: Recipe) -> Tensor:
        """w_rl · binary + w_opd · opd + β · kl, still a sum over tokens."""
        weight_rl, weight_opd = recipe.term_weights
        return weight_rl * self.binary + weight_opd * self.opd + recipe.kl_beta * self.kl


def clip_of(recipe: Recipe) -> Clip:
    """The trust region of a recipe."""
    return Clip(recipe.clip_low, recipe.clip_high, recipe.dual_clip)


def loss_terms(
    tokens: Tokens,
    student: Tensor,
    teacher: Tensor | None,
    base: Tensor | None,
    recipe: Recipe,
    bins: Bins | None = None,
) -> Terms:
    """The terms that the recipe asks for; the others are 0. Log-probabilities are [tokens, vocabulary], at T = 1.

    Exact divergences use neither the turn's temperature nor the weight w nor the token mask; sampled forms use all
    three, and leave stale sequences out. Both take a sample's distilled tokens alone. A sequence that is dropped is in
    none. `teacher` is None when no token is taught, `base` when β is 0, `bins` unless the form is `topk`, which is
    exact, too.
    """
    weight_rl, weight_opd = recipe.term_weights
    nothing = student.new_zeros(())
    log_policy = sampled_logprobs(student, tokens.ids, tokens.temperature)
    return Terms(
        binary=_binary(tokens, log_policy, recipe) if weight_rl else nothing,
        opd=_opd(tokens, log_policy, student, teacher, recipe, bins) if weight_opd and teacher is not None else nothing,
        kl=_kl(tokens, log_policy, student, base, recipe) if recipe.kl_beta and base is not None else nothing,
    )


def clipped_count(tokens: Tokens, log_policy: Tensor, teacher: Tensor | None, recipe: Recipe) -> int:
    """Tokens of which the trust region holds a term's gradient at 0, of the terms that the recipe takes.

    Exact divergences know no clip; what it holds of the bins of `topk` is not counted.
    """
    weight_rl, weight_opd = recipe.term_weights
    _, taken = _weighed(tokens)
    held = torch.zeros_like(taken)
    if weight_rl:
        advantage = binary_advantage(tokens.advantage, tokens.cut)
        held |= clipped_tokens(log_policy, tokens.log_old, advantage, clip_of(recipe))
    if weight_opd and recipe.opd_form == "sampled" and teacher is not None:
        advantage = _distillation_advantage(tokens, teacher, recipe)
        held |= tokens.distilled & clipped_tokens(log_policy, tokens.log_old, advantage, clip_of(recipe))
    return int((held & taken).sum())


def _weighed(tokens: Tokens) -> tuple[Tensor, Tensor]:
    """The weight w of each token, and True for tokens of which a term that weighs by v is taken."""
    log_v = bounded_log_ratio(tokens.log_old, tokens.log_sampler)
    return importance_weight(log_v), tokens.kept & tokens.fresh & ~tokens.told & token_mask(log_v)


def _masked_sum(loss: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask, loss, torch.zeros_like(loss)).sum()


def _binary(tokens: Tokens, log_policy: Tensor, recipe: Recipe) -> Tensor:
    weight, taken = _weighed(tokens)
    advantage = binary_advantage(tokens.advantage, tokens.cut)
    return _masked_sum(policy_term(log_policy, tokens.log_old, weight, advantage, clip_of(recipe)), taken)


def _opd(
    tokens: Tokens, log_policy: Tensor, student: Tensor, teacher: Tensor, recipe: Recipe, bins: Bins | None
) -> Tensor:
    if bins is not None:
        loss = binned_term(student, teacher, tokens.ids, bins, clip_of(recipe), recipe.opd_advantage_clip)
        return _masked_sum(loss, tokens.kept & tokens.distilled)
    if recipe.opd_form in ("full", "hybrid"):
        exact = _divergences(tokens, student, teacher, recipe)
        return _masked_sum(exact, tokens.kept & tokens.distilled)
    weight, taken = _weighed(tokens)
    advantage = _distillation_advantage(tokens, teacher, recipe)
    loss = policy_term(log_policy, tokens.log_old, weight, advantage, clip_of(recipe))
    return _masked_sum(loss, tokens.distilled & taken)


def _divergences(tokens: Tokens, student: Tensor, teacher: Tensor, recipe: Recipe) -> Tensor:
    """Of the policy's own answers the recipe's divergence, of the teacher's the forward KL. [tokens]."""
    if not tokens.told.any():
        return divergence(recipe.divergence, student, teacher, recipe.jsd_beta)
    told = forward_kl(student, teacher)
    if tokens.told.all():
        return told
    return torch.where(tokens.told, told, divergence(recipe.divergence, student, teacher, recipe.jsd_beta))


def _distillation_advantage(tokens: Tokens, teacher: Tensor, recipe: Recipe) -> Tensor:
    log_teacher = sampled_logprobs(teacher, tokens.ids, tokens.temperature)
    return distillation_advantage(log_teacher, tokens.log_old, recipe.opd_advantage_clip)


def _kl(tokens: Tokens, log_policy: Tensor, student: Tensor, base: Tensor, recipe: Recipe) -> Tensor:
    if recipe.kl_form == "full":
        return _masked_sum(reverse_kl(student, base), tokens.kept & ~tokens.told)
    weight, taken = _weighed(tokens)
    log_base = sampled_logprobs(base, tokens.ids, tokens.temperature)
    return _masked_sum(sampled_base_kl(log_policy, tokens.log_old, log_base, weight), taken)
