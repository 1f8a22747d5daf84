"""How far a step may move the answers, and what of that is only rounding."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from tiny_policy import RECIPE, disturb, items_of, silent, tiny_model, tiny_shape

from backtalk_worker.training.domain.adapter import adapted
from backtalk_worker.training.domain.optimizer import make_optimizer
from backtalk_worker.training.domain.step import take_step
from backtalk_worker.training.domain.step_bound import (
    PLACES,
    BoundedStep,
    fit_without_rounding,
    kl_without_rounding,
    shrink_to_fit,
)
from backtalk_worker.training.domain.teacher import Teacher


def test_shrinking_follows_the_square_root_within_its_limits_and_stops_after_six():
    asked = []

    def quadratic(scale):
        asked.append(scale)
        return 8.0 * scale**2

    fitted = shrink_to_fit(quadratic, 2.0)
    assert asked == [1.0, pytest.approx(0.95 * 0.5)]
    assert fitted.kl == pytest.approx(8.0 * 0.475**2)
    assert shrink_to_fit(lambda scale: 1e9 if scale == 1 else 0.0, 1.0).scale == pytest.approx(0.1)
    just_above = shrink_to_fit(lambda scale: 1.0001 if scale == 1 else 1.0, 1.0)
    assert just_above.scale == pytest.approx(0.95 / 1.0001**0.5, rel=1e-12)
    stubborn = []
    fitted = shrink_to_fit(lambda scale: stubborn.append(scale) or 5.0, 1.0)
    assert stubborn == pytest.approx([(0.95 / 5.0**0.5) ** attempt for attempt in range(7)], rel=1e-12)
    assert (fitted.scale, fitted.kl) == (stubborn[-1], 5.0)
    assert shrink_to_fit(lambda scale: math.nan if scale == 1 else 0.5, 1.0).scale == pytest.approx(0.1)


def test_what_coarse_numbers_round_at_any_step_counts_as_none_of_it():
    fitted = fit_without_rounding(lambda scale: 1.1 + 8.0 * scale**2, lambda: 8.0, 2.0)
    assert (fitted.scale, fitted.kl) == pytest.approx((0.475, 8.0 * 0.475**2))
    assert fit_without_rounding(lambda _: 1.1, lambda: 0.01, 0.5) == BoundedStep(1.0, 0.01)
    assert fit_without_rounding(lambda _: 0.4, lambda: math.nan, 0.5) == BoundedStep(1.0, 0.4)
    assert fit_without_rounding(lambda scale: math.inf if scale == 1 else 0.1, lambda: 0.0, 0.5).scale == 0.1


def test_a_divergence_in_coarse_numbers_that_is_not_a_number_once_the_step_is_shrunk_stays_none():
    known = {1.0: 2.0, PLACES[0]: 0.1}
    assert math.isnan(fit_without_rounding(lambda scale: known.get(scale, math.nan), lambda: 0.0, 0.5).kl)


def test_a_large_step_in_coarse_numbers_is_shrunk_though_its_covariance_sees_little():
    def flips(scale):
        """A token that was rare becomes the likeliest: KL of a few nats, most of it at the end."""
        return 1.1 + 60.0 * scale**3

    fitted = fit_without_rounding(flips, lambda: 0.1, 40.0)
    assert fitted.scale < 0.9
    assert 0 < fitted.kl <= 40.0


def test_the_covariance_of_a_step_that_makes_a_rare_token_likely_is_less_than_its_divergence():
    start = torch.zeros(1, 50, dtype=torch.float64)
    change = torch.zeros(1, 50, dtype=torch.float64)
    start[0, 0], change[0, 0] = -6.0, 12.0
    rows = [(start + share * change).log_softmax(-1) for share in (0, *PLACES, 1)]
    exact = float((rows[0].exp() * (rows[0] - rows[3])).sum())
    assert exact > 1
    assert float(kl_without_rounding(*rows).sum()) < exact / 2


def test_the_divergence_of_a_step_is_found_among_roundings_that_are_larger():
    generator = torch.Generator().manual_seed(2)
    tokens, vocabulary = 400, 50

    def noise(scale):
        return scale * torch.randn(tokens, vocabulary, generator=generator, dtype=torch.float64)

    start, change = noise(2.0), noise(0.05)
    exact = [(start + share * change).log_softmax(-1) for share in (0, *PLACES, 1)]
    coarse = [(values + noise(0.1)).log_softmax(-1) for values in exact]

    def kl(before, after):
        return float((before.exp() * (before - after)).sum())

    assert float(kl_without_rounding(*exact).sum()) == pytest.approx(kl(exact[0], exact[3]), rel=0.02)
    assert kl(coarse[0], coarse[3]) > 5 * kl(exact[0], exact[3])
    assert float(kl_without_rounding(*coarse).sum()) == pytest.approx(kl(exact[0], exact[3]), rel=0.3)


def test_a_step_in_numbers_of_16_bits_is_not_shrunk_for_their_rounding():
    items = items_of(tiny_model(), ((5, 30), (9, 30), (3, 30), (6, 30)) * 2)

    def scale_and_kl(bound):
        recipe = replace(RECIPE, method="opd", learning_rate=1e-4, step_bound=bound)
        model: Any = tiny_model()
        model = model.to(torch.bfloat16)
        with adapted(model, tiny_shape(model), 1) as policy:
            disturb(policy)
            outcome = take_step(Teacher(policy), make_optimizer(policy, recipe, {}), items, recipe, 1, silent)
        return outcome.measurements["step_scale"], outcome.measurements["kl_step"]

    _, rounded = scale_and_kl(0.0)
    scale, own = scale_and_kl(0.99 * rounded)
    assert scale == 1
    assert 0 < own < 0.99 * rounded
    smaller, kl = scale_and_kl(own / 4)
    assert 0 < smaller < 1
    assert kl < own


def test_no_bound_measures_once():
    asked = []
    assert shrink_to_fit(lambda scale: asked.append(scale) or 3.0, 0.0).scale == 1
    assert asked == [1.0]
