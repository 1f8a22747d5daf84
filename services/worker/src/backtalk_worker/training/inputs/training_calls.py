"""One step at a time, and each call id one step: a second call joins the first while it runs, and repeats its end.

In: Train requests. Out: progress and one result each. A step that nobody waits for any more is stopped at its next
micro-batch.
"""

import asyncio
import hashlib
import threading
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from concurrent.futures import Executor

from backtalk_worker.gen.backtalk.v1 import training_pb2
from backtalk_worker.training.errors import CallIdReusedError, StepCancelledError, TrainingBusyError
from backtalk_worker.training.events import TrainingEvents
from backtalk_worker.training.outputs.blob_cache import BlobCache

RESULTS_MAX = 4
"""Finished steps whose result can be repeated without taking them again."""
RESULT_PINS = "results"

Progress = Callable[[str, int, int, float], None]
Work = Callable[[training_pb2.TrainRequest, Progress], training_pb2.TrainResult]


class _Step:
    """One step in hand, and those who wait for it."""

    def __init__(self, call: str, fingerprint: str) -> None:
        self.call = call
        self.fingerprint = fingerprint
        self.listeners = 0
        self.cancelled = threading.Event()
        self.changed = asyncio.Condition()
        self.latest: training_pb2.TrainProgress | None = None
        self.count = 0
        """Progress messages so far; a slow listener skips to the latest."""
        self.end: asyncio.Future[training_pb2.TrainResult] = asyncio.get_running_loop().create_future()


class TrainingCalls:
    """The worker's desk for steps; lives on one event loop."""

    def __init__(self, work: Work, executor: Executor, blobs: BlobCache, events: TrainingEvents) -> None:
        self._work = work
        self._executor = executor
        self._blobs = blobs
        self._events = events
        self._current: _Step | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._finished: OrderedDict[str, tuple[str, training_pb2.TrainResult]] = OrderedDict()

    @property
    def training(self) -> str:
        """Call id of the step in hand, or empty."""
        return self._current.call if self._current else ""

    async def train(self, request: training_pb2.TrainRequest) -> AsyncGenerator[training_pb2.TrainResponse, None]:
        """Progress while the step runs, then its result."""
        fingerprint = hashlib.sha256(request.SerializeToString(deterministic=True)).hexdigest()
        if (repeated := self._repeat(request.call, fingerprint)) is not None:
            yield training_pb2.TrainResponse(result=repeated)
            return
        step = await self._join_or_start(request, fingerprint)
        step.listeners += 1
        try:
            async for progress in self._progress(step):
                yield training_pb2.TrainResponse(progress=progress)
            yield training_pb2.TrainResponse(result=await asyncio.shield(step.end))
        finally:
            step.listeners -= 1
            if not step.listeners:
                step.cancelled.set()

    async def stop(self) -> None:
        """Stops the step in hand at its next micro-batch, and waits for that."""
        if self._current:
            self._current.cancelled.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _repeat(self, call: str, fingerprint: str) -> training_pb2.TrainResult | None:
        if call not in self._finished:
            return None
        known, result = self._finished[call]
        if known != fingerprint:
            # What was asked for before is over: whoever asks for something else under its name wants that.
            del self._finished[call]
            return None
        return None if self._blobs.missing(_digests(result)) else result

    async def _join_or_start(self, request: training_pb2.TrainRequest, fingerprint: str) -> _Step:
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

    async def _run(self, step: _Step, request: training_pb2.TrainRequest) -> None:
        loop = asyncio.get_running_loop()

        def progress(phase: str, micro_batch: int, micro_batches: int, loss: float) -> None:
            if step.cancelled.is_set():
                raise StepCancelledError
            message = training_pb2.TrainProgress(
                phase=phase, micro_batch=micro_batch, micro_batches=micro_batches, loss=loss
            )
            asyncio.run_coroutine_threadsafe(self._tell(step, message), loop)

        self._blobs.pin(step.call, [*_parents(request)])
        self._events.step_started(step.call, len(request.samples))
        try:
            result = await loop.run_in_executor(self._executor, self._work, request, progress)
        except Exception as error:
            self._events.step_failed(step.call, error)
            step.end.set_exception(error)
            # The exception belongs to the listeners; without any it is in the log only.
            step.end.exception()
        else:
            self._keep(step, result)
            self._events.step_finished(step.call, result.report)
            step.end.set_result(result)
        finally:
            self._current = None
            self._blobs.pin(step.call, [])
            async with step.changed:
                step.changed.notify_all()

    def _keep(self, step: _Step, result: training_pb2.TrainResult) -> None:
        self._finished[step.call] = (step.fingerprint, result)
        while len(self._finished) > RESULTS_MAX:
            self._finished.popitem(last=False)
        # Only the latest result is safe from eviction: until it is fetched, it exists nowhere else.
        self._blobs.pin(RESULT_PINS, _digests(result))

    @staticmethod
    async def _tell(step: _Step, message: training_pb2.TrainProgress) -> None:
        async with step.changed:
            step.latest = message
            step.count += 1
            step.changed.notify_all()

    @staticmethod
    async def _progress(step: _Step) -> AsyncIterator[training_pb2.TrainProgress]:
        seen = 0
        while True:
            async with step.changed:
                while step.count == seen and not step.end.done():
                    await step.changed.wait()
                if step.latest is None or step.count == seen:
                    return
                seen, latest = step.count, step.latest
            yield latest


def _parents(request: training_pb2.TrainRequest) -> list[str]:
    return [file.digest for file in [*request.parent_adapter, *request.parent_training_state]]


def _digests(result: training_pb2.TrainResult) -> list[str]:
    return [file.digest for file in [*result.adapter, *result.training_state]]
