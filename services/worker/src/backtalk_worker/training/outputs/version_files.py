"""The files of a weights version, by digest in the blob cache: adapter, its configuration, what the next step needs.

Equal tensors give equal bytes.
"""

import json
from collections.abc import Mapping
from typing import Protocol

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from backtalk_worker.gen.backtalk.v1.weights_pb2 import WeightsFile
from backtalk_worker.training.domain.adapter import AdapterShape, adapter_config, shape_in
from backtalk_worker.training.errors import AdapterInvalidError

ADAPTER_FILE = "adapter_model.safetensors"
CONFIG_FILE = "adapter_config.json"
OPTIMIZER_FILE = "optimizer.safetensors"
AVERAGE_FILE = "average.safetensors"
"""Of a policy whose average teaches it."""
REMOTE_FILE = "remote.json"
"""Of a version that a service trained: where that service keeps what the next step begins with."""


class Blobs(Protocol):
    """Where files lie, by digest."""

    def get(self, digest: str) -> bytes: ...

    def put(self, data: bytes) -> str: ...


class VersionFiles:
    """Reads and writes versions through the cache."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs

    def read_adapter(self, digests: Mapping[str, str]) -> tuple[AdapterShape, dict[str, Tensor]]:
        """Shape and tensors of the adapter behind file names and digests."""
        for name in (ADAPTER_FILE, CONFIG_FILE):
            if name not in digests:
                raise AdapterInvalidError(f"the adapter has no {name}")
        try:
            shape = shape_in(self._blobs.get(digests[CONFIG_FILE]))
        except ValueError as error:
            raise AdapterInvalidError(f"{CONFIG_FILE} can't be read: {error}") from error
        return shape, self._tensors(ADAPTER_FILE, digests[ADAPTER_FILE])

    def read_training_state(self, name: str, digests: Mapping[str, str]) -> dict[str, Tensor]:
        """The tensors of one of its files; empty when the version has none."""
        return self._tensors(name, digests[name]) if name in digests else {}

    def write_adapter(self, shape: AdapterShape, tensors: Mapping[str, Tensor], base_model: str) -> list[WeightsFile]:
        """Both files that an engine loads."""
        config = adapter_config(shape, base_model)
        return [self._stored(ADAPTER_FILE, _saved(tensors)), self._stored(CONFIG_FILE, config)]

    def write_training_state(self, states: Mapping[str, Mapping[str, Tensor]]) -> list[WeightsFile]:
        """What the next step needs, by file; no file of what is empty."""
        return [self._stored(name, _saved(state)) for name, state in states.items() if state]

    def read_remote_path(self, digests: Mapping[str, str]) -> str | None:
        """None where no service trained the version, as for the base."""
        if REMOTE_FILE not in digests:
            return None
        try:
            return str(json.loads(self._blobs.get(digests[REMOTE_FILE]))["path"])
        except (ValueError, KeyError, TypeError) as error:
            raise AdapterInvalidError(f"{REMOTE_FILE} names no path") from error

    def write_remote_path(self, path: str) -> list[WeightsFile]:
        return [self._stored(REMOTE_FILE, json.dumps({"path": path}).encode())]

    def _tensors(self, name: str, digest: str) -> dict[str, Tensor]:
        try:
            return load(self._blobs.get(digest))
        except SafetensorError as error:
            raise AdapterInvalidError(f"{name} is not a safetensors file") from error

    def _stored(self, name: str, data: bytes) -> WeightsFile:
        return WeightsFile(name=name, digest=self._blobs.put(data), bytes=len(data))


def _saved(tensors: Mapping[str, Tensor]) -> bytes:
    return save({name: value.cpu().contiguous() for name, value in tensors.items()}, metadata={"format": "pt"})
