"""Reads environments (a JSON list on standard input) as one part of the worker does, which is named as the argument.

Prints a JSON list of complaints, one for each environment; empty where the part would start with it.
"""

import importlib
import json
import sys

part = sys.argv[1]
config = importlib.import_module(f"backtalk_worker.{part}.config")
refusal = {"engine": "ConfigError", "training": "ConfigInvalidError"}[part]


def complaint_about(environment: dict[str, str]) -> str:
    try:
        config.read_config(arguments=[], environment=environment)
    except getattr(config, refusal) as error:
        return str(error)
    return ""


json.dump([complaint_about(each) for each in json.load(sys.stdin)], sys.stdout)
