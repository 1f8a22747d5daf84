"""A megabyte that was written to stall its reader: the work grows with the length of a text, whatever the text is. The
texts are those of the services' own tests."""

import contextlib
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from backtalk_worker.engine.domain.text import StopText, bytes_of_fallback, bytes_of_level
from backtalk_worker.engine.errors import EngineError
from backtalk_worker.engine.inputs import prompts, requests

PIECES: list[str] = json.loads(
    (Path(__file__).parents[3] / "lib" / "kit" / "hostile-pieces.json").read_text(encoding="utf-8")
)
MEGABYTE = 1_000_000
TIMES = 16
LEAST_SECONDS = 0.004
"""Too little to be measured is nothing."""


def body(text: str) -> object:
    data = json.dumps({"messages": [{"role": "user", "content": text}], "stop": text})
    return requests.decoded(requests.ChatRequest, data.encode())


def raw_body(text: str) -> object:
    return requests.decoded(requests.ChatRequest, ('{"messages": ' + text).encode())


def call(text: str) -> object:
    function = {"name": text, "arguments": text}
    message = {"role": "assistant", "content": [{"type": "text", "text": text}], "tool_calls": [{"function": function}]}
    return prompts.plain_messages([message])


def stopped(text: str) -> object:
    found = StopText(("\n\nUser:", text[:64]), include=False)
    return [found.add(text[at : at + 4_096]) for at in range(0, len(text), 4_096)]


def looked_for(text: str) -> object:
    """As many characters of stop texts as of text, which begin as it does and are never complete."""
    stop = text[: len(text) // 64]
    found = StopText((stop + "\0", "\0" + stop, stop[1:] + "\0"), include=False)
    return [found.add(text[at : at + 16]) for at in range(0, len(text) // 4, 16)]


READERS: list[Callable[[str], object]] = [
    lambda text: requests.are_over([text.encode()], 10, text[:1].encode()),
    lambda text: requests.are_over([('"' + text).encode()], 10, text[:1].encode()),
    body,
    raw_body,
    call,
    stopped,
    looked_for,
    bytes_of_fallback,
    bytes_of_level,
]
NAMES = [
    "are_over",
    "are_over in a string",
    "a body",
    "no body",
    "a message with a call",
    "stop texts",
    "long stop texts",
    "fallback",
    "bytes",
]


def growth(read: Callable[[str], object], piece: str) -> float:
    """How many times as much each character of a megabyte costs as each of a sixteenth: about 1 where it is the same,
    16 where each costs as much as there are."""

    def seconds(characters: int) -> float:
        text = piece * (characters // len(piece) + 1) + "x"
        before = time.process_time()
        with contextlib.suppress(EngineError):
            read(text)
        return time.process_time() - before

    large = min(seconds(MEGABYTE) for _ in range(2))
    small = min(seconds(MEGABYTE // TIMES) for _ in range(2))
    return large / TIMES / max(small, LEAST_SECONDS)


@pytest.mark.parametrize("read", READERS, ids=NAMES)
def test_a_reader_does_work_in_proportion_to_the_length_of_any_text(read: Callable[[str], object]):
    assert {piece: ratio for piece in PIECES if (ratio := growth(read, piece)) >= 4} == {}
