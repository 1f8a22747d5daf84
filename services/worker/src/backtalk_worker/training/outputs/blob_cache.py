"""A bounded folder of blobs by sha256: what the worker was sent and what it made. The blob store has the truth.

A blob appears by one rename, so it is whole or absent, and is verified when read. The least recently used goes first,
except those that a running step needs.
"""

import fcntl
import hashlib
import os
import re
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Self

from backtalk_worker.training.errors import BlobMissingError, BlobRefusedError, CacheFailedError, CacheHeldError

DIGEST = re.compile(r"[0-9a-f]{64}")
UNFINISHED = ".part"
MADE = "made"
"""Owner of what a step has made so far."""
SENT = "sent"
"""Owner of what a caller has sent and no step has begun with yet: parts of one parent would displace each other."""
SENT_MAX = 8
"""The parents of two steps: what is never asked for would be kept for good."""
LOCK = ".lock"


def hold_folder(folder: Path) -> BinaryIO:
    """Keeps the folder for this process alone, for as long as what is returned is open; the system lets go of it."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = (folder / LOCK).open("wb")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.close()
        raise CacheHeldError(folder) from error
    return lock


class BlobCache:
    """Safe to use from several threads."""

    def __init__(self, folder: Path, bytes_max: int) -> None:
        self._folder = folder
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._pins: dict[str, tuple[str, ...]] = {}
        folder.mkdir(parents=True, exist_ok=True)
        for leftover in folder.glob(f"*{UNFINISHED}"):
            leftover.unlink(missing_ok=True)
        found = [(path.stat().st_mtime_ns, path) for path in folder.iterdir() if DIGEST.fullmatch(path.name)]
        self._sizes = OrderedDict((path.name, path.stat().st_size) for _, path in sorted(found))
        self._evict()

    @property
    def bytes_held(self) -> int:
        """Bytes in the folder."""
        with self._lock:
            return sum(self._sizes.values())

    def missing(self, digests: Iterable[str]) -> list[str]:
        """Those that are not here."""
        with self._lock:
            return [digest for digest in dict.fromkeys(digests) if digest not in self._sizes]

    def get(self, digest: str) -> bytes:
        """The blob, checked against its digest; a damaged one is removed and counts as missing."""
        with self._lock:
            if digest not in self._sizes:
                raise BlobMissingError(digest)
            self._sizes.move_to_end(digest)
        path = self._folder / digest
        try:
            data = path.read_bytes()
            os.utime(path)
        except FileNotFoundError as error:
            self._forget(digest)
            raise BlobMissingError(digest) from error
        if hashlib.sha256(data).hexdigest() != digest:
            self._forget(digest)
            path.unlink(missing_ok=True)
            raise BlobMissingError(digest)
        return data

    def put(self, data: bytes) -> str:
        """Stores a blob that this worker made, and pins it for `MADE`: its step makes others yet."""
        digest = hashlib.sha256(data).hexdigest()
        with self.writer(digest) as writer:
            writer.write(data)
            writer.finish(owner=MADE)
        return digest

    def writer(self, digest: str) -> "BlobWriter":
        """Stores a blob that arrives in parts."""
        if not DIGEST.fullmatch(digest):
            raise BlobRefusedError("a digest is 64 hexadecimal digits in lower case")
        return BlobWriter(self, self._folder, digest, self._bytes_max)

    def pin(self, owner: str, digests: Iterable[str]) -> None:
        """Keeps these from eviction until the owner pins others, or none."""
        with self._lock:
            self._pin(owner, digests)

    def taken(self, digests: Iterable[str]) -> None:
        """What was sent has come to its step, which pins it for itself."""
        with self._lock:
            here = set(digests)
            self._pin(SENT, [digest for digest in self._pins.get(SENT, ()) if digest not in here])

    def admit(self, digest: str, size: int, owner: str = "") -> None:
        """Counts a blob that a writer has moved in, adds it to its owner's pins, and makes room."""
        with self._lock:
            if owner:
                others = [one for one in self._pins.get(owner, ()) if one != digest]
                self._pin(owner, [*(others[1 - SENT_MAX :] if owner == SENT else others), digest])
            self._sizes[digest] = size
            self._sizes.move_to_end(digest)
            self._evict(keep=digest)

    def _pin(self, owner: str, digests: Iterable[str]) -> None:
        self._pins.pop(owner, None)
        if pinned := tuple(digests):
            self._pins[owner] = pinned

    def _evict(self, keep: str = "") -> None:
        pinned = {keep}.union(*self._pins.values())
        held = sum(self._sizes.values())
        for digest in [digest for digest in self._sizes if digest not in pinned]:
            if held <= self._bytes_max:
                return
            held -= self._sizes.pop(digest)
            (self._folder / digest).unlink(missing_ok=True)

    def _forget(self, digest: str) -> None:
        with self._lock:
            self._sizes.pop(digest, None)


class BlobWriter:
    """One blob on its way in; leaving the context without `finish` removes what was written."""

    def __init__(self, cache: BlobCache, folder: Path, digest: str, bytes_max: int) -> None:
        self._cache = cache
        self._folder = folder
        self._digest = digest
        self._bytes_max = bytes_max
        self._hash = hashlib.sha256()
        self._size = 0

    def __enter__(self) -> Self:
        with _disk():
            self._file = tempfile.NamedTemporaryFile(dir=self._folder, suffix=UNFINISHED, delete=False)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._file.close()
        finally:
            # Closing writes what is left, which fails on a full disk: what was written would keep it full.
            Path(self._file.name).unlink(missing_ok=True)

    def write(self, data: bytes) -> None:
        """Adds a part."""
        self._size += len(data)
        if self._size > self._bytes_max:
            raise BlobRefusedError(f"the blob is larger than the whole cache of {self._bytes_max} bytes")
        self._hash.update(data)
        with _disk():
            self._file.write(data)

    def finish(self, owner: str = "") -> None:
        """Checks the digest, and makes the blob visible once its bytes are on disk."""
        if self._hash.hexdigest() != self._digest:
            raise BlobRefusedError(f"the bytes are not those of {self._digest}")
        with _disk():
            self._file.flush()
            os.fsync(self._file.fileno())
            Path(self._file.name).rename(self._folder / self._digest)
        self._cache.admit(self._digest, self._size, owner)


@contextmanager
def _disk() -> Generator[None]:
    """What the disk refuses is no fault of the blob."""
    try:
        yield
    except OSError as error:
        raise CacheFailedError(error.strerror) from error
