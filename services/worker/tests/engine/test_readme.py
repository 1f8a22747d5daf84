"""The README names every setting, metric and error of the engine, and no other."""

import inspect
import logging
import re
from pathlib import Path

from backtalk_worker.engine import errors
from backtalk_worker.engine.config import SETTINGS
from backtalk_worker.engine.events import Events

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_it_lists_every_setting():
    listed = set(re.findall(r"^\| `(BACKTALK_(?:ENGINE_\w+|LOG_LEVEL))`", README, re.MULTILINE))
    assert listed == {setting.variable for setting in SETTINGS}


def test_it_lists_every_metric():
    text = Events("x", 1, logging.getLogger("test")).exposition().decode()
    known = {
        name
        for name in re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)
        if name.startswith(("vllm:", "backtalk_engine_")) and not name.endswith("_created")
    }
    assert set(re.findall(r"^\| `((?:vllm:|backtalk_engine_)\w+)`", README, re.MULTILINE)) == known


def test_it_lists_every_error():
    known = set(re.findall(r'EngineError\(\s*"(\w+)"', inspect.getsource(errors)))
    section = README.split("## Errors")[1].split("<!-- training")[0]
    assert set(re.findall(r"^\| `(\w+)` +\| \d{3}", section, re.MULTILINE)) == known
