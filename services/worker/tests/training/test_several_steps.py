"""Several steps of the optimiser on one batch: what each sample pulled is of all of them, and what the clip holds."""

from dataclasses import replace

import pytest
from tiny_policy import RECIPE, changed, disturb, items_of, silent, tiny_model, tiny_shape

from backtalk_worker.training.domain.adapter import adapted
from backtalk_worker.training.domain.optimizer import make_optimizer, optimizer_state
from backtalk_worker.training.domain.step import take_step
from backtalk_worker.training.domain.teacher import Teacher

LENGTHS = ((5, 4), (9, 2), (3, 8))
# Exact at every token, so that a second step is the same whether or not it is in a batch of its own.
ONCE = replace(RECIPE, method="opd", learning_rate=0.1)


def step(recipe, weights=None, state=None, **sample):
    """Of a batch whose samples are changed so; the outcome, and what the next step starts from."""
    model = tiny_model()
    with adapted(model, tiny_shape(model), 1) as policy:
        disturb(policy)
        if weights is not None:
            policy.set_tensors(weights)
        optimizer = make_optimizer(policy, recipe, state or {})
        items = [changed(item, **sample) for item in items_of(model, LENGTHS)]
        outcome = take_step(Teacher(policy, recipe.teacher), optimizer, items, recipe, 1, silent)
        return outcome, policy.tensors(), optimizer_state(policy, optimizer)


def test_a_share_of_two_steps_lies_between_those_of_each():
    first, weights, state = step(ONCE)
    second, _, _ = step(ONCE, weights, state)
    both, _, _ = step(replace(ONCE, optimizer_steps=2))
    for one, other, two in zip(first.samples, second.samples, both.samples, strict=True):
        lower, upper = sorted([one.gradient_share, other.gradient_share])
        assert lower < two.gradient_share < upper


def test_several_steps_move_the_ratio_and_the_clip_acts():
    measured = step(replace(RECIPE, method="binary", optimizer_steps=6, learning_rate=0.05))[0].measurements
    assert measured["rho_mean"] != pytest.approx(1.0, abs=1e-3)
    assert measured["clipped_share"] > 0


def test_clipped_share_counts_only_terms_that_the_clip_acts_on():
    several = replace(RECIPE, method="opd", optimizer_steps=6, learning_rate=0.05)
    exact = step(several)[0].measurements
    assert abs(exact["rho_mean"] - 1) > 1e-3 and exact["clipped_share"] == 0
    sampled = replace(several, opd_form="sampled")
    held = step(sampled, advantage=0.0)[0].measurements
    first = step(replace(sampled, distill_share=0.01), advantage=0.0)[0].measurements
    # Of each answer, the clip can hold one token where one is distilled.
    assert held["clipped_share"] > len(LENGTHS) / held["tokens"]
    assert first["clipped_share"] <= len(LENGTHS) / first["tokens"]
