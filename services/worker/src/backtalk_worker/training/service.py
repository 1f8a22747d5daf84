"""Puts the training worker together: model, blob cache, calls, gRPC and health; `run` serves until a signal."""

import asyncio
import os
import time
from concurrent.futures import ThreadPoolExecutor

import grpc.aio
import torch

from backtalk_worker.gen.backtalk.v1 import training_pb2_grpc
from backtalk_worker.gen.backtalk.v1.training_pb2 import TrainRequest, TrainResult
from backtalk_worker.process.config import host_and_port
from backtalk_worker.process.log import create_logger
from backtalk_worker.process.memory import give_back_large_blocks
from backtalk_worker.process.run import on_signal
from backtalk_worker.training.config import TrainingWorkerConfig
from backtalk_worker.training.events import TrainingEvents
from backtalk_worker.training.inputs import work
from backtalk_worker.training.inputs.callers import CallerGuard, server_credentials
from backtalk_worker.training.inputs.decode import train_order
from backtalk_worker.training.inputs.grpc_service import SERVER_OPTIONS, TrainingWorkerServicer
from backtalk_worker.training.inputs.http_health import HealthServer
from backtalk_worker.training.inputs.training_calls import Progress, TrainingCalls
from backtalk_worker.training.outputs.base_model import load_base_model
from backtalk_worker.training.outputs.blob_cache import BlobCache
from backtalk_worker.training.outputs.version_files import VersionFiles

STOP_GRACE_S = 1.0


class TrainingWorker:
    """Servers, model and the one thread that computes."""

    def __init__(self, config: TrainingWorkerConfig) -> None:
        self._config = config
        self._started = time.monotonic()
        self._ready = False
        self._events = TrainingEvents(create_logger("training", config.log_level))
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
        """Serves until SIGINT or SIGTERM."""
        stopped = asyncio.Event()
        # Until it takes calls, a signal ends the process at once (`first_signal`).
        await self._start()
        on_signal(stopped.set)
        await stopped.wait()
        await self._stop()
        return 0

    async def _start(self) -> None:
        """Loads the model, then takes calls."""
        give_back_large_blocks()
        self._health.start()
        torch.set_num_threads(self._config.threads)
        if self._config.nice:
            os.nice(self._config.nice)
        base = await asyncio.get_running_loop().run_in_executor(
            self._executor,
            load_base_model,
            self._config.model_dir,
            self._config.base_model,
            self._config.device,
            self._config.dtype,
        )
        loaded, files = base.loaded, VersionFiles(self._blobs)

        def take(request: TrainRequest, progress: Progress) -> TrainResult:
            order = train_order(request, loaded.vocabulary_size, loaded.context_length)
            return work.train(order, base, files, progress)

        self._calls = TrainingCalls(take, self._executor, self._blobs, self._events)
        servicer = TrainingWorkerServicer(base, self._blobs, self._calls, self._executor, self._events)
        training_pb2_grpc.add_TrainingWorkerServiceServicer_to_server(servicer, self._server)
        port = self._listen()
        await self._server.start()
        self._ready = True
        host, health_host = host_and_port(self._config.address)[0], host_and_port(self._config.health_address)[0]
        self._events.started(
            time.monotonic() - self._started, address=f"{host}:{port}", health=f"{health_host}:{self._health.port}"
        )

    def _listen(self) -> int:
        """The port of the gRPC server; TLS where there are certificates."""
        config = self._config
        if config.tls_ca is None or config.tls_cert is None or config.tls_key is None:
            return self._server.add_insecure_port(config.address)
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
        self._health.stop()
