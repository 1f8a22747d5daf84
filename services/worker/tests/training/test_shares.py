"""A step that several processes share, each a thread here: the same numbers as one, and one error for all of them."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
import torch
from tiny_policy import RECIPE, changed, disturb, items_of, silent, tiny_model, tiny_shape

from backtalk_worker.training.domain.adapter import adapted
from backtalk_worker.training.domain.group import ALONE, shares
from backtalk_worker.training.domain.network import Layout
from backtalk_worker.training.domain.optimizer import make_optimizer, optimizer_state
from backtalk_worker.training.domain.step import take_step
from backtalk_worker.training.domain.teacher import Teacher
from backtalk_worker.training.errors import StepCancelledError

LENGTHS = ((5, 4), (9, 2), (3, 8), (6, 6), (4, 1), (7, 12), (12, 3))
TIGHT = 0.002
RECIPES = {
    "reward": replace(RECIPE, method="binary"),
    "sampled-distillation": replace(RECIPE, method="opd", opd_form="sampled", opd_advantage_clip=0.5),
    "likeliest-tokens": replace(RECIPE, method="opd", opd_form="topk", optimizer_steps=2),
    "both-and-full-kl": replace(RECIPE, kl_beta=0.2),
    "both-and-sampled-kl": replace(RECIPE, kl_beta=0.2, kl_form="sampled", divergence="jeffreys"),
    "a-step-that-is-shrunk": replace(RECIPE, learning_rate=0.1, step_bound=TIGHT),
    "small-micro-batches": replace(RECIPE, micro_batch_tokens=20),
    "a-guard-that-trips": replace(RECIPE, kl_beta=0.1, ess_min=0.999),
    "stale-answers-left-out": replace(RECIPE, staleness_max=0.4),
    "several-steps": replace(RECIPE, optimizer_steps=3, learning_rate=0.05),
}


class Threads:
    """What the threads of one step have in common."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.meeting = threading.Barrier(size, timeout=60)
        self.values: list[Any] = [None] * size


class OfThreads:
    """One thread's view of the group."""

    def __init__(self, threads: Threads, rank: int) -> None:
        self.threads, self.rank, self.size = threads, rank, threads.size

    def apart(self, work: Callable[[], Any]) -> Any:
        found, failed = None, None
        try:
            found = work()
        except Exception as error:
            failed = error
        for each in self.gather(failed):
            if each is not None:
                raise each
        return found

    def gather(self, value: Any) -> list[Any]:
        self.threads.values[self.rank] = value
        self.threads.meeting.wait()
        found = list(self.threads.values)
        self.threads.meeting.wait()
        return found

    def total(self, own: torch.Tensor) -> torch.Tensor:
        return torch.stack(self.gather(own)).sum(0)


def batch():
    """Answers with and without teacher and verdict, one of them absurd to the policy, one left out beforehand."""
    items = items_of(tiny_model(), LENGTHS)
    items[1] = changed(replace(items[1], teacher_prompt=()), advantage=1.0)
    items[2] = changed(items[2], advantage=0.0)
    items[4] = replace(items[4], trained=False, dropped="too_long")
    items[6] = changed(items[6], temperature=0.02, logprobs=(0.0,) * 3)
    return items


def shared_step(size, recipe, items=None, progress=silent, shares_base=False):
    """Of each process: the outcome, the adapter, the optimiser's state.

    Those that share a base meet before each micro-batch, and all take as many; here each has a base of its own.
    """
    threads, given = Threads(size), items or batch()
    groups = [OfThreads(threads, rank) for rank in range(size)] if size > 1 else [ALONE]
    with ExitStack() as stack, ThreadPoolExecutor(size) as pool:
        policies = [
            stack.enter_context(
                adapted(tiny_model(), tiny_shape(tiny_model()), 1, Layout(sharing=group if shares_base else ALONE))
            )
            for group in groups
        ]

        def run(policy, group):
            disturb(policy)
            optimizer = make_optimizer(policy, recipe, {})
            outcome = take_step(Teacher(policy, recipe.teacher), optimizer, given, recipe, 1, progress, group)
            return outcome, policy.tensors(), optimizer_state(policy, optimizer)

        return [one.result() for one in [pool.submit(run, *each) for each in zip(policies, groups, strict=True)]]


