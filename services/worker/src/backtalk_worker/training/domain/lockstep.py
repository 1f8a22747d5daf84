"""One micro-batch after the other. Where the base is sharded none can be computed alone: all take the same number."""

# torch annotates backward in part.
# pyright: reportUnknownMemberType=false

from collections.abc import Callable, Iterator, Sequence

import torch

from backtalk_worker.training.domain.network import ChunkedNetwork


def micro_batch_by_micro_batch(
    network: ChunkedNetwork, groups: Sequence[Sequence[int]], tick: Callable[[int, int], None], *, trains: bool
) -> Iterator[Sequence[int]]:
    """The groups of this process, each after its tick, which may stop all of them; then idle passes to the end.

    `trains` says whether the passes have a backward pass.
    """
    sharing = network.sharing
    count = max(sharing.gather(len(groups)))
    for number in range(count):
        sharing.apart(lambda number=number: tick(number, count))
        if number < len(groups):
            yield groups[number]
        else:
            _idle(network, trains=trains)


def _idle(network: ChunkedNetwork, *, trains: bool) -> None:
    """One token, and no gradient of it."""
    states = network.answer_states([[0]], [[0]])
    if trains:
        states.backward(torch.zeros_like(states))
