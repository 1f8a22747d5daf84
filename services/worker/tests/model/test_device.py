"""Which card torch sees, in words that say what is missing where it sees none."""

from types import SimpleNamespace
from typing import Any

import pytest

from backtalk_worker.model.device import card_of


def library(*, build: str | None = "13.0", complaint: Exception | None = None) -> Any:
    """Torch, as much of it as is asked."""

    def init() -> None:
        if complaint is not None:
            raise complaint

    cuda = SimpleNamespace(
        init=init, mem_get_info=lambda _: (78_000_000_000, 80_000_000_000), get_device_name=lambda _: "NVIDIA H100"
    )
    return SimpleNamespace(version=SimpleNamespace(cuda=build), cuda=cuda)


def test_a_card_is_named_with_its_free_memory() -> None:
    assert card_of(library()) == {"name": "NVIDIA H100", "freeBytes": 78_000_000_000}


@pytest.mark.parametrize(
    ("torch", "why"),
    [
        (library(build=None), "torch is its CPU build"),
        (library(complaint=RuntimeError("Found no NVIDIA driver on your system. Please")), "there is no NVIDIA driver"),
        (library(complaint=RuntimeError("No CUDA GPUs are available")), "the driver sees no card"),
        (library(complaint=RuntimeError("CUDA error: busy.\nmore")), "torch cannot use the card: CUDA error: busy"),
    ],
)
def test_what_is_missing_is_named(torch: Any, why: str) -> None:
    said = card_of(torch)
    assert str(said["why"]).startswith(why)
    assert "\n" not in str(said["why"])
