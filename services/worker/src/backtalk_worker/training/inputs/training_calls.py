"""One step at a time, and each call id one step: a second call joins the first while it runs, and repeats its end.

A step that no caller waits for any more is stopped at its next micro-batch.
"""

import asyncio
import hashlib
import threading
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from concurrent.futures import Executor

from backtalk_worker.gen.backtalk.v1.training_pb2 import TrainProgress, TrainRequest, TrainResponse, TrainResult
from backtalk_worker.training.domain.step import Progress
from backtalk_worker.training.errors import BlobMissingError, CallIdReusedError, StepCancelledError, TrainingBusyError
from backtalk_worker.training.events import TrainingEvents
from backtalk_worker.training.outputs.blob_cache import MADE, BlobCache

RESULTS_MAX = 4
"""Finished steps whose result can be repeated without taking them again."""
RESULT_PINS = "results"

Work = Callable[[TrainRequest, Progress], TrainResult]


class _Step:
    """One running step, and the calls that listen to it; but for `cancelled` it belongs to the event loop."""

    def __init__(self, call: str, fingerprint: str) -> None:
        self.call = call
        self.fingerprint = fingerprint
        self.listeners = 0
        self.cancelled = threading.Event()
        self.end: asyncio.Future[TrainResult] = asyncio.get_running_loop().create_future()
        self._changed = asyncio.Event()
        self._latest: TrainProgress | None = None

    def report(self, progress: TrainProgress) -> None:
        self._latest = progress
        self.wake()

    def wake(self) -> None:
        """Lets every listener look again."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def progress(self) -> AsyncIterator[TrainProgress]:
        """Each report until the end; a slow listener skips to the latest."""
        sent: TrainProgress | None = None
        while not self.end.done() or self._latest is not sent:
            if self._latest is None or self._latest is sent:
                await self._changed.wait()
            else:
                sent = self._latest
                yield sent


class TrainingCalls:
    """Starts steps, joins calls to them and keeps their results; lives on one event loop."""

    def __init__(self, work: Work, executor: Executor, blobs: BlobCache, events: TrainingEvents) -> None:
        self._work = work
        self._executor = executor
        self._blobs = blobs
        self._events = events
        self._current: _Step | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._finished: OrderedDict[str, tuple[str, TrainResult]] = OrderedDict()

    @property
    def training(self) -> str:
        """Call id of the running step, or empty."""
        return self._current.call if self._current else ""

    async def train(self, request: TrainRequest) -> AsyncGenerator[TrainResponse, None]:
        """Progress while the step runs, then its result."""
        fingerprint = hashlib.sha256(request.SerializeToString(deterministic=True)).hexdigest()
        if (repeated := self._repeat(request.call, fingerprint)) is not None:
            yield TrainResponse(result=repeated)
            return
        step = await self._join_or_start(request, fingerprint)
        step.listeners += 1
        try:
            async for progress in step.progress():
                yield TrainResponse(progress=progress)
            yield TrainResponse(result=await asyncio.shield(step.end))
        finally:
            step.listeners -= 1
            if not step.listeners:
                step.cancelled.set()

    async def stop(self) -> None:
        """Stops the running step at its next micro-batch, and waits for that."""
        if self._current:
            self._current.cancelled.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _repeat(self, call: str, fingerprint: str) -> TrainResult | None:
        if call not in self._finished:
            return None
        known, result = self._finished[call]
        if known != fingerprint:
            # The earlier request is over: a caller that asks for something else under its id wants that.
            del self._finished[call]
            return None
        return None if self._blobs.missing(_digests(result)) else result

    async def _join_or_start(self, request: TrainRequest, fingerprint: str) -> _Step:
        while (current := self._current) is not None:
            if not current.cancelled.is_set():
                if current.call != request.call:
                    raise TrainingBusyError(current.call)
                if current.fingerprint != fingerprint:
                    raise CallIdReusedError(request.call)
                return current
            await asyncio.wait([current.end])
        step = self._current = _Step(request.call, fingerprint)
        task = asyncio.create_task(self._run(step, request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return step

    async def _run(self, step: _Step, request: TrainRequest) -> None:
        loop = asyncio.get_running_loop()

        def progress(phase: str, micro_batch: int, micro_batches: int, loss: float) -> None:
            if step.cancelled.is_set():
                raise StepCancelledError
            message = TrainProgress(phase=phase, micro_batch=micro_batch, micro_batches=micro_batches, loss=loss)
            loop.call_soon_threadsafe(step.report, message)

        parents = [file.digest for file in [*request.parent_adapter, *request.parent_training_state]]
        self._blobs.pin(step.call, parents)
        self._events.step_started(step.call, len(request.samples))
        try:
            result = await loop.run_in_executor(self._executor, self._work, request, progress)
        except Exception as error:
            self._events.step_failed(step.call, error)
            # What was sent of a parent waits here for the rest of it: pieces would push each other out for ever.
            if not isinstance(error, BlobMissingError):
                self._blobs.taken(parents)
            step.end.set_exception(error)
            # The exception belongs to the listeners; without any it is in the log only.
            step.end.exception()
        else:
            self._blobs.taken(parents)
            self._keep(step, result)
            self._events.step_finished(step.call, result.report)
            step.end.set_result(result)
        finally:
            self._current = None
            self._blobs.pin(step.call, [])
            self._blobs.pin(MADE, [])
            step.wake()

    def _keep(self, step: _Step, result: TrainResult) -> None:
        self._finished[step.call] = (step.fingerprint, result)
        while len(self._finished) > RESULTS_MAX:
            self._finished.popitem(last=False)
        # Only the latest result is safe from eviction: until it is fetched, it exists nowhere else.
        self._blobs.pin(RESULT_PINS, _digests(result))


def _digests(result: TrainResult) -> list[str]:
    return [file.digest for file in [*result.adapter, *result.training_state]]
