"""`POST /v1/chat/completions` and `/v1/completions`: decode, ask the engine, deliver.

All checks come before a row is submitted, so a refused request costs no computing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from backtalk_worker.engine.domain.request import Prompt
from backtalk_worker.engine.events import EngineEvents
from backtalk_worker.engine.inputs.answer import AnswerWriter
from backtalk_worker.engine.inputs.chat import ChatWriter
from backtalk_worker.engine.inputs.completions import CompletionWriter
from backtalk_worker.engine.inputs.delivery import StreamedAnswer, whole_answer
from backtalk_worker.engine.inputs.prompts import PromptReader
from backtalk_worker.engine.inputs.requests import ChatRequest, CompletionRequest, read_request
from backtalk_worker.engine.inputs.sampling import read_samplings
from backtalk_worker.engine.outputs.engine import Engine


@dataclass(frozen=True, slots=True)
class Routes:
    """What routes work with."""

    engine: Engine
    prompts: PromptReader
    body_bytes_max: int
    events: EngineEvents


class GenerateRoutes(Routes):
    """The two routes that generate."""

    async def chat(self, http: Request) -> Response:
        """One prompt from messages, `n` rows."""
        request = await read_request(ChatRequest, http, self.body_bytes_max)
        self.engine.resolve(request.model)
        return await self._answer(http, request, [await self.prompts.chat(request)])

    async def completions(self, http: Request) -> Response:
        """One prompt or several, `n` rows each, in the order of the prompts."""
        request = await read_request(CompletionRequest, http, self.body_bytes_max)
        self.engine.resolve(request.model)
        return await self._answer(http, request, await self.prompts.completions(request))

    async def _answer(
        self,
        http: Request,
        request: ChatRequest | CompletionRequest,
        prompts: Sequence[list[int]],
    ) -> Response:
        reader = self.prompts
        answers = reader.readers(request, prompts[0]) if isinstance(request, ChatRequest) else None
        kept = reader.kept_ids if answers else frozenset[int]()
        self.engine.refuse_beyond_room(len(prompts) * max(1, request.n))
        lengths = [len(ids) for ids in prompts]
        samplings = read_samplings(request, lengths, reader.length_max, reader.model, kept)
        rows = [ids for ids in prompts for _ in range(request.n)]
        salt = request.cache_salt or ""
        generation = self.engine.generate(request.model, [Prompt(tuple(ids), salt) for ids in rows], samplings)
        writer: AnswerWriter
        if isinstance(request, ChatRequest):
            calls = reader.format.calls
            writer = ChatWriter(http, request, rows, samplings[0], reader.tokens, answers, calls)
        else:
            writer = CompletionWriter(http, request, rows, samplings[0], reader.tokens)
        if request.stream:
            return StreamedAnswer(generation, writer, self.events)
        return await whole_answer(http, generation, writer)
