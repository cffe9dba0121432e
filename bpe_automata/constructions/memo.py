"""A memo of bounded size: the oldest entries go first."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

BYTES = 64_000_000


class BoundedMemo(Generic[K, V]):
    """At most `BYTES` of entries that take about `entry_bytes` each. For any number of threads."""

    def __init__(self, entry_bytes: int) -> None:
        self._most = max(64, BYTES // max(1, entry_bytes))
        self._entries: dict[K, V] = {}
        self.get = self._entries.get

    def put(self, key: K, value: V) -> None:
        self._entries[key] = value
        while len(self._entries) > self._most:
            with suppress(KeyError, RuntimeError):  # another thread came first, and it goes on
                del self._entries[next(iter(self._entries))]
