"""The composition root of the training worker: configuration in, a service that starts and stops out."""

import asyncio
import os
import time
from concurrent.futures import ThreadPoolExecutor

import grpc.aio
import torch

from backtalk_worker.gen.backtalk.v1 import training_pb2, training_pb2_grpc
from backtalk_worker.json_lines import create_logger
from backtalk_worker.training.config import Config
from backtalk_worker.training.events import Events
from backtalk_worker.training.inputs import work
from backtalk_worker.training.inputs.decode import train_order
from backtalk_worker.training.inputs.grpc_service import SERVER_OPTIONS, TrainingWorkerServicer
from backtalk_worker.training.inputs.http_health import HealthServer
from backtalk_worker.training.inputs.training_calls import Progress, TrainingCalls, Work
from backtalk_worker.training.outputs.base_model import BaseModel, load_base_model
from backtalk_worker.training.outputs.blob_cache import BlobCache
from backtalk_worker.training.outputs.version_files import VersionFiles

STOP_GRACE_S = 1.0


class TrainingWorker:
    """Servers, model and the one thread that computes."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._started = time.monotonic()
        self._ready = False
        self.events = Events(create_logger("training", config.log_level))
        self.blobs = BlobCache(config.blob_cache_dir, config.blob_cache_bytes)
        # One thread computes, so a step and a scoring never share the model, and the order of sums never varies.
        self._executor = ThreadPoolExecutor(1, "model", initializer=torch.set_num_threads, initargs=(config.threads,))
        self._health = HealthServer(
            config.health_address.host,
            config.health_address.port,
            checks=lambda: {"model": self._ready},
            exposition=lambda: self.events.exposition(self.blobs.bytes_held),
        )
        self._server = grpc.aio.server(options=SERVER_OPTIONS)
        self._calls: TrainingCalls | None = None
        self.port = 0

    @property
    def health_port(self) -> int:
        """Where /livez, /readyz and /metrics are."""
        return self._health.port

    async def start(self) -> None:
        """Loads the model, then takes calls."""
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
        self._calls = TrainingCalls(_training(base, self.blobs), self._executor, self.blobs, self.events)
        servicer = TrainingWorkerServicer(base, self.blobs, self._calls, self._executor, self.events)
        training_pb2_grpc.add_TrainingWorkerServiceServicer_to_server(servicer, self._server)
        self.port = self._server.add_insecure_port(str(self._config.address))
        await self._server.start()
        self._ready = True
        self.events.started(
            address=f"{self._config.address.host}:{self.port}",
            health=f"{self._config.health_address.host}:{self._health.port}",
            seconds=time.monotonic() - self._started,
        )

    async def stop(self) -> None:
        """Reverse order: no new calls, the step in hand stops at its next micro-batch, then the rest."""
        self._ready = False
        self.events.stopping()
        await self._server.stop(STOP_GRACE_S)
        if self._calls:
            await self._calls.stop()
        self._executor.shutdown(wait=True, cancel_futures=True)
        self._health.stop()


def create_training_worker(config: Config) -> TrainingWorker:
    """Nothing runs before `start`."""
    return TrainingWorker(config)


def _training(base: BaseModel, blobs: BlobCache) -> Work:
    files = VersionFiles(blobs)

    def run(request: training_pb2.TrainRequest, progress: Progress) -> training_pb2.TrainResult:
        return work.train(train_order(request, base.loaded.vocabulary_size), base, files, progress)

    return run
