"""The processes that take one step together, as a step sees them: each computes its share of the samples.

All call the same methods in the same order. What a step gives does not depend on how many there are, but for rounding.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from torch import Tensor

Result = TypeVar("Result")


class Group(Protocol):
    """Fails as a whole: an error of one is raised by all, and one that is gone is an error of all the others."""

    rank: int
    """0 leads: it alone writes and answers."""
    size: int

    def apart(self, work: Callable[[], Result]) -> Result:
        """Each does its own work, and goes on once all have."""
        ...

    def gather(self, value: Result) -> list[Result]:
        """The values of all, by rank."""
        ...

    def total(self, own: Tensor) -> Tensor:
        """The sum over all, in the order of ranks, at least in float32: the same bits for each of them."""
        ...


class Alone:
    """One process."""

    rank = 0
    size = 1

    def apart(self, work: Callable[[], Result]) -> Result:
        return work()

    def gather(self, value: Result) -> list[Result]:
        return [value]

    def total(self, own: Tensor) -> Tensor:
        return own


ALONE = Alone()


def shares(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Which samples each process computes, in their order: the longest first, each to the one with the least tokens."""
    shared: list[list[int]] = [[] for _ in range(size)]
    tokens = [0] * size
    for index in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        least = tokens.index(min(tokens))
        shared[least].append(index)
        tokens[least] += lengths[index]
    return [sorted(share) for share in shared]
