"""Stands in for the `vllm` of a machine with cards: writes down how it was started, and is the built-in engine then.

That one speaks the same API on this CPU. A script named `vllm` runs it, with the file to write to before its arguments.
"""

import argparse
import json
import os
import sys
from pathlib import Path

record, *arguments = sys.argv[1:]
wanted = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "VLLM_ALLOW_RUNTIME_LORA_UPDATING")
seen = {name: os.environ[name] for name in wanted if name in os.environ}
with Path(record).open("a", encoding="utf-8") as file:
    file.write(json.dumps({"arguments": arguments, "environment": seen}) + "\n")

parser = argparse.ArgumentParser()
parser.add_argument("verb", choices=["serve"])
parser.add_argument("model")
parser.add_argument("--served-model-name", required=True)
parser.add_argument("--port", required=True)
given, _ = parser.parse_known_args(arguments)

os.environ["BACKTALK_ENGINE_MODEL_DIR"] = given.model
os.environ["BACKTALK_ENGINE_MODEL_NAME"] = given.served_model_name
os.environ["BACKTALK_ENGINE_KEY"] = os.environ["VLLM_API_KEY"]
engine = ["-m", "backtalk_worker.engine", "--host", "127.0.0.1", "--port", given.port]
os.execv(sys.executable, [sys.executable, *engine])
