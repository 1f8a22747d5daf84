"""A process that still starts hears SIGTERM: also as a container's first process, whose default is to do nothing."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROCESSES = {
    "engine": ["backtalk_worker.engine", "--port", "0"],
    "training": ["backtalk_worker.training", "--address", "127.0.0.1:0", "--health-address", "127.0.0.1:0"],
    "convert": ["backtalk_worker.model.convert"],
}


def start(name: str, folder: Path) -> subprocess.Popen[str]:
    """The real module, with each import on standard error, and SIGTERM ignored as the kernel does for process 1."""
    options = {"convert": ["--to", str(folder / "model")]}.get(name, ["--model-dir", str(folder / "absent")])
    return subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", *PROCESSES[name], *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),
    )


@pytest.mark.parametrize(
    ("name", "imported"),
    [
        *[(name, "backtalk_worker.process.first_signal") for name in PROCESSES],
        *[(name, "pydantic_settings") for name in ("engine", "training")],
        *[(name, "torch._C") for name in PROCESSES],
    ],
)
def test_sigterm_in_the_middle_of_the_imports_ends_the_process(name: str, imported: str, tmp_path: Path):
    process = start(name, tmp_path)
    assert process.stderr is not None
    for line in process.stderr:
        if line.rstrip().rpartition("| ")[2].strip() == imported:
            break
        assert process.poll() is None
    # Its handler is installed by the line after that import; a signal before it would be as good as none.
    for line in process.stderr:
        if line.startswith("import time:"):
            process.send_signal(signal.SIGTERM)
            break
    _, rest = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    # The engine and the worker say why where they get as far as the missing model.
    assert "can't run" not in rest
    assert list(tmp_path.iterdir()) == []
