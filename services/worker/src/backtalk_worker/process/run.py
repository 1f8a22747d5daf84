"""How a process starts, waits for a signal and ends: the same exit codes and the same one line for both."""

import asyncio
import signal
import sys
import threading
from collections.abc import Callable
from typing import Protocol

from backtalk_worker.process.errors import WorkerError


class Service(Protocol):
    """What is started, until a signal or a failure ends it."""

    async def run(self) -> int:
        """Serves to the end; the exit code."""
        ...


def run_process(name: str, create: Callable[[], Service]) -> int:
    """The exit code: 0 after a signal, 1 with one line on standard error when it can't start, or the service's own."""

    async def serve() -> int:
        # Created on the loop that serves, which gRPC's server belongs to.
        return await create().run()

    try:
        return asyncio.run(serve())
    except (WorkerError, OSError, RuntimeError) as error:
        sys.stderr.write(f"the {name} can't run: {error}\n")
        return 1


def on_signal(stop: Callable[[], None]) -> None:
    """Calls `stop` at SIGINT or SIGTERM; only the main thread of a process gets any."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop)
