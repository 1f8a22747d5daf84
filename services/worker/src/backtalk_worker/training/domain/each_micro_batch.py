"""Micro-batches of one pass: in lockstep where the base is sharded, else side by side as far as memory allows.

Results come in the order of the micro-batches, and each is of its micro-batch alone, so that sums over them are the
same bits whatever ran beside what.
"""

# torch annotates backward in part.
# pyright: reportUnknownMemberType=false

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import torch

from backtalk_worker.training.domain.network import ChunkedNetwork, kept_bytes_max
from backtalk_worker.training.domain.token_budget import micro_batches

Result = TypeVar("Result")


def each_micro_batch(
    network: ChunkedNetwork,
    lengths: Sequence[int],
    token_budget: int,
    tick: Callable[[int, int], None],
    work: Callable[[Sequence[int]], Result],
    *,
    trains: bool,
) -> Iterator[Result]:
    """What `work` gives for each micro-batch of rows of these lengths, each after its tick, which may stop all of them.

    `trains` says whether the passes have a backward pass.
    """
    packed = network.layout.packs
    groups = micro_batches(lengths, token_budget, packed=packed)
    if network.layout.sharing.size > 1:
        return _in_lockstep(network, groups, tick, work, trains=trains)
    sizes = [sum(rows) if packed else len(rows) * max(rows) for rows in ([lengths[i] for i in one] for one in groups)]
    room = kept_bytes_max(network.device) // max(1, network.kept_bytes * max(sizes, default=0))
    return _side_by_side(groups, min(network.layout.at_once, len(groups), room), tick, work)


def _side_by_side(
    groups: Sequence[Sequence[int]],
    at_once: int,
    tick: Callable[[int, int], None],
    work: Callable[[Sequence[int]], Result],
) -> Iterator[Result]:
    if at_once <= 1:
        for number, group in enumerate(groups):
            tick(number, len(groups))
            yield work(group)
        return
    running: deque[Future[Result]] = deque()
    # Each keeps to as many threads of torch as the caller has; an error waits for those that run.
    with ThreadPoolExecutor(
        at_once, "micro-batch", initializer=torch.set_num_threads, initargs=(torch.get_num_threads(),)
    ) as threads:
        for number, group in enumerate(groups):
            if len(running) == at_once:
                yield running.popleft().result()
            tick(number, len(groups))
            running.append(threads.submit(work, group))
        while running:
            yield running.popleft().result()


def _in_lockstep(
    network: ChunkedNetwork,
    groups: Sequence[Sequence[int]],
    tick: Callable[[int, int], None],
    work: Callable[[Sequence[int]], Result],
    *,
    trains: bool,
) -> Iterator[Result]:
    """No process can pass through a sharded base alone: all take the same number of passes, some of them idle."""
    sharing = network.layout.sharing
    count = max(sharing.gather(len(groups)))
    for number in range(count):
        sharing.apart(lambda number=number: tick(number, count))
        if number < len(groups):
            yield work(groups[number])
        else:
            _idle(network, trains=trains)


def _idle(network: ChunkedNetwork, *, trains: bool) -> None:
    """One token, and no gradient of it."""
    with torch.set_grad_enabled(trains):
        states = network.answer_states([[0]], [[0]])
    if trains:
        states.backward(torch.zeros_like(states))
