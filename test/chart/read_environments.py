"""Reads environments (a JSON list on standard input) as one part of the worker does, which is named as the argument.

Prints a JSON list of complaints, one for each environment; empty where the part would start with it.
"""

import importlib
import json
import os
import sys
from unittest.mock import patch

from backtalk_worker.process.errors import ConfigInvalidError

part = sys.argv[1]
settings = {"engine": "EngineConfig", "training": "TrainingWorkerConfig"}[part]
config = getattr(importlib.import_module(f"backtalk_worker.{part}.config"), settings)


def complaint_about(environment: dict[str, str]) -> str:
    with patch.dict(os.environ, environment, clear=True):
        try:
            config.read([])
        except ConfigInvalidError as error:
            return str(error)
    return ""


json.dump([complaint_about(each) for each in json.load(sys.stdin)], sys.stdout)
