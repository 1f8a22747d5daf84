"""Micro-batches side by side: the same bits as one after the other, within what memory allows."""

import threading
from dataclasses import replace

import pytest
import torch
from tiny_policy import RECIPE, changed, disturb, items_of, silent, tiny_model, tiny_shape

from backtalk_worker.training.domain import network as network_module
from backtalk_worker.training.domain.adapter import adapted
from backtalk_worker.training.domain.each_micro_batch import each_micro_batch
from backtalk_worker.training.domain.frozen_states import frozen_states
from backtalk_worker.training.domain.network import Layout
from backtalk_worker.training.domain.optimizer import make_optimizer, optimizer_state
from backtalk_worker.training.domain.step import take_step
from backtalk_worker.training.domain.teacher import Teacher
from backtalk_worker.training.domain.token_budget import TokenBudget
from backtalk_worker.training.errors import StepCancelledError

LENGTHS = ((5, 4), (9, 2), (3, 8), (6, 6), (4, 1), (7, 3), (2, 9))
PATIENCE_S = 20


def step(at_once, **given):
    """A step of micro-batches of one or two answers each: what it gives, in every bit."""
    recipe = replace(RECIPE, micro_batch_tokens=16, optimizer_steps=2, **given)
    model = tiny_model().float()
    items = items_of(model, LENGTHS)
    items[3] = changed(items[3], told=recipe.opd_form == "hybrid")
    with adapted(model, tiny_shape(model), 1, Layout(at_once=at_once)) as policy:
        disturb(policy)
        optimizer = make_optimizer(policy, recipe, {})
        outcome = take_step(Teacher(policy, recipe.teacher), optimizer, items, recipe, 1, silent)
        tensors = policy.tensors() | optimizer_state(policy, optimizer)
        bits = {name: tensor.contiguous().numpy().tobytes() for name, tensor in tensors.items()}
        return bits, dict(outcome.measurements), outcome.samples


@pytest.mark.parametrize(
    "given",
    [
        {"kl_beta": 0.2},
        {"method": "opd", "opd_form": "hybrid", "divergence": "jeffreys"},
        {"method": "opd", "opd_form": "topk"},
    ],
    ids=["both", "told", "likeliest"],
)
@pytest.mark.parametrize("at_once", [2, 3, 16])
def test_a_step_is_the_same_in_every_bit_however_many_are_computed_at_once(at_once, given):
    assert step(at_once, **given) == step(1, **given)


class Meeting:
    """Work that ends once so many of it run at the same time."""

    def __init__(self, parties):
        self.barrier = threading.Barrier(parties)
        self.most = self.running = 0
        self.lock = threading.Lock()

    def __call__(self, group):
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
        self.barrier.wait(PATIENCE_S)
        with self.lock:
            self.running -= 1
        return list(group)


@pytest.fixture
def network():
    model = tiny_model()
    with adapted(model, tiny_shape(model), 1) as policy:
        yield policy.network


def passed(network, at_once, work, tick=lambda *_: None, lengths=(4, 4, 4, 4)):
    network = replace(network, layout=Layout(at_once=at_once))
    return each_micro_batch(network, lengths, 4, tick, work, trains=True)


def test_results_come_in_the_order_of_the_micro_batches(network):
    assert list(passed(network, 2, Meeting(2))) == [[0], [1], [2], [3]]


def test_no_more_run_at_once_than_are_allowed(network):
    work = Meeting(2)
    list(passed(network, 2, work))
    assert work.most == 2


def test_no_more_run_at_once_than_keep_within_the_bound_of_memory(network, monkeypatch):
    # Four tokens of each: two fit, a third does not.
    monkeypatch.setattr(network_module, "KEPT_BYTES_MAX", 11 * network.kept_bytes)
    work = Meeting(2)
    list(passed(network, 4, work))
    assert work.most == 2


def test_one_whose_tokens_alone_are_beyond_the_bound_runs_alone(network, monkeypatch):
    monkeypatch.setattr(network_module, "KEPT_BYTES_MAX", 1)
    work = Meeting(1)
    assert list(passed(network, 4, work)) == [[0], [1], [2], [3]]
    assert work.most == 1


def test_a_pass_that_is_stopped_waits_for_what_runs_and_begins_nothing_more(network):
    ended = []

    def tick(number, _count):
        if number == 2:
            raise StepCancelledError

    def work(group):
        ended.append(list(group))

    with pytest.raises(StepCancelledError):
        list(passed(network, 2, work, tick))
    assert sorted(ended) == [[0], [1]]


def test_the_error_of_one_is_the_error_of_the_pass(network):
    def work(group):
        if 1 in group:
            raise MemoryError
        return group

    with pytest.raises(MemoryError):
        list(passed(network, 2, work))


def test_each_keeps_to_the_callers_threads_of_torch(network):
    assert set(passed(network, 2, lambda _: torch.get_num_threads())) == {torch.get_num_threads()}


@pytest.mark.parametrize("at_once", [1, 2])
def test_states_without_gradient_keep_nothing_for_one(network, at_once):
    network = replace(network, layout=Layout(at_once=at_once))
    states = frozen_states(network, [[1, 2], [3, 4]], [[5, 6], [7, 8]], TokenBudget(4), lambda *_: None)
    assert [one.requires_grad for one in states] == [False, False]
