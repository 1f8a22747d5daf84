"""Reads the settings, starts the engine, waits for its end; exit code 2 when the computing thread died."""

import sys

from backtalk_worker.engine.config import EngineConfig
from backtalk_worker.process.run import Service, run_process


def _create() -> Service:
    config = EngineConfig.read(sys.argv[1:])
    # Imported late, so that --help and a bad setting answer at once.
    from backtalk_worker.engine.service import create_engine

    return create_engine(config)


def main() -> int:
    return run_process("engine", _create)
