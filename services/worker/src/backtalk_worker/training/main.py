"""Reads the settings, starts the training worker, waits for a signal."""

import sys

from backtalk_worker.process.run import Service, run_process
from backtalk_worker.training.config import TrainingWorkerConfig


def _create() -> Service:
    """The worker or its part of a group; or, where several processes are wanted, what starts them."""
    config = TrainingWorkerConfig.read(sys.argv[1:])
    # Imported late, so that --help and a bad setting answer at once, and each process loads only what it has a use for.
    from backtalk_worker.training.outputs.process_group import is_launched

    if config.processes > 1 and not is_launched():
        from backtalk_worker.training.outputs.launcher import Launcher

        return Launcher(config.processes, sys.argv[1:])
    if config.quantization == "none":
        # Where the package is installed, peft would import it, and half of torch's compiler with it: as if it were not.
        sys.modules["bitsandbytes"] = None  # type: ignore[assignment]
    from backtalk_worker.training.service import create_worker

    return create_worker(config)


def main() -> int:
    return run_process("training worker", _create)
