"""An adapter in PEFT's format as a training service hands it out: an archive at a web address."""

import io
import tarfile
from dataclasses import dataclass
from urllib.error import URLError
from urllib.request import urlopen

from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from backtalk_worker.training.errors import ServiceRefusedError, ServiceUnavailableError

ARCHIVE_BYTES_MAX = 4 * 1024**3


@dataclass(frozen=True)
class Archive:
    """An adapter as the service keeps it."""

    tensors: dict[str, Tensor]
    config: bytes


def download(url: str) -> bytes:
    """Of an address that the service gave."""
    if not url.startswith(("https://", "http://")):
        raise ServiceRefusedError("the adapter's archive is at no web address")
    try:
        with urlopen(url, timeout=60) as response:
            data = response.read(ARCHIVE_BYTES_MAX + 1)
    except URLError as error:
        raise ServiceUnavailableError(f"the adapter's archive can't be fetched: {error.reason}") from error
    if len(data) > ARCHIVE_BYTES_MAX:
        raise ServiceRefusedError("the adapter's archive is larger than 4 GiB")
    return data


def unpacked(data: bytes) -> Archive:
    """The two files of PEFT's format, wherever in the archive they lie."""
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive:
                name = member.name.rpartition("/")[2]
                file = archive.extractfile(member) if member.isfile() else None
                if file is not None and name in ("adapter_model.safetensors", "adapter_config.json"):
                    if member.size > ARCHIVE_BYTES_MAX:
                        raise ServiceRefusedError("the adapter's archive holds more than 4 GiB")
                    found[name] = file.read()
        return Archive(load(found["adapter_model.safetensors"]), found["adapter_config.json"])
    except KeyError as error:
        raise ServiceRefusedError(f"the adapter's archive has no {error.args[0]}") from error
    except (tarfile.TarError, SafetensorError, OSError, EOFError) as error:
        # It may have been cut off on its way.
        raise ServiceUnavailableError(f"the adapter's archive can't be read: {error}") from error
