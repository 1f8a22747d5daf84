"""The engine's HTTP application. Errors leave in vLLM's shape; their causes go to the log only."""

import uuid
from collections.abc import Callable
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from backtalk_worker.engine import errors
from backtalk_worker.engine.config import EngineConfig
from backtalk_worker.engine.events import EngineEvents
from backtalk_worker.engine.inputs.answer import Json
from backtalk_worker.engine.inputs.delivery import CLIENT_GONE_STATUS
from backtalk_worker.engine.inputs.entrance import Entrance
from backtalk_worker.engine.inputs.generate import GenerateRoutes, Routes
from backtalk_worker.engine.inputs.prompts import PromptReader
from backtalk_worker.engine.inputs.requests import (
    DetokenizeRequest,
    LoadAdapterRequest,
    TokenizeRequest,
    UnloadAdapterRequest,
    malformed,
    read_request,
)
from backtalk_worker.engine.outputs.engine import Engine

VERSION = "0.1.0"


def create_app(engine: Engine, prompts: PromptReader, config: EngineConfig, events: EngineEvents) -> Starlette:
    """All routes over the given parts."""
    generate = GenerateRoutes(engine, prompts, config.body_bytes_max, events)
    other = OtherRoutes(engine, prompts, config.body_bytes_max, events)
    routes = [
        Route("/v1/chat/completions", generate.chat, methods=["POST"]),
        Route("/v1/completions", generate.completions, methods=["POST"]),
        Route("/v1/models", other.models, methods=["GET"]),
        Route("/v1/load_lora_adapter", other.load_adapter, methods=["POST"]),
        Route("/v1/unload_lora_adapter", other.unload_adapter, methods=["POST"]),
        Route("/tokenize", other.tokenize, methods=["POST"]),
        Route("/detokenize", other.detokenize, methods=["POST"]),
        Route("/health", other.health, methods=["GET"]),
        Route("/ping", other.health, methods=["GET", "POST"]),
        Route("/version", other.version, methods=["GET"]),
        Route("/metrics", other.metrics, methods=["GET"]),
    ]
    entrance = Middleware(
        Entrance,
        key=config.key.get_secret_value(),
        judge_key=config.judge_key.get_secret_value(),
        host=config.host,
        refuse=_refusal(events),
    )
    app = Starlette(routes=routes, middleware=[entrance])

    async def on_error(_: Request, error: Exception) -> Response:
        return _answer_error(error, events)

    for kind in (errors.EngineError, ClientDisconnect, HTTPException, Exception):
        app.add_exception_handler(kind, on_error)
    return app


def _refusal(events: EngineEvents) -> Callable[[errors.EngineError], Response]:
    return lambda error: _answer_error(error, events)


def _answer_error(error: Exception, events: EngineEvents) -> Response:
    """Any failure → its answer; anything else is an internal error."""
    if isinstance(error, ClientDisconnect):
        return Response(status_code=CLIENT_GONE_STATUS)
    if isinstance(error, HTTPException):
        detail = HTTPStatus(error.status_code).phrase
        return JSONResponse({"detail": detail}, error.status_code, headers=error.headers)
    known = error if isinstance(error, errors.EngineError) else errors.InternalError()
    events.answered_with_error(known.code, known.status, error.__cause__ if known is error else error)
    return JSONResponse(known.body(), known.status)


class OtherRoutes(Routes):
    """All routes but those that generate."""

    async def models(self, _: Request) -> Response:
        """The base model first, then the adapters with the base as `parent`."""
        engine = self.engine
        base = _model(engine.base_name, engine.created, str(self.prompts.model.folder), None, self.prompts.length_max)
        adapters = [
            _model(adapter.name, adapter.created, str(adapter.folder), engine.base_name, None)
            for adapter in engine.adapters.values()
        ]
        return JSONResponse({"object": "list", "data": [base, *adapters]})

    async def load_adapter(self, http: Request) -> Response:
        """Loads from a folder on this machine; a loaded name is never replaced."""
        request = await read_request(LoadAdapterRequest, http, self.body_bytes_max)
        if request.load_inplace:
            raise errors.NotSupportedError("load_inplace")
        await self.engine.load(request.lora_name, request.lora_path)
        return PlainTextResponse(f"Success: LoRA adapter '{request.lora_name}' added successfully.")

    async def unload_adapter(self, http: Request) -> Response:
        """Takes no new requests for the name; rows that run keep the adapter."""
        request = await read_request(UnloadAdapterRequest, http, self.body_bytes_max)
        self.engine.unload(request.lora_name)
        return PlainTextResponse(f"Success: LoRA adapter '{request.lora_name}' removed successfully.")

    async def tokenize(self, http: Request) -> Response:
        """Text or messages → ids."""
        request = await read_request(TokenizeRequest, http, self.body_bytes_max)
        self.engine.resolve(request.model)
        if request.messages is not None:
            ids = await self.prompts.render(
                request.messages, request.tools, request.add_generation_prompt, request.chat_template_kwargs
            )
        elif request.prompt is not None:
            ids = await self.prompts.encode(request.prompt, request.add_special_tokens)
        else:
            raise malformed("{'type': 'missing', 'loc': 'body.prompt'}", "body.prompt")
        strings = self.prompts.token_strings(ids) if request.return_token_strs else None
        return JSONResponse(
            {"count": len(ids), "max_model_len": self.prompts.length_max, "tokens": ids, "token_strs": strings}
        )

    async def detokenize(self, http: Request) -> Response:
        """Ids → text."""
        request = await read_request(DetokenizeRequest, http, self.body_bytes_max)
        self.engine.resolve(request.model)
        return JSONResponse({"prompt": await self.prompts.decode(request.tokens)})

    async def health(self, _: Request) -> Response:
        """200 while the loop lives, else 503; both without a body."""
        return Response(status_code=200 if self.engine.is_healthy else 503)

    async def version(self, _: Request) -> Response:
        return JSONResponse({"version": VERSION, "engine": "backtalk"})

    async def metrics(self, _: Request) -> Response:
        return Response(self.events.exposition(), media_type="text/plain; version=0.0.4")


def _model(name: str, created: int, root: str, parent: str | None, length_max: int | None) -> Json:
    """One entry of `/v1/models`."""
    permission: Json = {
        "id": f"modelperm-{uuid.uuid4().hex[:16]}",
        "object": "model_permission",
        "created": created,
        **dict.fromkeys(("allow_sampling", "allow_logprobs", "allow_view"), True),
        **dict.fromkeys(("allow_create_engine", "allow_search_indices", "allow_fine_tuning", "is_blocking"), False),
        "organization": "*",
        "group": None,
    }
    return {
        "id": name,
        "object": "model",
        "created": created,
        "owned_by": "backtalk",
        "root": root,
        "parent": parent,
        "max_model_len": length_max,
        "permission": [permission],
    }
