"""Remembers keys and values of recent prompts, so that a prompt that begins like one of them is not computed again.

Bounded in tokens, least recently used out first.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Payload = TypeVar("Payload")

SUBSUMED_SHARE = 0.75
"""An entry that shares at least this part of its ids with a newer one gives way, as the newer serves as well."""


def common_length(a: Sequence[int], b: Sequence[int]) -> int:
    """How many ids two sequences share from the start; comparing slices keeps long equal starts cheap."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


@dataclass(frozen=True, slots=True)
class PrefixEntry(Generic[Payload]):
    """Ids whose keys and values the payload holds, within one namespace."""

    namespace: Hashable
    ids: list[int]
    payload: Payload


class PrefixMemory(Generic[Payload]):
    """Recent entries in order of use, at most `tokens_max` ids in all."""

    def __init__(self, tokens_max: int) -> None:
        self._tokens_max = tokens_max
        self._entries: list[PrefixEntry[Payload]] = []
        self.tokens = 0

    def put(self, namespace: Hashable, ids: list[int], payload: Payload) -> None:
        """Keeps an entry as the most recent; entries it makes needless go, then the oldest until the bound holds."""
        if not 0 < len(ids) <= self._tokens_max:
            return
        self._drop(
            lambda e: e.namespace == namespace and common_length(e.ids, ids) >= max(1.0, SUBSUMED_SHARE * len(e.ids))
        )
        self._entries.append(PrefixEntry(namespace, ids, payload))
        self.tokens += len(ids)
        self.shrink(self._tokens_max)

    def best(self, namespace: Hashable, ids: Sequence[int]) -> tuple[int, Payload] | None:
        """The entry that shares the longest beginning, now the most recent: (how many ids, payload), or None."""
        found: PrefixEntry[Payload] | None = None
        length = 0
        for entry in self._entries:
            if entry.namespace == namespace and (n := common_length(entry.ids, ids)) > length:
                found, length = entry, n
        if found is None:
            return None
        self._entries = [*(e for e in self._entries if e is not found), found]
        return length, found.payload

    def forget(self, matches: Callable[[Hashable], bool]) -> None:
        """Drops every entry whose namespace matches."""
        self._drop(lambda entry: matches(entry.namespace))

    def shrink(self, tokens_max: int) -> None:
        """Drops the oldest entries until at most `tokens_max` ids are held."""
        while self._entries and self.tokens > tokens_max:
            self.tokens -= len(self._entries.pop(0).ids)

    def _drop(self, goes: Callable[[PrefixEntry[Payload]], bool]) -> None:
        self._entries = [entry for entry in self._entries if not goes(entry)]
        self.tokens = sum(len(entry.ids) for entry in self._entries)
