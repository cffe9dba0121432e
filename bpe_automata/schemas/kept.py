"""What is remembered from one schema to the next: pieces that many schemas have in common."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from bpe_automata.automata.dfa import ByteDFA

_MOST = 1024  # entries
_LARGEST = 100_000  # cells of an automaton that is kept; larger ones are seldom met again
Found = TypeVar("Found")


class Kept:
    """A memo by identity, of bounded size: what was not asked for the longest goes first."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Hashable, tuple[object, Any]] = OrderedDict()

    def once(self, kind: Hashable, of: object, find: Callable[[], Found]) -> Found:
        """find(), or what it gave before for this `kind` and this very object, which is kept too,
        so that its id stays its own."""
        key = (kind, id(of))
        entry = self._entries.pop(key, None)
        if entry is None:
            entry = (of, find())
        if not any(isinstance(x, ByteDFA) and x.trans.size > _LARGEST for x in entry):
            self._entries[key] = entry
            if len(self._entries) > _MOST:
                self._entries.pop(next(iter(self._entries)), None)
        found: Found = entry[1]
        return found
