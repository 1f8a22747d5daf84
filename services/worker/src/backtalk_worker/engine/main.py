"""Reads the environment, starts the engine, waits for its end."""

import asyncio
import os
import sys

from backtalk_worker.engine.config import ConfigError, read_config


def main() -> int:
    """Exit codes: 0 = stopped on request, 1 = a bad setting or a missing model, 2 = the engine died."""
    try:
        config = read_config(os.environ, sys.argv[1:])
        # Imported late, so that --help and a bad setting answer at once.
        from backtalk_worker.engine.service import create_engine

        service = create_engine(config)
    except (ConfigError, OSError) as error:
        sys.stderr.write(f"engine: {error}\n")
        return 1
    return asyncio.run(service.run())
