"""The one thread that computes: takes tickets, steps the batch, and hands updates back to the thread that serves HTTP.

The queue of commands is bounded by the caller, which counts the tickets; nothing here waits while there is work.
"""

import threading
from collections import deque
from collections.abc import Callable

import torch

from backtalk_worker.engine.errors import EngineError, LoopFailedError
from backtalk_worker.engine.events import EngineEvents
from backtalk_worker.engine.outputs.batch import Batch, Updates

Command = Callable[[Batch], object]
Deliver = Callable[[Updates], None]


class GenerationLoop:
    """Runs a batch on a thread of its own from `start` to `stop`."""

    def __init__(
        self, batch: Batch, threads: int, deliver: Deliver, on_death: Callable[[], None], events: EngineEvents
    ) -> None:
        self._threads = threads
        self._batch = batch
        self._deliver = deliver
        self._on_death = on_death
        self._events = events
        self._commands: deque[Command] = deque()
        self._wake = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="generation", daemon=True)

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive() and not self._stopping

    def start(self) -> None:
        self._thread.start()

    def command(self, command: Command) -> None:
        """Queues what is to be done with the batch between two steps."""
        with self._wake:
            self._commands.append(command)
            self._wake.notify()

    def abort_all(self) -> None:
        """Ends every row with finish reason 'abort'."""
        self.command(lambda _: self._end_all(None))

    def stop(self, timeout_s: float = 5.0) -> None:
        """Ends the thread after the running step."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        # The number of threads is a property of the thread that computes, so it is set here.
        torch.set_num_threads(self._threads)
        batch = self._batch
        try:
            while self._take_commands():
                updates = batch.step()
                self._events.stepped(sum(update.token is not None for _, update in updates))
                self._events.load(batch.running, batch.waiting, batch.kv_tokens)
                if updates:
                    self._deliver(updates)
        except Exception as error:
            self._stopping = True
            self._events.loop_failed(error)
            self._end_all(LoopFailedError)
            self._on_death()

    def _take_commands(self) -> bool:
        """Carries out what was queued since the last step; sleeps while there is nothing to do. False = stop."""
        with self._wake:
            while not (self._stopping or self._commands or self._batch.running or self._batch.waiting):
                self._events.load(0, 0, self._batch.kv_tokens)
                self._wake.wait()
            commands = list(self._commands)
            self._commands.clear()
        for command in commands:
            command(self._batch)
        return not self._stopping

    def _end_all(self, kind: type[EngineError] | None) -> None:
        """Ends every row with an error of this kind; None = aborted on purpose."""
        updates = self._batch.end_all(kind and kind())
        for _ in updates:
            self._events.finished("error" if kind else "abort")
        self._deliver(updates)
