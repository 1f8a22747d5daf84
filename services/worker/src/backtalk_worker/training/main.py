"""Reads the settings, starts the training worker, waits for a signal."""

import sys

from backtalk_worker.process.run import Service, run_process
from backtalk_worker.training.config import TrainingWorkerConfig


def _create() -> Service:
    config = TrainingWorkerConfig.read(sys.argv[1:])
    # Imported late, so that --help and a bad setting answer at once.
    from backtalk_worker.training.service import create_worker

    return create_worker(config, sys.argv[1:])


def main() -> int:
    return run_process("training worker", _create)
