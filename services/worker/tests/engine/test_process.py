"""The engine as a process: it starts, says where it serves, and ends on a signal with exit code 0."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import httpx


def engine_process(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "backtalk_worker.engine", *arguments]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def test_it_serves_until_sigterm_and_then_exits_with_zero(tiny_folder: Path):
    process = engine_process("--port", "0", "--model-dir", str(tiny_folder))
    assert process.stderr is not None
    try:
        started = json.loads(process.stderr.readline())
        assert httpx.get(f"{started['address']}/health", timeout=60).status_code == 200
    finally:
        process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    assert json.loads(process.stderr.read().splitlines()[-1])["msg"] == "stopping"


def test_a_missing_model_is_one_line_that_says_what_to_do(tmp_path: Path):
    process = engine_process("--model-dir", str(tmp_path))
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "backtalk_worker.model.convert" in said
    assert len(said.splitlines()) == 1
