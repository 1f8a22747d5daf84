"""TrainingWorkerService over gRPC; errors of the catalogue become a status and two trailers."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, NoReturn

import grpc
import grpc.aio

from backtalk_worker.gen.backtalk.v1 import training_pb2 as wire
from backtalk_worker.gen.backtalk.v1.training_pb2_grpc import TrainingWorkerServiceServicer
from backtalk_worker.training.errors import BlobRefusedError, StepCancelledError, TrainingBusyError, TrainingWorkerError
from backtalk_worker.training.events import TrainingEvents
from backtalk_worker.training.inputs.decode import ScoreOrder, score_order
from backtalk_worker.training.inputs.training_calls import TrainingCalls
from backtalk_worker.training.outputs.base_model import BaseFacts
from backtalk_worker.training.outputs.blob_cache import SENT, BlobCache

BLOB_PART_BYTES = 1024 * 1024
MESSAGE_BYTES_MAX = 64 * 1024 * 1024
SCORES_WAITING_MAX = 4
SERVER_OPTIONS: list[tuple[str, int]] = [
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    # Callers ping every 10 s, also between calls; without these the server would hang up on them.
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.max_ping_strikes", 0),
    # Two workers on one port would share the calls between them at random.
    ("grpc.so_reuseport", 0),
]

Context = grpc.aio.ServicerContext[Any, Any]


@dataclass
class TrainingWorkerServicer(TrainingWorkerServiceServicer):
    """One method for each call of the contract."""

    base: BaseFacts
    blobs: BlobCache
    calls: TrainingCalls
    executor: Executor
    events: TrainingEvents
    score: Callable[[ScoreOrder, Callable[[], None]], wire.ScoreResponse]
    """Given ids under given weights; the second is called between micro-batches, and raises to stop it."""
    scores: int = 0

    async def Status(self, request: wire.StatusRequest, context: Context) -> wire.StatusResponse:
        """What this worker is and does."""
        return wire.StatusResponse(
            base_model=self.base.name,
            dtype=self.base.dtype,
            device=self.base.device,
            training=self.calls.training,
            max_context=self.base.context_length,
            base_digest=self.base.digest,
            control_tokens=self.base.control_tokens,
        )

    async def Missing(self, request: wire.MissingRequest, context: Context) -> wire.MissingResponse:
        """Which blobs to send."""
        return wire.MissingResponse(digests=self.blobs.missing(request.digests))

    async def PutBlob(
        self, request_iterator: AsyncIterator[wire.PutBlobRequest], context: Context
    ) -> wire.PutBlobResponse:
        """Takes one blob in parts; the first part names it."""
        try:
            first = await anext(request_iterator, None)
            if first is None:
                raise BlobRefusedError("a blob needs at least one part")
            with self.blobs.writer(first.digest) as writer:
                await asyncio.to_thread(writer.write, first.data)
                async for part in request_iterator:
                    await asyncio.to_thread(writer.write, part.data)
                await asyncio.to_thread(writer.finish, SENT)
            return wire.PutBlobResponse(digest=first.digest)
        except TrainingWorkerError as error:
            await self._refuse(context, error)

    async def GetBlob(self, request: wire.GetBlobRequest, context: Context) -> AsyncIterator[wire.GetBlobResponse]:
        """Gives one blob in parts."""
        try:
            data = await asyncio.to_thread(self.blobs.get, request.digest)
        except TrainingWorkerError as error:
            await self._refuse(context, error)
        for start in range(0, max(1, len(data)), BLOB_PART_BYTES):
            yield wire.GetBlobResponse(data=data[start : start + BLOB_PART_BYTES])

    async def Train(self, request: wire.TrainRequest, context: Context) -> AsyncIterator[wire.TrainResponse]:
        """One step, or the same one again."""
        async with aclosing(self.calls.train(request)) as responses:
            try:
                async for response in responses:
                    yield response
            except TrainingWorkerError as error:
                await self._refuse(context, error)

    async def Score(self, request: wire.ScoreRequest, context: Context) -> wire.ScoreResponse:
        """Waits for the model while a step runs; the caller's deadline bounds the wait."""
        if self.scores >= SCORES_WAITING_MAX:
            await self._refuse(context, TrainingBusyError(self.calls.training))
        self.scores += 1
        gone = threading.Event()

        def tick() -> None:
            if gone.is_set():
                raise StepCancelledError

        try:
            order = score_order(request, self.base.vocabulary_size, self.base.context_length)
            self.blobs.taken(order.adapter.values())
            return await asyncio.get_running_loop().run_in_executor(self.executor, self.score, order, tick)
        except TrainingWorkerError as error:
            await self._refuse(context, error)
        finally:
            gone.set()
            self.scores -= 1

    async def _refuse(self, context: Context, error: TrainingWorkerError) -> NoReturn:
        self.events.call_refused(error)
        trailers = (("backtalk-code", error.code), ("backtalk-retry", error.retry))
        await context.abort(error.status, str(error), trailers)
        raise AssertionError("abort raises")
