"""Each term against the stated objective, worked out another way: enumeration of a vocabulary, exact divergences in
probabilities instead of logarithms, and finite differences."""

import math
from dataclasses import replace

import pytest
import torch
from tiny_policy import RECIPE, relative_error
from torch import Tensor

from backtalk_worker.training.domain.binned import Bins
from backtalk_worker.training.domain.divergence import divergence, entropy
from backtalk_worker.training.domain.objective import Terms, Tokens, loss_terms
from backtalk_worker.training.domain.policy_term import (
    Clip,
    binary_advantage,
    clipped_tokens,
    distillation_advantage,
    policy_term,
    sampled_base_kl,
)
from backtalk_worker.training.domain.recipe import DivergenceName

V = 9
CLIP = Clip(0.2, 0.28, 3.0)
UNBOUND = replace(RECIPE, clip_low=0.999, clip_high=1e9, dual_clip=1e9)


def logits(seed: int, rows: int = 1) -> Tensor:
    return torch.randn(rows, V, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 0.4


def every_token(policy: Tensor, old: Tensor, sampler: Tensor, advantage: Tensor | None = None) -> tuple[Tokens, Tensor]:
    """One position, every token of the vocabulary as if it had been sampled; the sampler's probability of each."""
    ids = torch.arange(V)
    log_old, log_sampler = old.log_softmax(-1)[0], sampler.log_softmax(-1)[0]
    yes = torch.ones(V, dtype=torch.bool)
    tokens = Tokens(
        ids=ids,
        temperature=torch.ones(V, dtype=torch.float64),
        log_old=log_old,
        log_sampler=log_sampler,
        advantage=torch.zeros(V, dtype=torch.float64) if advantage is None else advantage,
        cut=~yes,
        taught=yes,
        distilled=yes,
        told=~yes,
        kept=yes,
        fresh=yes,
    )
    return tokens, log_sampler.exp()


def expected_terms(recipe, policy, old, sampler, teacher=None, base=None, advantage=None) -> Terms:
    """Σ_a μ(a) · ℓ(a): the mean of the loss over what the sampler would draw, without drawing."""
    tokens, weights = every_token(policy, old, sampler, advantage)
    student = policy.log_softmax(-1)
    sums = [Terms(*(policy.new_zeros(()) for _ in range(3)))]
    for a in range(V):
        part = loss_terms(
            tokens[a : a + 1],
            student,
            None if teacher is None else teacher.log_softmax(-1),
            None if base is None else base.log_softmax(-1),
            recipe,
        )
        sums.append(Terms(*(weights[a] * x for x in (part.binary, part.opd, part.kl))))
    return Terms(*(torch.stack([getattr(s, f) for s in sums]).sum() for f in ("binary", "opd", "kl")))


def gradient(value: Tensor, at: Tensor) -> Tensor:
    return torch.autograd.grad(value, at, retain_graph=True)[0]


def near(seed: int, centre: Tensor, scale: float = 0.1) -> Tensor:
    return centre + scale * logits(seed)


def test_binary_gradient_is_that_of_the_expected_reward_whatever_sampler_drew():
    policy = logits(1).requires_grad_()
    old, advantage = near(2, policy.detach(), 0.3), logits(3)[0]
    found = expected_terms(replace(UNBOUND, method="binary"), policy, old, near(4, old), advantage=advantage).binary
    objective = -(policy.softmax(-1)[0] * advantage).sum()
    assert relative_error(found, objective) < 1e-5
    assert relative_error(gradient(found, policy), gradient(objective, policy)) < 1e-5


def test_sampled_distillation_without_bound_has_the_gradient_of_the_reverse_kl_at_the_old_policy():
    policy = logits(1).requires_grad_()
    old, teacher = policy.detach().clone(), logits(5)
    recipe = replace(UNBOUND, method="opd", opd_form="sampled", opd_advantage_clip=0.0)
    found = expected_terms(recipe, policy, old, near(4, old), teacher=teacher).opd
    p = policy.softmax(-1)[0]
    exact = (p * (p / teacher.softmax(-1)[0]).log()).sum()
    assert relative_error(found, exact) < 1e-5
    assert relative_error(gradient(found, policy), gradient(exact, policy)) < 1e-5


def binned_terms(recipe, policy, old, teacher, sampled, ends=(4,)):
    tokens, _ = every_token(policy, old, old)
    bins = Bins(old.log_softmax(-1), ends, recipe.top_k)
    at = tokens[sampled : sampled + 1]
    return loss_terms(at, policy.log_softmax(-1), teacher.log_softmax(-1), None, recipe, bins).opd


def test_binned_distillation_without_bound_has_the_gradient_of_the_reverse_kl_between_bins():
    policy = logits(1).requires_grad_()
    old, teacher, sampled = policy.detach().clone(), logits(5) * 3, 7
    recipe = replace(UNBOUND, method="opd", opd_form="topk", opd_advantage_clip=0.0, top_k=2)
    found = binned_terms(recipe, policy, old, teacher, sampled)
    alone = sorted({*old[0].topk(2).indices.tolist(), *teacher[0].topk(2).indices.tolist(), sampled, 4})
    rest = [v for v in range(V) if v not in alone]
    assert rest
    p, q = policy.softmax(-1)[0], teacher.softmax(-1)[0]
    binned = [(torch.stack([x[v] for v in alone] + [x[rest].sum()])) for x in (p, q)]
    exact = (binned[0] * (binned[0] / binned[1]).log()).sum()
    assert relative_error(found, exact) < 1e-5
    assert relative_error(gradient(found, policy), gradient(exact, policy)) < 1e-5


def test_binned_distillation_holds_each_bin_within_the_trust_region_and_each_gap_within_its_bound():
    policy, old, teacher = logits(1).requires_grad_(), logits(2), logits(5) * 3
    recipe = replace(RECIPE, method="opd", opd_form="topk", opd_advantage_clip=0.3, top_k=V)
    found = binned_terms(recipe, policy, old, teacher, 0)
    p, o, q = (x.softmax(-1)[0] for x in (policy, old, teacher))
    gap, ratio = (q / o).log().clamp(-0.3, 0.3), p / o
    objective = torch.minimum(ratio * gap, ratio.clamp(0.8, 1.28) * gap)
    exact = -(o * torch.where(gap < 0, torch.maximum(objective, 3 * gap), objective)).sum()
    assert relative_error(found, exact) < 1e-5
    assert relative_error(gradient(found, policy), gradient(exact, policy)) < 1e-5


def test_sampled_distillation_advantage_is_bounded_on_both_sides():
    teacher, old = torch.tensor([-0.1, -9.0, -1.0]), torch.tensor([-6.0, -1.0, -1.5])
    assert distillation_advantage(teacher, old, 2.0).tolist() == [2.0, -2.0, 0.5]
    assert distillation_advantage(teacher, old, 0.0).tolist() == pytest.approx([5.9, -8.0, 0.5])


@pytest.mark.parametrize("name", ["reverse_kl", "forward_kl", "jeffreys", "jsd"])
def test_full_divergence_equals_its_definition_in_probabilities(name):
    student, teacher = logits(1, 6).requires_grad_(), logits(2, 6) * 3
    p, q, beta = student.softmax(-1), teacher.softmax(-1), 0.3
    m = beta * q + (1 - beta) * p
    exact = {
        "reverse_kl": lambda: (p * (p / q).log()).sum(-1),
        "forward_kl": lambda: (q * (q / p).log()).sum(-1),
        "jeffreys": lambda: ((p - q) * (p / q).log()).sum(-1) / 2,
        "jsd": lambda: beta * (q * (q / m).log()).sum(-1) + (1 - beta) * (p * (p / m).log()).sum(-1),
    }[name]()
    found = divergence(name, student.log_softmax(-1), teacher.log_softmax(-1), beta)
    assert relative_error(found, exact) < 1e-5
    assert relative_error(gradient(found.sum(), student), gradient(exact.sum(), student)) < 1e-5
    assert (found >= 0).all()


@pytest.mark.parametrize("name", ["reverse_kl", "forward_kl", "jeffreys", "jsd"])
def test_full_divergence_gradient_equals_finite_differences(name):
    student, teacher, h = logits(1), logits(2), 1e-6

    def value(x: Tensor) -> Tensor:
        return divergence(name, x.log_softmax(-1), teacher.log_softmax(-1), 0.3).sum()

    at = student.clone().requires_grad_()
    found = gradient(value(at), at)[0]
    steps = h * torch.eye(V, dtype=torch.float64)
    expected = torch.stack([(value(student + d) - value(student - d)) / (2 * h) for d in steps])
    assert relative_error(found, expected) < 1e-5


def test_only_the_forward_half_pulls_at_a_token_that_the_policy_never_samples():
    policy = torch.zeros(1, 6, dtype=torch.float64)
    policy[0, 0] = -30  # what the teacher wants has e^−30 of the mass
    teacher = torch.zeros(1, 6, dtype=torch.float64)
    teacher[0, 0] = 5

    def pull(name: DivergenceName) -> float:
        at = policy.clone().requires_grad_()
        return -float(gradient(divergence(name, at.log_softmax(-1), teacher.log_softmax(-1), 0.5).sum(), at)[0, 0])

    assert abs(pull("reverse_kl")) < 1e-10
    assert abs(pull("jsd")) < 1e-10
    assert pull("jeffreys") == pytest.approx(pull("forward_kl") / 2, rel=1e-6)
    assert pull("forward_kl") > 0.9


def test_full_distillation_ignores_weight_and_token_mask():
    policy = logits(1).requires_grad_()
    recipe = replace(RECIPE, method="opd")
    far = policy.detach() + torch.linspace(-3, 3, V, dtype=torch.float64)
    found = expected_terms(recipe, policy, policy.detach(), far, teacher=logits(5)).opd
    exact = divergence("reverse_kl", policy.log_softmax(-1), logits(5).log_softmax(-1), 0.5).sum()
    assert relative_error(found, exact) < 1e-9


@pytest.mark.parametrize("form", ["full", "sampled"])
def test_base_kl_has_value_and_gradient_of_the_reverse_kl_away_from_the_old_policy(form):
    policy = logits(1).requires_grad_()
    old, base = near(2, policy.detach(), 0.4), logits(6)
    recipe = replace(UNBOUND, kl_beta=1.0, kl_form=form)
    found = expected_terms(recipe, policy, old, near(4, old), base=base).kl
    p = policy.softmax(-1)[0]
    exact = (p * (p / base.softmax(-1)[0]).log()).sum()
    assert relative_error(found, exact) < 1e-5
    assert relative_error(gradient(found, policy), gradient(exact, policy)) < 1e-5


def test_k3_without_the_gradient_through_the_ratio_would_be_another_divergence():
    policy = logits(1).requires_grad_()
    log_policy, log_base = policy.log_softmax(-1)[0], logits(6).log_softmax(-1)[0]
    one = torch.ones(V, dtype=torch.float64)
    weights = log_policy.detach().exp()
    k3_alone = (weights * sampled_base_kl(log_policy, log_policy, log_base, one)).sum()
    p = policy.softmax(-1)[0]
    exact = (p * (log_policy - log_base)).sum()
    assert relative_error(gradient(k3_alone, policy), gradient(exact, policy)) > 1e-3


def reference_policy_loss(ratio: float, weight: float, advantage: float) -> float:
    """The clipped objective in plain arithmetic."""
    clipped = min(max(ratio, 1 - CLIP.low), 1 + CLIP.high)
    objective = min(ratio * advantage, clipped * advantage)
    return -weight * (max(objective, CLIP.dual * advantage) if advantage < 0 else objective)


@pytest.mark.parametrize("advantage", [1.0, -1.0, 0.3, 0.0])
@pytest.mark.parametrize("ratio", [0.5, 0.79, 0.81, 1.0, 1.27, 1.29, 2.9, 3.1, 40.0])
def test_clipped_term_equals_plain_arithmetic_and_its_finite_differences(ratio, advantage):
    log_old = torch.tensor([-1.7], dtype=torch.float64)
    log_policy = (log_old + math.log(ratio)).requires_grad_()
    weight = torch.tensor([1.3], dtype=torch.float64)
    a = torch.tensor([advantage], dtype=torch.float64)
    loss = policy_term(log_policy, log_old, weight, a, CLIP).sum()
    assert loss.item() == pytest.approx(reference_policy_loss(ratio, 1.3, advantage), rel=1e-9, abs=1e-9)
    h = 1e-6
    expected = (
        reference_policy_loss(ratio * math.exp(h), 1.3, advantage)
        - reference_policy_loss(ratio * math.exp(-h), 1.3, advantage)
    ) / (2 * h)
    assert gradient(loss, log_policy).item() == pytest.approx(expected, rel=1e-5, abs=1e-5)
    held = bool(clipped_tokens(log_policy.detach(), log_old, a, CLIP))
    assert held == (advantage != 0 and expected == 0)


def test_log_ratios_are_bounded_before_the_exponential():
    far = torch.tensor([-900.0], dtype=torch.float64)
    loss = policy_term(
        torch.zeros(1).double(),
        far,
        torch.ones(1).double(),
        torch.ones(1).double(),
        Clip(0.999, 1e12, 1e12),
    )
    assert loss.item() == pytest.approx(-math.exp(20.0))


def test_praise_of_a_cut_answer_is_masked_and_blame_is_not():
    advantage = torch.tensor([0.8, -0.8, 0.8, 0.0])
    cut = torch.tensor([True, True, False, True])
    assert binary_advantage(advantage, cut).tolist() == pytest.approx([0.0, -0.8, 0.8, 0.0])


def test_entropy_of_a_uniform_distribution_is_the_logarithm_of_its_size():
    assert entropy(torch.zeros(1, V).double().log_softmax(-1)).item() == pytest.approx(math.log(V))
