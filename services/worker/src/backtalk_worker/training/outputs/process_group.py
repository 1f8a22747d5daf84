"""The processes of one training group, which torchrun starts: what they tell each other, and how one ends with all.

Rank 0 leads: it gives the orders, the others follow. Gloo carries what is told; gradients go the device's own way.
Where one is gone, or does not answer in time, every other raises `GroupLostError`; torchrun then starts all anew.
"""

import os
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NoReturn, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import DistStoreError
from torch.distributed.distributed_c10d import PrefixStore, get_node_local_rank
from torch.distributed.rendezvous import rendezvous

from backtalk_worker.training.errors import GroupLostError, ProcessFailedError, TrainingWorkerError

Result = TypeVar("Result")

JOIN_TIMEOUT = timedelta(minutes=5)
IDLE_TIMEOUT = timedelta(seconds=30)
"""Of one wait for an order; then the wait begins again."""
LEADERS = "backtalk/leaders"


def is_launched() -> bool:
    """Whether torchrun started this process."""
    return dist.is_torchelastic_launched()


def own_device(device: str) -> str:
    """Each process of a machine has a card of its own, by its number on the machine."""
    return f"cuda:{get_node_local_rank()}" if device == "cuda" and is_launched() else device


def leave(code: int) -> NoReturn:
    """Ends one of a group: its threads may still wait, and abort where the interpreter takes down what is theirs."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


class ProcessGroup:
    """One generation of processes; it is never mended, only lost."""

    def __init__(self, device: str, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        # The store outlives its groups: what an earlier group left in it is another's.
        self._shared, self.rank, self.size = next(rendezvous("env://", timeout=JOIN_TIMEOUT))
        if device == "cuda":
            torch.cuda.set_device(get_node_local_rank())
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        self._own = PrefixStore(f"backtalk/{attempt}", self._shared)
        dist.init_process_group(
            "gloo" if device == "cpu" else f"cpu:gloo,{device}:nccl",
            store=PrefixStore("group", self._own),
            rank=self.rank,
            world_size=self.size,
            timeout=timedelta(seconds=timeout_s),
        )
        self._generation = self._shared.add(LEADERS, 1) if self.rank == 0 else 0
        self._orders = 0
        self._exchanges = 0

    def apart(self, work: Callable[[], Result]) -> Result:
        """Its own result, once all have one; an error of any of them is raised by all."""
        result: Any = None
        failed: Exception | None = None
        try:
            result = work()
        except GroupLostError:
            raise
        except Exception as error:
            failed = error
        errors = self.gather(failed and _portable(failed))
        if failed is not None:
            raise failed
        for error in errors:
            if error is not None:
                raise error
        return result

    def gather(self, value: Result) -> list[Result]:
        self._exchanges += 1
        found: list[Any] = [None] * self.size
        self._exchange(lambda: dist.all_gather_object(found, (self._exchanges, value)))
        if any(number != self._exchanges for number, _ in found):
            raise GroupLostError("its processes do different things")
        return [each for _, each in found]

    def total(self, own: Tensor) -> Tensor:
        """Sums what is gathered, since the order in which a reduction adds is the library's own."""
        wide = own if own.dtype == torch.float64 else own.float()
        parts = [torch.empty_like(wide) for _ in range(self.size)]
        self._exchange(lambda: dist.all_gather(parts, wide.contiguous()))
        total = parts[0]
        for part in parts[1:]:
            total += part
        return total.to(own.dtype)

    def give(self, order: Any) -> None:
        """Rank 0 has the others do what it is about to do."""
        self._orders += 1
        try:
            self._own.set(f"orders/{self._orders}", "")
        except RuntimeError as error:
            raise GroupLostError("its store is gone") from error
        self._exchange(lambda: dist.broadcast_object_list([order]))

    def take(self) -> Any:
        """The next order; a wait has no end, since nothing may happen for days."""
        self._orders += 1
        self._wait_for(f"orders/{self._orders}")
        order = [None]
        self._exchange(lambda: dist.broadcast_object_list(order))
        return order[0]

    def cancel(self) -> None:
        """Has the others stop what they do at their next micro-batch."""
        self._own.set(f"cancelled/{self._orders}", "")

    @property
    def cancelled(self) -> bool:
        """Whether rank 0 wants no more of the order in hand."""
        return self._own.check([f"cancelled/{self._orders}"])

    def check_newest(self) -> None:
        """Before rank 0 answers: no younger group may have been formed, whose answer counts."""
        if self._shared.add(LEADERS, 0) != self._generation:
            raise GroupLostError("a younger one was formed")

    def _wait_for(self, key: str) -> None:
        while True:
            try:
                return self._own.wait([key], IDLE_TIMEOUT)
            except DistStoreError:
                continue
            except RuntimeError as error:
                raise GroupLostError("its store is gone") from error

    def _exchange(self, exchange: Callable[[], Any]) -> None:
        try:
            exchange()
        except RuntimeError as error:
            raise GroupLostError(f"a process of it ended, or did not answer for {self._timeout_s:g} s") from error


def _portable(error: Exception) -> Exception:
    """An error that others can read: one of ours as it is, any other by its name, since it may hold anything."""
    return error if isinstance(error, TrainingWorkerError) else ProcessFailedError(type(error).__name__)
