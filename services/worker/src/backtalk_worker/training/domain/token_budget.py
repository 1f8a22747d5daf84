"""How many tokens go through the network at once: fewer each time that memory ran out, for the rest of the step."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

from backtalk_worker.training.errors import OutOfMemoryError

Result = TypeVar("Result")

TOKENS_MIN = 32


class TokenBudget:
    """Tokens of one micro-batch, with padding where there is any."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens

    def spend(self, work: Callable[[int], Result]) -> Result:
        """Runs the work whole, with half the budget after each lack of memory."""
        while True:
            try:
                return work(self.tokens)
            except (MemoryError, RuntimeError) as error:
                if not _lack_of_memory(error):
                    raise
                if self.tokens <= TOKENS_MIN:
                    raise OutOfMemoryError(self.tokens) from error
            self.tokens //= 2
            if torch.cuda.is_available():
                torch.cuda.empty_cache()


def _lack_of_memory(error: Exception) -> bool:
    # torch has a class for accelerators only; its CPU allocator says so in words.
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "DefaultCPUAllocator" in str(error)


def micro_batches(lengths: Sequence[int], token_budget: int, *, packed: bool = False) -> list[list[int]]:
    """Groups of indices of similar length whose size keeps the budget: count × longest, or their sum where packed.

    The same lengths give the same groups. A sample longer than the budget goes alone.
    """
    groups: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        # Lengths ascend, so the newcomer is the longest of its group.
        padded = (len(groups[-1]) + 1) * lengths[index] if groups else 0
        size = sum(lengths[i] for i in groups[-1]) + lengths[index] if groups and packed else padded
        if groups and size <= token_budget:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups
