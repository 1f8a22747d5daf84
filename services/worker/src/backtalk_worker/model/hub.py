"""Fetches a model from the Hugging Face hub: `python -m backtalk_worker.model.hub OWNER/NAME --to DIR [--weights]`.

In: a model's id, a folder, and the revision where it is known. Out: the small files (or all, with `--weights`) in the
folder, and one line of JSON on standard output: revision, bytes of all files, number of parameters where the hub
states it. What cannot be had is one line on standard error, and exit code 1. A file that was cut off goes on where
it ended: `snapshot_download` of huggingface_hub 2.4 begins a cut file anew, so only its requests are used here.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
from huggingface_hub import HfApi, constants, get_hf_file_metadata, get_token, hf_hub_url
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    OfflineModeIsEnabled,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.file_download import http_get
from huggingface_hub.utils import build_hf_headers, disable_progress_bars, logging

from backtalk_worker.process.first_signal import exit_at_signal

SMALL = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
)
WHOLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
PART = re.compile(r"model-\d+-of-\d+\.safetensors")
ROOM = 1_000_000_000
"""Bytes that stay free: the broker refuses writes on a full disk."""


class HubRefusalError(Exception):
    """Why the model cannot be had, in words that go on from its name."""


@dataclass(frozen=True)
class HubFile:
    """A file as the hub states it."""

    name: str
    size: int
    digest: str
    """SHA-256 of a large file; empty for a small one."""
    blob: str
    """Git's id of a small file's content; empty where the hub does not say."""


@dataclass(frozen=True)
class HubModel:
    """A model at one revision."""

    name: str
    revision: str
    small: tuple[HubFile, ...]
    weights: tuple[HubFile, ...]
    parameters: int | None

    @property
    def size(self) -> int:
        """Bytes of all files that are needed."""
        return sum(file.size for file in (*self.small, *self.weights))


def model_at(name: str, revision: str | None) -> HubModel:
    """What of the model is needed, at the revision or at the newest."""
    info = HfApi().model_info(name, revision=revision or "main", files_metadata=True)
    found = {
        sibling.rfilename: HubFile(
            sibling.rfilename, sibling.size or 0, sibling.lfs.sha256 if sibling.lfs else "", sibling.blob_id or ""
        )
        for sibling in info.siblings or []
    }
    weights = [found[WHOLE]] if WHOLE in found else [file for file in found.values() if PART.fullmatch(file.name)]
    small = [found[each] for each in SMALL if each in found]
    if WHOLE not in found and weights:
        if INDEX not in found:
            raise HubRefusalError(f"its weights are in parts, without {INDEX}")
        small.append(found[INDEX])
    if not weights or info.sha is None:
        raise HubRefusalError("it has no weights as model.safetensors")
    stated = info.safetensors.total if info.safetensors else None
    return HubModel(name, info.sha, tuple(small), tuple(weights), stated)


def check_room(model: HubModel, folder: Path) -> None:
    """Refuses a model that the disk cannot take."""
    missing = sum(file.size - _bytes_of(folder, file) for file in (*model.small, *model.weights))
    free = shutil.disk_usage(folder).free
    if missing > 0 and missing + ROOM > free:
        kept = f"{_gigabytes(ROOM)} stay free for the log"
        raise HubRefusalError(f"{_gigabytes(missing)} are to be fetched, and {_gigabytes(free)} are free ({kept})")


def fetch(model: HubModel, file: HubFile, folder: Path) -> None:
    """Brings one file into the folder; nothing where the very same is there already."""
    target, part = folder / file.name, folder / f"{file.name}.part"
    if target.exists() and _is_same(target, file):
        return
    # Small files come compressed now and then, and cannot be gone on with.
    there = part.stat().st_size if file.digest and part.exists() else 0
    if there > file.size:
        # Of another revision.
        there = 0
    url = hf_hub_url(model.name, file.name, revision=model.revision)
    headers = {**build_hf_headers(), "Accept-Encoding": "identity"}
    location = get_hf_file_metadata(url).location
    if urlsplit(location).netloc != urlsplit(url).netloc:
        # A signed address somewhere else, which the token is none of the business of.
        headers.pop("authorization", None)
    with part.open("ab" if there else "wb") as out:
        http_get(location, out, resume_size=there, headers=headers, expected_size=file.size)
        out.flush()
        os.fsync(out.fileno())
    if file.digest and _digest_of(part) != file.digest:
        part.unlink()
        raise HubRefusalError(f"what came of {file.name} is not what the hub states; the next start fetches it anew")
    part.rename(target)


def _is_same(target: Path, file: HubFile) -> bool:
    """Of another revision, or cut off by a loss of power, a file of that name is not."""
    if target.stat().st_size != file.size:
        return False
    if file.digest:
        return _digest_of(target) == file.digest
    content = target.read_bytes()
    return not file.blob or hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest() == file.blob


def _missing_part(folder: Path, model: HubModel) -> str | None:
    """A part of the weights that the index names and the hub does not have."""
    if not (folder / INDEX).exists():
        return None
    named = json.loads((folder / INDEX).read_text(encoding="utf-8"))["weight_map"].values()
    return next((name for name in named if name not in {file.name for file in model.weights}), None)


def _bytes_of(folder: Path, file: HubFile) -> int:
    for path in (folder / file.name, folder / f"{file.name}.part"):
        if path.exists():
            return min(path.stat().st_size, file.size)
    return 0


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB"


def why_refused(error: Exception, name: str) -> str:
    """In words that go on from the model's name."""
    hub = constants.ENDPOINT
    token = "HF_TOKEN is set, and not accepted" if get_token() else "HF_TOKEN is not set"
    match error:
        case HubRefusalError():
            return str(error)
        case GatedRepoError():
            return (
                f"it is gated: accept its terms at {hub}/{name}, and set HF_TOKEN to a token of that account ({token})"
            )
        case RepositoryNotFoundError():
            return f"{hub} has no such model, or it is private ({token})"
        case RevisionNotFoundError() | RemoteEntryNotFoundError():
            return f"{hub} no longer has the revision that was begun with: delete what was fetched, and start again"
        case OfflineModeIsEnabled():
            return "HF_HUB_OFFLINE is set, and it has not been fetched yet"
        case HfHubHTTPError():
            return f"{hub} refuses it with status {error.response.status_code} ({token})"
        case httpx2.TransportError():
            why = type(error).__name__
            return f"{hub} cannot be reached ({why}): without a network, name a folder that has the model"
        case _:
            return f"it could not be fetched ({str(error).partition(chr(10))[0]})"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m backtalk_worker.model.hub", description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--revision")
    parser.add_argument("--weights", action="store_true")
    given = parser.parse_args()
    disable_progress_bars()
    logging.set_verbosity_error()
    try:
        model = model_at(given.name, given.revision)
        given.to.mkdir(parents=True, exist_ok=True)
        check_room(model, given.to)
        for file in model.small:
            fetch(model, file, given.to)
        if (name := _missing_part(given.to, model)) is not None:
            raise HubRefusalError(f"its weights lack {name}")
        for file in model.weights if given.weights else ():
            fetch(model, file, given.to)
    except (HubRefusalError, OSError, ValueError, httpx2.HTTPError) as error:
        sys.stderr.write(f"{why_refused(error, given.name)}\n")
        return 1
    found = {"revision": model.revision, "bytes": model.size, "parameters": model.parameters}
    sys.stdout.write(f"{json.dumps(found)}\n")
    return 0


if __name__ == "__main__":
    exit_at_signal()
    sys.exit(main())
