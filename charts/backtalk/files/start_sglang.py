"""Starts SGLang with its key taken from the environment, so that the key stands in no argument."""

import os
import runpy
import sys

sys.argv = ["sglang.launch_server", *sys.argv[1:], "--api-key", os.environ["ENGINE_KEY"]]
runpy.run_module("sglang.launch_server", run_name="__main__")
