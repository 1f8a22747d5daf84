"""How many tokens go through the network at once: fewer after each time that memory ran out, for the rest of the step.

In: work that takes a budget and can be repeated. Out: its result. It never lets a part of failed work count.
"""

from collections.abc import Callable
from typing import TypeVar

import torch

from backtalk_worker.training.errors import OutOfMemoryError

Result = TypeVar("Result")

TOKENS_MIN = 32


class TokenBudget:
    """Tokens of one micro-batch, padding included."""

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
