"""Carries a generation to its client, whole or frame by frame, and cancels it the moment the client is gone.

A token's frames are written when it exists, never together with the next one's.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from backtalk_worker.engine.events import EngineEvents
from backtalk_worker.engine.inputs.answer import AnswerWriter
from backtalk_worker.engine.outputs.engine import Generation

DONE = b"data: [DONE]\n\n"
CLIENT_GONE_STATUS = 499


def to_json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _event(frame: object) -> bytes:
    return b"data: " + to_json(frame) + b"\n\n"


@asynccontextmanager
async def cancelled_when_gone(receive: Receive, generation: Generation) -> AsyncIterator[None]:
    """Around the writing of an answer: the generation ends with it, or with the client."""

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        generation.cancel()

    watcher = asyncio.create_task(watch())
    try:
        yield
    finally:
        generation.cancel()
        watcher.cancel()
        with suppress(asyncio.CancelledError):
            await watcher


async def whole_answer(http: Request, generation: Generation, writer: AnswerWriter) -> Response:
    """Waits for all rows, then answers once."""
    async with cancelled_when_gone(http.receive, generation):
        async for index, update in generation.updates():
            if update.error is not None:
                raise update.error
            writer.take(index, update)
    if any(row.finish_reason is None for row in writer.rows):
        return Response(status_code=CLIENT_GONE_STATUS)
    return Response(to_json(writer.body()), media_type="application/json")


class StreamedAnswer(Response):
    """Server-sent events, one per token, and more where a token completes a tool call."""

    media_type = "text/event-stream"

    def __init__(self, generation: Generation, writer: AnswerWriter, events: EngineEvents) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._generation = generation
        self._writer = writer
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the headers at once, then each frame as it comes; a client that is gone is no error."""
        async with cancelled_when_gone(receive, self._generation):
            with suppress(OSError):
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                async for frame in self._frames():
                    await send({"type": "http.response.body", "body": frame, "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _frames(self) -> AsyncIterator[bytes]:
        """The frames in order; after an error frame comes `[DONE]`, as vLLM does it."""
        is_first = True
        async for index, update in self._generation.updates():
            self._writer.take(index, update)
            if is_first:
                is_first = False
                for frame in self._writer.first_frames():
                    yield _event(frame)
            if update.error is not None:
                self._events.answered_with_error(update.error.code, update.error.status, None)
                yield _event(update.error.body())
                yield DONE
                return
            for frame in self._writer.frames(index, update):
                yield _event(frame)
        for frame in self._writer.last_frames():
            yield _event(frame)
        yield DONE
