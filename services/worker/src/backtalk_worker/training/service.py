"""Puts the training worker together: model, blob cache, calls, gRPC and health; `run` serves until a signal.

Of several processes rank 0 is such a worker, and the others follow it.
"""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc.aio
import torch

from backtalk_worker.gen.backtalk.v1 import training_pb2_grpc
from backtalk_worker.gen.backtalk.v1.training_pb2 import ScoreResponse, TrainRequest, TrainResult
from backtalk_worker.process.config import host_and_port
from backtalk_worker.process.end_with_parent import end_with_parent
from backtalk_worker.process.log import create_logger
from backtalk_worker.process.memory import give_back_large_blocks
from backtalk_worker.process.run import Service, on_signal
from backtalk_worker.training.config import TrainingWorkerConfig
from backtalk_worker.training.domain.group import ALONE
from backtalk_worker.training.domain.network import Layout
from backtalk_worker.training.domain.step import Progress
from backtalk_worker.training.errors import GroupLostError
from backtalk_worker.training.events import TrainingEvents
from backtalk_worker.training.inputs.backend import Backend, LocalBackend
from backtalk_worker.training.inputs.callers import CallerGuard, certificate_ends_at, server_credentials
from backtalk_worker.training.inputs.decode import ScoreOrder, train_order
from backtalk_worker.training.inputs.grpc_service import SERVER_OPTIONS, TrainingWorkerServicer
from backtalk_worker.training.inputs.http_health import HealthServer
from backtalk_worker.training.inputs.orders import follow
from backtalk_worker.training.inputs.remote_work import RemoteBackend
from backtalk_worker.training.inputs.training_calls import TrainingCalls
from backtalk_worker.training.outputs.base_model import BaseModel, base_elsewhere, load_base_model, with_teacher
from backtalk_worker.training.outputs.blob_cache import BlobCache, hold_folder
from backtalk_worker.training.outputs.process_group import ProcessGroup, is_launched, own_device
from backtalk_worker.training.outputs.tinker_service import TinkerService
from backtalk_worker.training.outputs.version_files import VersionFiles

STOP_GRACE_S = 1.0
LOST = 3
"""Exit code of a process whose group is lost, so that torchrun starts all of them anew."""


def create_worker(config: TrainingWorkerConfig) -> Service:
    """The one worker; or, in each process of a group, its part."""
    if not is_launched():
        return TrainingWorker(config)
    end_with_parent()
    group = ProcessGroup(config.device, config.group_seconds)
    return TrainingWorker(config, group) if group.rank == 0 else Follower(config, group)


def _make_room(config: TrainingWorkerConfig) -> None:
    """Memory, threads and niceness of this process."""
    give_back_large_blocks()
    torch.set_num_threads(config.threads)
    if config.nice:
        os.nice(config.nice)


def _loaded(config: TrainingWorkerConfig, group: ProcessGroup | None) -> BaseModel:
    """The base model on the device of this process, whole or its shard, and the teacher's where it is another.

    None takes calls or orders before all have theirs.
    """
    sharing = ALONE if group is None or config.sharding == "off" else group
    layout = Layout(packs=config.packing == "on", sharing=sharing, at_once=config.at_once)
    numbers = own_device(config.device), config.dtype, layout, config.quantization

    def load() -> BaseModel:
        base = load_base_model(config.model_dir, config.base_model, *numbers)
        if config.teacher_model_dir is None:
            return base
        folder = config.teacher_model_dir
        return with_teacher(base, load_base_model(folder, folder.name, *numbers))

    return (group or ALONE).apart(load)


def _backend(config: TrainingWorkerConfig, group: ProcessGroup | None, blobs: BlobCache) -> Backend:
    """What takes the steps."""
    if config.backend == "torch":
        return LocalBackend(_loaded(config, group), blobs, group)
    facts = base_elsewhere(config.model_dir, config.base_model, config.dtype)
    service = TinkerService(
        config.tinker_url or "",
        config.tinker_key.get_secret_value(),
        config.tinker_model,
        config.tinker_loss,
        config.tinker_call_seconds,
    )
    return RemoteBackend(facts, service, VersionFiles(blobs))


