"""One thread for every test of the training worker, and the contracts' code generated when it is not there."""

import pytest
import torch

from backtalk_worker.proto_build import GENERATED, SOURCES, generate


def pytest_configure() -> None:
    torch.set_num_threads(1)
    made = GENERATED / "backtalk" / "v1" / "training_pb2.py"
    newest = max(path.stat().st_mtime for path in SOURCES.rglob("*.proto"))
    if not made.is_file() or made.stat().st_mtime < newest:
        generate(SOURCES, GENERATED)


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)
