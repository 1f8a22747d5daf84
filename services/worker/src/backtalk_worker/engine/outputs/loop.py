"""The one thread that computes: takes tickets, steps the batch, and hands updates back to the thread that serves HTTP.

In: tickets and cancellations from any thread. Out: one call of `deliver` per step, with all rows' updates.
The inbox is bounded by whoever counts the tickets; nothing here waits while there is work.
"""

import threading
from collections import deque
from collections.abc import Callable

import torch

from backtalk_worker.engine import errors
from backtalk_worker.engine.events import Events
from backtalk_worker.engine.outputs.batch import Batch, Ticket, Update, Updates

Deliver = Callable[[Updates], None]
Command = Callable[[Batch], None]


class GenerationLoop:
    """Runs a batch on a thread of its own from `start` to `stop`."""

    def __init__(
        self, batch: Batch, threads: int, deliver: Deliver, on_death: Callable[[], None], events: Events
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

    def submit(self, ticket: Ticket) -> None:
        """Queues a row; it joins between two steps."""
        self._command(lambda batch: batch.add(ticket))

    def cancel(self, ticket: Ticket) -> None:
        """Takes a row out between two steps; nothing more is delivered for it."""
        self._command(lambda batch: batch.cancel(ticket))

    def forget_adapter(self, serial: int) -> None:
        """Frees what is remembered for an unloaded adapter."""
        self._command(lambda batch: batch.forget_adapter(serial))

    def abort_all(self) -> None:
        """Ends every row with finish reason 'abort'."""
        self._command(lambda batch: self._end_all(batch, None))

    def stop(self, timeout_s: float = 5.0) -> None:
        """Ends the thread after the step in hand."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def _command(self, command: Command) -> None:
        with self._wake:
            self._commands.append(command)
            self._wake.notify()

    def _run(self) -> None:
        # The number of threads is a property of the thread that computes, so it is set here.
        torch.set_num_threads(self._threads)
        try:
            while self._take_commands():
                updates = self._step()
                if updates:
                    self._deliver(updates)
        except Exception as error:
            self._stopping = True
            self._events.loop_failed(error)
            self._end_all(self._batch, errors.loop_failed())
            self._on_death()

    def _take_commands(self) -> bool:
        """Carries out what was asked since the last step; sleeps while there is nothing to do. False = stop."""
        with self._wake:
            while not (self._stopping or self._commands or self._batch.running or self._batch.waiting):
                self._events.load(0, 0, self._batch.kv_tokens)
                self._wake.wait()
            commands = list(self._commands)
            self._commands.clear()
        for command in commands:
            command(self._batch)
        return not self._stopping

    def _step(self) -> Updates:
        with self._events.step() as step:
            updates = self._batch.step()
            step.tokens = len(updates)
        self._events.load(self._batch.running, self._batch.waiting, self._batch.kv_tokens)
        return updates

    def _end_all(self, batch: Batch, error: errors.EngineError | None) -> None:
        """Tells every row's caller that it is over; `error` None = aborted on purpose."""
        tickets = batch.cancel_all()
        for _ in tickets:
            self._events.finished("abort" if error is None else "error")
        self._deliver([(ticket, Update(None, error=error, aborted=error is None)) for ticket in tickets])
