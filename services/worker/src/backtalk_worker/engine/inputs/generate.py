"""`POST /v1/chat/completions` and `/v1/completions`: decode, ask the engine, deliver.

In: HTTP requests. Out: responses. All checks come before a row is submitted, so a refused request costs no computing.
"""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from backtalk_worker.engine.domain.request import Prompt, Sampling
from backtalk_worker.engine.events import Events
from backtalk_worker.engine.inputs.answer import AnswerWriter, RowAnswer, answer_id, make_head
from backtalk_worker.engine.inputs.chat import ChatWriter
from backtalk_worker.engine.inputs.completions import CompletionWriter
from backtalk_worker.engine.inputs.delivery import StreamedAnswer, read_bytes, whole_answer
from backtalk_worker.engine.inputs.prompts import PromptReader
from backtalk_worker.engine.inputs.requests import ChatRequest, CompletionRequest, read_body
from backtalk_worker.engine.inputs.sampling import read_samplings
from backtalk_worker.engine.inputs.shapes import ScoreWriter
from backtalk_worker.engine.outputs.engine import Engine, Generation

Handler = Callable[[Request], Awaitable[Response]]


class GenerateRoutes:
    """The two routes that generate."""

    def __init__(self, engine: Engine, prompts: PromptReader, body_bytes_max: int, events: Events) -> None:
        self._engine = engine
        self._prompts = prompts
        self._body_bytes_max = body_bytes_max
        self._events = events

    async def chat(self, http: Request) -> Response:
        """One prompt from messages, `n` rows."""
        request = read_body(ChatRequest, await read_bytes(http, self._body_bytes_max))
        self._engine.resolve(request.model)
        ids = await self._prompts.chat(request)
        samplings = self._samplings(request, ids)
        generation = self._submit(request, [ids] * len(samplings), samplings)
        rows = [RowAnswer(ids) for _ in samplings]
        scores = ScoreWriter(self._prompts.tokens, bool(request.return_tokens_as_token_ids), samplings[0])
        head = make_head(
            answer_id("chatcmpl", http, request), generation.model, rows, request, bool(request.logprobs), scores
        )
        return await self._deliver(http, request, generation, ChatWriter(head))

    async def completions(self, http: Request) -> Response:
        """One prompt or several, `n` rows each, in the order of the prompts."""
        request = read_body(CompletionRequest, await read_bytes(http, self._body_bytes_max))
        self._engine.resolve(request.model)
        pairs = [
            (ids, sampling)
            for ids in await self._prompts.completions(request)
            for sampling in self._samplings(request, ids)
        ]
        samplings = [sampling for _, sampling in pairs]
        generation = self._submit(request, [ids for ids, _ in pairs], samplings)
        rows = [RowAnswer(ids) for ids, _ in pairs]
        scores = ScoreWriter(self._prompts.tokens, bool(request.return_tokens_as_token_ids), samplings[0])
        with_logprobs = request.logprobs is not None
        head = make_head(answer_id("cmpl", http, request), generation.model, rows, request, with_logprobs, scores)
        return await self._deliver(http, request, generation, CompletionWriter(head))

    def _samplings(self, request: ChatRequest | CompletionRequest, ids: list[int]) -> list[Sampling]:
        reader = self._prompts
        return read_samplings(request, len(ids), reader.length_max, reader.vocabulary_size, reader.end_ids)

    def _submit(
        self, request: ChatRequest | CompletionRequest, prompts: list[list[int]], samplings: list[Sampling]
    ) -> Generation:
        salt = request.cache_salt or ""
        return self._engine.generate(request.model, [Prompt(tuple(ids), salt) for ids in prompts], samplings)

    async def _deliver(
        self, http: Request, request: ChatRequest | CompletionRequest, generation: Generation, writer: AnswerWriter
    ) -> Response:
        if request.stream:
            return StreamedAnswer(generation, writer, self._events)
        return await whole_answer(http, generation, writer, self._events)
