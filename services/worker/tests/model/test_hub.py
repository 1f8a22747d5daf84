"""Fetching a model from a hub: what comes, what is asked for, what is refused, and going on after an interruption.

The hub is a stand-in that answers as the hub documents; the real one was not met.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.model.hub_server import REVISION, Hub, serving

NAME = "maker/tiny"
WEIGHTS = bytes(range(256)) * 40
SMALL = {
    "config.json": b'{"architectures": []}',
    "tokenizer.json": b"{}",
    "tokenizer_config.json": b'{"chat_template": "t"}',
}
BESIDE = {"README.md": b"words", "pytorch_model.bin": b"x" * 2_000, "original/consolidated.00.pth": b"x"}


@pytest.fixture
def hub() -> Iterator[Hub]:
    with serving(Hub(models={NAME: {**SMALL, **BESIDE, "model.safetensors": WEIGHTS}})) as made:
        yield made


def environment(hub: Hub | None, folder: Path, **more: str) -> dict[str, str]:
    source = str(Path(__file__).parents[2] / "src")
    own = {"PATH": os.environ["PATH"], "PYTHONPATH": source, "HF_HOME": str(folder / "home")}
    return {**own, "HF_ENDPOINT": hub.url if hub else "http://127.0.0.1:9", **more}


def command(folder: Path, *flags: str, name: str = NAME) -> list[str]:
    return [sys.executable, "-m", "backtalk_worker.model.hub", name, "--to", str(folder / "model"), *flags]


def fetched(hub: Hub | None, folder: Path, *flags: str, name: str = NAME, **more: str):
    ran = subprocess.run(
        command(folder, *flags, name=name), env=environment(hub, folder, **more), capture_output=True, text=True
    )
    assert "Traceback" not in ran.stderr
    return ran


def refusal(hub: Hub | None, folder: Path, *flags: str, name: str = NAME, **more: str) -> str:
    ran = fetched(hub, folder, *flags, name=name, **more)
    assert (ran.returncode, ran.stdout) == (1, "")
    (line,) = ran.stderr.splitlines()
    return line


def names_in(folder: Path) -> set[str]:
    return {path.name for path in (folder / "model").iterdir()}


def test_small_files_come_first_and_weights_when_asked_for_and_nothing_that_is_not_needed(hub: Hub, tmp_path: Path):
    hub.parameters = 2_560
    first = fetched(hub, tmp_path)
    size = sum(map(len, SMALL.values())) + len(WEIGHTS)
    assert json.loads(first.stdout) == {"revision": REVISION, "bytes": size, "parameters": 2_560}
    assert names_in(tmp_path) == set(SMALL)
    fetched(hub, tmp_path, "--revision", REVISION, "--weights")
    assert names_in(tmp_path) == {*SMALL, "model.safetensors"}
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == WEIGHTS
    assert not any(path.endswith(tuple(BESIDE)) for _, path, _ in hub.asked)


def test_a_file_of_another_revision_is_fetched_anew(hub: Hub, tmp_path: Path):
    fetched(hub, tmp_path, "--weights")
    hub.models[NAME] = {**hub.models[NAME], "model.safetensors": WEIGHTS[::-1], "config.json": b'{"architectures": 1}'}
    fetched(hub, tmp_path, "--weights")
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == WEIGHTS[::-1]
    assert (tmp_path / "model" / "config.json").read_bytes() == b'{"architectures": 1}'
    asked = len(hub.ranges("model.safetensors"))
    fetched(hub, tmp_path, "--weights")
    assert len(hub.ranges("model.safetensors")) == asked


def test_weights_in_parts_come_with_their_index(hub: Hub, tmp_path: Path):
    parts = {f"model-0000{n}-of-00002.safetensors": WEIGHTS + bytes([n]) for n in (1, 2)}
    index = json.dumps({"weight_map": {"a": min(parts), "b": max(parts)}}).encode()
    hub.models[NAME] = {**SMALL, **parts, "model.safetensors.index.json": index}
    fetched(hub, tmp_path, "--weights")
    assert names_in(tmp_path) == {*SMALL, *parts, "model.safetensors.index.json"}
    hub.models[NAME].pop(max(parts))
    assert refusal(hub, tmp_path / "again", "--weights") == f"its weights lack {max(parts)}"


def test_a_revision_that_was_resolved_once_is_what_is_fetched(hub: Hub, tmp_path: Path):
    fetched(hub, tmp_path)
    hub.revision = "0" * 40
    assert "no longer has the revision" in refusal(hub, tmp_path, "--revision", REVISION, "--weights")


def test_what_was_cut_off_goes_on_where_it_ended(hub: Hub, tmp_path: Path):
    weights = WEIGHTS * 1_500
    hub.models[NAME]["model.safetensors"] = weights
    hub.cut_after = len(weights) - 1_000
    part = tmp_path / "model" / "model.safetensors.part"
    running = subprocess.Popen(command(tmp_path, "--weights"), env=environment(hub, tmp_path))
    while not (part.exists() and part.stat().st_size):
        assert running.poll() is None
    running.send_signal(signal.SIGTERM)
    assert running.wait() == 128 + signal.SIGTERM
    # It is written in pieces of ten MiB.
    there = part.stat().st_size
    assert there >= 10 * 1024**2
    hub.cut_after = None
    assert fetched(hub, tmp_path, "--weights").returncode == 0
    assert hub.ranges("cdn/maker/tiny/model.safetensors") == ["", f"bytes={there}-"]
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == weights
    assert not part.exists()
    hub.asked.clear()
    fetched(hub, tmp_path, "--revision", REVISION, "--weights")
    assert hub.ranges("model.safetensors") == []


def test_a_part_that_is_longer_than_the_file_is_begun_anew(hub: Hub, tmp_path: Path):
    hub.models[NAME]["model.safetensors"] = WEIGHTS
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.safetensors.part").write_bytes(WEIGHTS * 2)
    assert fetched(hub, tmp_path, "--weights").returncode == 0
    assert hub.ranges("cdn/maker/tiny/model.safetensors") == [""]
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == WEIGHTS


def test_a_file_that_is_not_what_the_hub_states_is_thrown_away(hub: Hub, tmp_path: Path):
    hub.spoilt = True
    assert "what came of model.safetensors is not what the hub states" in refusal(hub, tmp_path, "--weights")
    hub.spoilt = False
    assert fetched(hub, tmp_path, "--weights").returncode == 0


def test_a_gated_model_is_refused_with_what_to_do_and_comes_with_the_token(hub: Hub, tmp_path: Path):
    hub.gated.add(NAME)
    said = refusal(hub, tmp_path)
    assert said.startswith(f"it is gated: accept its terms at {hub.url}/{NAME}, and set HF_TOKEN")
    assert said.endswith("(HF_TOKEN is not set)")
    assert "HF_TOKEN is set, and not accepted" in refusal(hub, tmp_path, HF_TOKEN="hf_other")
    assert fetched(hub, tmp_path, "--weights", HF_TOKEN=hub.token).returncode == 0
    # Where large files lie, a token is read by a stranger.
    assert {token for path, token in hub.tokens if path.startswith("/cdn/")} == {""}


def test_a_model_that_is_not_there_is_refused(hub: Hub, tmp_path: Path):
    said = refusal(hub, tmp_path, name="maker/other")
    assert said == f"{hub.url} has no such model, or it is private (HF_TOKEN is not set)"


def test_a_hub_that_cannot_be_reached_is_refused(tmp_path: Path):
    assert "http://127.0.0.1:9 cannot be reached (ConnectError)" in refusal(None, tmp_path)
    assert refusal(None, tmp_path, HF_HUB_OFFLINE="1") == "HF_HUB_OFFLINE is set, and it has not been fetched yet"


def test_a_model_without_safetensors_is_refused(hub: Hub, tmp_path: Path):
    hub.models[NAME] = {**SMALL, **BESIDE}
    assert refusal(hub, tmp_path) == "it has no weights as model.safetensors"


def test_a_model_for_which_the_disk_has_no_room_is_refused_before_anything_comes(hub: Hub, tmp_path: Path):
    hub.stated["model.safetensors"] = 10**15
    said = refusal(hub, tmp_path)
    assert said.startswith("1000000.0 GB are to be fetched, and ")
    assert names_in(tmp_path) == set()
