"""Reads the configuration, starts the training worker, waits for a signal."""

import asyncio
import os
import signal
import sys

from backtalk_worker.training.config import Config, read_config
from backtalk_worker.training.errors import TrainingWorkerError
from backtalk_worker.training.service import create_training_worker


async def _serve(config: Config) -> None:
    worker = create_training_worker(config)
    stopped = asyncio.Event()
    for one in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(one, stopped.set)
    await worker.start()
    await stopped.wait()
    await worker.stop()


def main() -> int:
    """Exit code 0 after a signal, 1 with the reason on standard error when it can't start."""
    try:
        asyncio.run(_serve(read_config(sys.argv[1:], os.environ)))
    except (TrainingWorkerError, OSError, RuntimeError) as error:
        sys.stderr.write(f"the training worker can't run: {error}\n")
        return 1
    return 0