def step(recipe, items=None):
    """Of one process."""
    return shared_step(1, recipe, items)[0]


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
@pytest.mark.parametrize(("size", "shares_base"), [(2, False), (3, False), (3, True)])
def test_several_processes_give_what_one_gives(recipe, size, shares_base):
    one, weights, state = step(recipe)
    results = shared_step(size, recipe, shares_base=shares_base)
    for outcome, shared_weights, shared_state in results:
        assert outcome.measurements == pytest.approx(dict(one.measurements), rel=1e-6, abs=1e-9)
        assert [(x.turn, x.dropped) for x in outcome.samples] == [(x.turn, x.dropped) for x in one.samples]
        assert [x.divergence for x in outcome.samples] == pytest.approx([x.divergence for x in one.samples], rel=1e-6)
        assert [x.staleness for x in outcome.samples] == pytest.approx([x.staleness for x in one.samples], rel=1e-6)
        shares = [x.gradient_share for x in one.samples]
        assert [x.gradient_share for x in outcome.samples] == pytest.approx(shares, rel=1e-6, abs=1e-9)
        assert shared_weights.keys() == weights.keys()
        assert all(torch.allclose(shared_weights[name], weights[name], rtol=0, atol=1e-9) for name in weights)
        assert all(torch.allclose(shared_state[name], state[name], rtol=0, atol=1e-9) for name in state)
    # To the last bit among themselves: none of them moves apart from the others.
    assert all(torch.equal(results[0][1][name], other[1][name]) for other in results[1:] for name in weights)


def test_the_recipes_of_these_tests_do_what_their_names_say():
    """A guard that does not trip, or a step that is not shrunk, would show nothing."""
    assert step(RECIPES["a-guard-that-trips"])[0].measurements["guard_ess"] == 1
    assert 0 < step(RECIPES["a-step-that-is-shrunk"])[0].measurements["step_scale"] < 1
    assert 0 < step(RECIPES["stale-answers-left-out"])[0].measurements["samples_stale"] < 6
    assert [one.dropped for one in step(RECIPE)[0].samples][4:] == ["too_long", "", "ratio_too_small"]


@pytest.mark.parametrize("shares_base", [False, True])
def test_more_processes_than_samples_give_the_same_step(shares_base):
    items = items_of(tiny_model(), LENGTHS[:2])
    one, weights, _ = step(replace(RECIPE, kl_beta=0.2), items=items)
    for outcome, shared_weights, _ in shared_step(
        3, replace(RECIPE, kl_beta=0.2), items=items, shares_base=shares_base
    ):
        assert outcome.measurements == pytest.approx(dict(one.measurements), rel=1e-6, abs=1e-9)
        assert all(torch.allclose(shared_weights[name], weights[name], rtol=0, atol=1e-9) for name in weights)


@pytest.mark.parametrize("shares_base", [False, True])
def test_what_stops_one_process_stops_all_of_them(shares_base):
    stopped = []

    def progress(phase, _number, _count, _loss):
        if phase == "forward_backward" and not stopped:
            stopped.append(True)
            raise StepCancelledError

    with pytest.raises(StepCancelledError):
        shared_step(2, RECIPE, progress=progress, shares_base=shares_base)


def test_samples_are_shared_out_by_their_tokens_and_each_is_taken_once():
    shared = shares([100, 1, 1, 1, 50, 50], 2)
    assert shared == [[0, 1, 3], [2, 4, 5]]
    assert shares([3, 2, 9], 1) == [[0, 1, 2]]
    assert shares([7], 3) == [[0], [], []]
