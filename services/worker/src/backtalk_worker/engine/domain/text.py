"""Turns ids into text one by one, never half a character, and finds stop texts."""

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass


def byte_of_character() -> dict[str, int]:
    """The printable stand-ins that byte-level BPE vocabularies use → the bytes they stand for."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    table = {chr(byte): byte for byte in plain}
    others = (byte for byte in range(256) if byte not in set(plain))
    table.update({chr(256 + number): byte for number, byte in enumerate(others)})
    return table


_BYTE_OF_CHARACTER = byte_of_character()
_FALLBACK = re.compile(r"<0x([0-9A-F]{2})>")


def bytes_of_level(token: str) -> bytes:
    """The bytes of a token of a byte-level vocabulary."""
    return bytes(_BYTE_OF_CHARACTER.get(character, ord("?")) for character in token)


def bytes_of_fallback(token: str) -> bytes:
    """The bytes of a token of a vocabulary of characters, which has a token `<0x..>` for each byte and writes spaces as
    `▁`."""
    found = _FALLBACK.fullmatch(token)
    return bytes([int(found[1], 16)]) if found else token.replace("▁", " ").encode()


@dataclass(frozen=True, slots=True)
class TokenBytes:
    """Each id's bytes, and which ids are special (they have bytes for logprobs, and none in the answer's text)."""

    table: Sequence[bytes]
    special: frozenset[int]

    def text(self, token: int) -> str:
        """One id alone; bytes that are not whole characters are left out."""
        return self.table[token].decode(errors="ignore") if token < len(self.table) else ""


class IncrementalText:
    """The text of one answer, growing id by id."""

    def __init__(self, tokens: TokenBytes, skip_special_tokens: bool, kept_ids: frozenset[int] = frozenset()) -> None:
        self._tokens = tokens
        self._skip = skip_special_tokens
        self._kept = kept_ids
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def add(self, token: int) -> tuple[str, str]:
        """An id → (what it adds to the text, its own characters); an unfinished character waits for the next id."""
        if token in self._tokens.special:
            own = self._tokens.text(token)
            return ("" if self._skip and token not in self._kept else own), own
        data = self._tokens.table[token] if token < len(self._tokens.table) else b""
        added = self._decoder.decode(data)
        return added, added


class _Match:
    """How much of a stop text stands at the end of what was read, in linear time (Knuth, Morris and Pratt)."""

    def __init__(self, stop: str) -> None:
        self._stop = stop
        self.length = 0
        # Of each beginning, the longest shorter one that it ends with.
        self._shorter = [0] * len(stop)
        length = 0
        for at in range(1, len(stop)):
            length = self._longer(length, stop[at])
            self._shorter[at] = length

    @property
    def is_whole(self) -> bool:
        return self.length == len(self._stop)

    def read(self, text: str) -> bool:
        """Whether the stop text is complete somewhere in it; what comes after that is not read."""
        for character in text:
            self.length = self._longer(self.length, character)
            if self.is_whole:
                return True
        return False

    def _longer(self, length: int, character: str) -> int:
        while length and self._stop[length] != character:
            length = self._shorter[length - 1]
        return length + 1 if self._stop[length] == character else 0


class StopText:
    """Holds back text that may be the start of a stop text, and says when one is complete."""

    def __init__(self, stops: Sequence[str], include: bool) -> None:
        self._stops = tuple(stops)
        self._matches = [_Match(stop) for stop in stops]
        self._include = include
        self._held = ""

    def add(self, text: str) -> tuple[str, str | None]:
        """New text → (text that is safe to send, the stop text that is now complete or None)."""
        if not self._stops:
            return text, None
        self._held += text
        # Each of them reads, so that it is not the first that is complete.
        if sum(match.read(text) for match in self._matches):
            start, stop = min((self._held.find(stop), stop) for stop in self._stops if stop in self._held)
            text = self._held[: start + len(stop)] if self._include else self._held[:start]
            self._held = ""
            for match in self._matches:
                match.length = 0
            return text, stop
        safe = len(self._held) - max(match.length for match in self._matches)
        text, self._held = self._held[:safe], self._held[safe:]
        return text, None

    def flush(self) -> str:
        """What was held back, once the answer ends for another reason."""
        held, self._held = self._held, ""
        return held
