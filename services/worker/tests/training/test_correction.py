"""Weights, masks and drops for tokens that another engine or version sampled."""

import math

import pytest
import torch
from tiny_policy import RECIPE, VOCABULARY

from backtalk_worker.training.domain.correction import (
    bounded_log_ratio,
    effective_share,
    importance_weight,
    sequence_is_off_policy,
    token_mask,
)
from backtalk_worker.training.domain.objective import Tokens, loss_terms


def logs(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64).log()


def test_weight_is_v_up_to_two():
    assert importance_weight(logs(0.3, 1.0, 1.9, 2.1, 4.0)).tolist() == pytest.approx([0.3, 1.0, 1.9, 2.0, 2.0])


def test_tokens_outside_half_to_five_are_masked():
    assert token_mask(logs(0.49, 0.51, 1.0, 4.9, 5.1)).tolist() == [False, True, True, True, False]


def test_one_hopeless_token_drops_its_sequence():
    assert sequence_is_off_policy(logs(1.0, 0.9e-4, 1.0))
    assert not sequence_is_off_policy(logs(1.0, 1.1e-4, 1.0))


def test_log_ratio_is_bounded_by_twenty():
    assert bounded_log_ratio(torch.tensor([50.0]), torch.tensor([-50.0])).item() == 20
    assert bounded_log_ratio(torch.tensor([-50.0]), torch.tensor([50.0])).item() == -20


def test_effective_share_is_one_for_equal_weights_and_falls_to_one_token():
    assert effective_share(torch.ones(8)) == pytest.approx(1.0)
    assert effective_share(torch.tensor([1.0, 0, 0, 0])) == pytest.approx(0.25)


@pytest.mark.parametrize(("v", "expected"), [(1.5, 1.5), (4.0, 2.0), (0.4, 0.0), (6.0, 0.0)])
def test_binary_gradient_carries_the_weight_or_nothing(v, expected):
    student = torch.zeros(1, VOCABULARY, dtype=torch.float64).requires_grad_()
    log_old = torch.tensor([-math.log(VOCABULARY)], dtype=torch.float64)
    yes = torch.ones(1, dtype=torch.bool)
    tokens = Tokens(
        ids=torch.tensor([4]),
        temperature=torch.ones(1).double(),
        log_old=log_old,
        log_sampler=log_old - math.log(v),
        advantage=torch.ones(1).double(),
        cut=~yes,
        taught=~yes,
        distilled=~yes,
        told=~yes,
        kept=yes,
        fresh=yes,
    )
    loss_terms(tokens, student.log_softmax(-1), None, None, RECIPE).binary.backward()
    assert student.grad is not None
    assert student.grad[0, 4].item() == pytest.approx(-expected * (1 - 1 / VOCABULARY), abs=1e-12)
