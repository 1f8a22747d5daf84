"""Puts the engine together: model, batch, loop, HTTP server; `run` serves until a signal or a failure."""

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import uvicorn
from starlette.applications import Starlette

from backtalk_worker.engine.config import EngineConfig
from backtalk_worker.engine.domain.plan import Budget
from backtalk_worker.engine.events import EngineEvents
from backtalk_worker.engine.inputs.http import create_app
from backtalk_worker.engine.inputs.prompts import PromptReader, token_bytes
from backtalk_worker.engine.outputs.batch import Batch, BatchLimits
from backtalk_worker.engine.outputs.engine import Engine, EngineLimits
from backtalk_worker.engine.outputs.network import RaggedNetwork
from backtalk_worker.model.load import LoadedModel, load_model
from backtalk_worker.process.log import create_logger
from backtalk_worker.process.run import on_signal

KEEP_ALIVE_S = 75


class _Server(uvicorn.Server):
    """A server that lets answers end after a signal, and then ends them with finish reason 'abort'."""

    def __init__(self, config: uvicorn.Config, engine: Engine, grace_s: float) -> None:
        super().__init__(config)
        self._engine = engine
        self._grace_s = grace_s

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The service takes signals itself: uvicorn raises them again at its end, and the exit code is lost."""
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().call_later(self._grace_s, self._engine.abort_all)
        await super().shutdown(sockets)


class EngineService:
    """The engine with its HTTP server."""

    def __init__(
        self, config: EngineConfig, engine: Engine, app: Starlette, events: EngineEvents, since: float, answers: str
    ) -> None:
        self._engine = engine
        self._events = events
        self._since = since
        self._answers = answers
        self._socket = socket.socket(socket.AF_INET6 if ":" in config.host else socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((config.host, config.port))
        settings = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_keep_alive=KEEP_ALIVE_S,
            # Past the grace period answers are ended properly; this only cuts readers that have stopped reading.
            timeout_graceful_shutdown=int(config.shutdown_seconds) + 3,
        )
        self._server = _Server(settings, engine, config.shutdown_seconds)

    async def run(self) -> int:
        """Serves until SIGINT, SIGTERM or `stop`; 0, or 2 when the generation loop died."""
        # A dead loop cannot be healed in place, so the process ends, for its supervisor to start it anew.
        self._engine.start(on_death=self.stop)
        host, port = self._socket.getsockname()[:2]
        self._events.started(time.monotonic() - self._since, address=f"http://{host}:{port}", answers=self._answers)
        try:
            on_signal(self.stop)
            await self._server.serve(sockets=[self._socket])
            healthy = self._engine.is_healthy
            self._events.stopping()
        finally:
            self._engine.stop()
        return 0 if healthy else 2

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self._socket.getsockname()[1])

    def stop(self) -> None:
        """Begins the end; `run` returns when answers have ended."""
        self._server.should_exit = True


def create_engine(config: EngineConfig, model: LoadedModel | None = None) -> EngineService:
    """Loads the model (or takes the one given) and connects the parts; a busy port is refused at once."""
    since = time.monotonic()
    torch.set_num_threads(config.threads)
    loaded = model or load_model(config.model_dir, quantization=config.quantization)
    length_max = min(config.length_max or loaded.context_length, loaded.context_length, config.kv_tokens_max)
    events = EngineEvents(config.model_name, config.kv_tokens_max, create_logger("engine", config.log_level))
    network = RaggedNetwork(loaded, config.model_name)
    tokens = token_bytes(loaded)
    limits = BatchLimits(
        rows_max=config.rows_max,
        length_max=length_max,
        kv_tokens_max=config.kv_tokens_max,
        prefix_tokens_max=min(config.prefix_tokens_max, config.kv_tokens_max),
        budget=Budget(config.prefill_beside_answers, config.prefill_alone),
        logprobs_mode=config.logprobs_mode,
    )
    batch = Batch(network, tokens, limits, events)
    bounds = EngineLimits(
        requests_max=config.rows_max + config.waiting_max,
        adapters_max=config.adapters_max,
        adapter_rank_max=config.adapter_rank_max,
        threads=config.threads,
        adapter_dir=config.adapter_dir,
    )
    engine = Engine(network, batch, config.model_name, bounds, events)
    prompts = PromptReader(loaded, tokens, length_max)
    app = create_app(engine, prompts, config, events)
    return EngineService(config, engine, app, events, since, prompts.format.reason)