class TrainingWorker:
    """Servers, model and the one thread that computes."""

    def __init__(self, config: TrainingWorkerConfig, group: ProcessGroup | None = None) -> None:
        self._config = config
        self._group = group
        self._stopped = asyncio.Event()
        self._exit_code = 0
        self._started = time.monotonic()
        self._ready = False
        self._events = TrainingEvents(create_logger("training", config.log_level))
        self._folder = hold_folder(config.blob_cache_dir)
        self._blobs = BlobCache(config.blob_cache_dir, config.blob_cache_bytes)
        self._events.blob_bytes.set_function(lambda: self._blobs.bytes_held)
        # One thread computes, so a step and a scoring never share the model, and the order of sums never varies.
        self._executor = ThreadPoolExecutor(1, "model", initializer=torch.set_num_threads, initargs=(config.threads,))
        self._health = HealthServer(
            host_and_port(config.health_address),
            checks=lambda: {"model": self._ready},
            exposition=self._events.exposition,
        )
        guard = CallerGuard(config.trainer_token.get_secret_value(), self._events.call_refused)
        self._server = grpc.aio.server(options=SERVER_OPTIONS, interceptors=[guard])
        self._calls: TrainingCalls | None = None

    async def run(self) -> int:
        """Serves until SIGINT or SIGTERM, or until the other processes are gone."""
        # Until it takes calls, a signal ends the process at once (`first_signal`).
        await self._start()
        on_signal(self._stopped.set)
        await self._stopped.wait()
        await self._stop()
        return self._exit_code

    async def _start(self) -> None:
        """Loads the model, then takes calls."""
        _make_room(self._config)
        self._health.start()
        loop = asyncio.get_running_loop()
        group = self._group
        backend = await loop.run_in_executor(self._executor, _backend, self._config, group, self._blobs)
        facts = backend.facts
        if group is not None:
            self._events.joined(group.rank, group.size)

        def take(request: TrainRequest, progress: Progress) -> TrainResult:
            order = train_order(request, facts.vocabulary_size, facts.context_length)
            with self._leaves_a_lost_group(loop):
                return backend.train(order, progress)

        def score(order: ScoreOrder, tick: Callable[[], None]) -> ScoreResponse:
            with self._leaves_a_lost_group(loop):
                return backend.score(order, tick)

        self._calls = TrainingCalls(take, self._executor, self._blobs, self._events)
        servicer = TrainingWorkerServicer(facts, self._blobs, self._calls, self._executor, self._events, score)
        training_pb2_grpc.add_TrainingWorkerServiceServicer_to_server(servicer, self._server)
        port = self._listen()
        await self._server.start()
        self._ready = True
        host, health_host = host_and_port(self._config.address)[0], host_and_port(self._config.health_address)[0]
        self._events.started(
            time.monotonic() - self._started, address=f"{host}:{port}", health=f"{health_host}:{self._health.port}"
        )

    @contextmanager
    def _leaves_a_lost_group(self, loop: asyncio.AbstractEventLoop) -> Generator[None, None, None]:
        """Ends the process where the others are gone, for torchrun to start all of them anew."""

        def leave() -> None:
            self._exit_code = LOST
            self._stopped.set()

        try:
            yield
        except GroupLostError:
            loop.call_soon_threadsafe(leave)
            raise

    def _listen(self) -> int:
        """The port of the gRPC server; TLS where there are certificates."""
        config = self._config
        if config.tls_ca is None or config.tls_cert is None or config.tls_key is None:
            return self._server.add_insecure_port(config.address)
        self._events.certificate_read(certificate_ends_at(config.tls_cert))
        credentials = server_credentials(config.tls_ca, config.tls_cert, config.tls_key)
        return self._server.add_secure_port(config.address, credentials)

    async def _stop(self) -> None:
        """Reverse order: no new calls, the running step stops at its next micro-batch, then the rest."""
        self._ready = False
        self._events.stopping()
        await self._server.stop(STOP_GRACE_S)
        if self._calls:
            await self._calls.stop()
        self._executor.shutdown(wait=True, cancel_futures=True)
        self._folder.close()
        self._health.stop()


class Follower:
    """A process that takes its part in the steps of rank 0, and answers no calls."""

    def __init__(self, config: TrainingWorkerConfig, group: ProcessGroup) -> None:
        self._config = config
        self._group = group

    async def run(self) -> int:
        """Nothing else runs on this loop, so it may wait here."""
        # It waits outside of Python, where no handler of Python's would run.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        events = TrainingEvents(create_logger("training", self._config.log_level))
        _make_room(self._config)
        base = _loaded(self._config, self._group)
        events.joined(self._group.rank, self._group.size)
        try:
            follow(base, self._group, events)
        except GroupLostError as error:
            events.group_lost(error)
        return LOST
