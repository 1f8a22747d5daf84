"""Starts the processes of a group on this machine as torchrun does, and all of them anew when one ends.

In: how many, and the arguments of this process, which become theirs. It computes nothing itself.
"""

import logging
import os
import sys
from collections.abc import Sequence

from torch.distributed.elastic.multiprocessing import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

RESTARTS_MAX = 3
"""In the life of one launcher; then it ends too, for its own supervisor to start."""
END_SECONDS = 10
"""Until a process that does not end by itself is killed: files appear by one rename, so nothing is torn."""


class Launcher:
    """Watches the group until a signal, or until it can't be kept up."""

    def __init__(self, processes: int, arguments: Sequence[str]) -> None:
        self._processes = processes
        self._arguments = arguments

    async def run(self) -> int:
        """Nothing else runs on this loop, so it may wait here; torchrun takes the signals."""
        # What the processes say to each other stays on this machine.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        logging.getLogger("torch.distributed.elastic").setLevel(logging.ERROR)
        config = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=self._processes,
            run_id="backtalk",
            rdzv_backend="c10d",
            rdzv_endpoint="127.0.0.1:0",
            local_addr="127.0.0.1",
            max_restarts=RESTARTS_MAX,
            shutdown_timeout=END_SECONDS,
        )
        try:
            elastic_launch(config, sys.executable)("-m", "backtalk_worker.training", *self._arguments)
        except SignalException:
            return 0
        except ChildFailedError:
            return 1
        return 0
