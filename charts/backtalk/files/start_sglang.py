"""Starts SGLang with its key taken from the environment, so that the key stands in no argument."""

import os
import signal

# As a container's first process it would otherwise not hear SIGTERM before SGLang has a handler, after long imports.
signal.signal(signal.SIGTERM, lambda number, _frame: os._exit(128 + number))

import runpy  # noqa: E402
import sys  # noqa: E402

sys.argv = ["sglang.launch_server", *sys.argv[1:], "--api-key", os.environ["ENGINE_KEY"]]
runpy.run_module("sglang.launch_server", run_name="__main__")
