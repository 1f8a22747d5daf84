"""The worker's settings: command line and environment in, one frozen Config out, or one error naming each bad value.

It is the only place of the training worker that reads the environment.
"""

import argparse
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from backtalk_worker.model.location import BASE_MODEL_NAME, default_model_dir
from backtalk_worker.training.errors import ConfigInvalidError
from backtalk_worker.training.outputs.base_model import DTYPES

Value = TypeVar("Value")

LOG_LEVELS = ("debug", "info", "warn", "warning", "error")


@dataclass(frozen=True)
class Address:
    """Where a server listens; port 0 takes a free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Config:
    """Everything that the worker can be told."""

    address: Address
    health_address: Address
    model_dir: Path
    base_model: str
    device: str
    dtype: str
    threads: int
    nice: int
    blob_cache_dir: Path
    blob_cache_bytes: int
    log_level: str


def read_config(arguments: Sequence[str], environment: Mapping[str, str]) -> Config:
    """`--address` comes before BACKTALK_GRPC_ADDRESS; every variable has a default that suits one machine."""
    parser = argparse.ArgumentParser(prog="python -m backtalk_worker.training", description="The training worker.")
    parser.add_argument("--address", help="host:port of the gRPC server (BACKTALK_GRPC_ADDRESS)")
    given = parser.parse_args(arguments)
    overrides = {"BACKTALK_GRPC_ADDRESS": given.address} if given.address else {}
    reader = _Reader({**environment, **overrides})
    device = reader.one_of("BACKTALK_DEVICE", "cpu", ("cpu", "cuda"))
    config = Config(
        address=reader.read("BACKTALK_GRPC_ADDRESS", "127.0.0.1:30026", _address),
        health_address=reader.read("BACKTALK_HEALTH_ADDRESS", "127.0.0.1:30016", _address),
        model_dir=reader.read("BACKTALK_MODEL_DIR", str(default_model_dir()), Path),
        base_model=reader.read("BACKTALK_BASE_MODEL", BASE_MODEL_NAME, _name),
        device=device,
        dtype=reader.one_of("BACKTALK_DTYPE", "float32" if device == "cpu" else "bfloat16", tuple(DTYPES)),
        threads=reader.read("BACKTALK_THREADS", "1", _integer(1, 1024)),
        nice=reader.read("BACKTALK_NICE", "10" if device == "cpu" else "0", _integer(0, 19)),
        blob_cache_dir=reader.read(
            "BACKTALK_BLOB_CACHE_DIR", str(Path(tempfile.gettempdir()) / "backtalk-training-blobs"), Path
        ),
        blob_cache_bytes=reader.read("BACKTALK_BLOB_CACHE_BYTES", str(2 * 1024**3), _integer(1024**2, 1024**5)),
        log_level=reader.one_of("BACKTALK_LOG_LEVEL", "info", LOG_LEVELS),
    )
    reader.finish()
    return config


class _Reader:
    """Reads variables, and keeps all complaints for the end."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._complaints: list[str] = []

    def read(self, variable: str, default: str, parse: Callable[[str], Value]) -> Value:
        raw = self._environment.get(variable) or default
        try:
            return parse(raw)
        except ValueError as error:
            self._complaints.append(f"{variable}: {raw!r} {error}")
            return parse(default)

    def one_of(self, variable: str, default: str, allowed: Sequence[str]) -> str:
        def parse(raw: str) -> str:
            if raw not in allowed:
                raise ValueError(f"is none of {', '.join(allowed)}")
            return raw

        return self.read(variable, default, parse)

    def finish(self) -> None:
        if self._complaints:
            raise ConfigInvalidError("\n".join(self._complaints))


def _address(raw: str) -> Address:
    host, colon, port = raw.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise ValueError("is not an address like 127.0.0.1:30026")
    return Address(host, int(port))


def _name(raw: str) -> str:
    if not raw.isprintable() or len(raw) > 200:
        raise ValueError("is not a name of up to 200 characters")
    return raw


def _integer(least: int, most: int) -> Callable[[str], int]:
    def parse(raw: str) -> int:
        if not raw.isdecimal() or not least <= int(raw) <= most:
            raise ValueError(f"is not a whole number from {least} to {most}")
        return int(raw)

    return parse
