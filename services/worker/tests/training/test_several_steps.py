"""Several steps of the optimiser on one batch: what each sample pulled is of all of them."""

from dataclasses import replace

from tiny_policy import RECIPE, disturb, items_of, silent, tiny_model, tiny_shape

from backtalk_worker.training.domain.adapter import adapted
from backtalk_worker.training.domain.optimizer import make_optimizer, optimizer_state
from backtalk_worker.training.domain.step import take_step

LENGTHS = ((5, 4), (9, 2), (3, 8))
# Exact at every token, so that a second step is the same whether or not it is in a batch of its own.
ONCE = replace(RECIPE, method="opd", learning_rate=0.1)


def step(recipe, weights=None, state=None):
    model = tiny_model()
    with adapted(model, tiny_shape(model), 1) as policy:
        disturb(policy)
        if weights is not None:
            policy.set_tensors(weights)
        optimizer = make_optimizer(policy, recipe, state or {})
        outcome = take_step(policy, optimizer, items_of(model, LENGTHS), recipe, 1, silent)
        shares = [sample.gradient_share for sample in outcome.samples]
        return shares, policy.tensors(), optimizer_state(policy, optimizer)


def test_a_share_of_two_steps_lies_between_those_of_each():
    first, weights, state = step(ONCE)
    second, _, _ = step(ONCE, weights, state)
    both, _, _ = step(replace(ONCE, optimizer_steps=2))
    for one, other, share in zip(first, second, both, strict=True):
        assert min(one, other) < share < max(one, other)
