"""Defines the interface of a style, that is of a way to write values as text (JSON, YAML).

    text(scalar)  =  before  spelling  after
    text([])      =  empty                          text({})  =  empty
    text([x, y])  =  first  text(x)  between  text(y)  last
    text({k: x, l: y})  =  first  key(k)  text(x)  between  key(l)  text(y)  last

A `Context` is everything outside of a value that its spelling depends on: its level for JSON with
line breaks, and for YAML also whether it follows a key or a dash. Values are written once for each
context, so a style should distinguish as few as possible.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeAlias

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.schemas._scalar_sets import ALL_STRINGS

_MAX_ENTRIES = 512
_LARGEST = 20_000  # entries of the table of an automaton that is shared; larger ones seldom recur
Shared = OrderedDict[Hashable, tuple[ByteDFA, ByteDFA]]
"""Maps (purpose, id of an automaton) to that automaton and the result, for styles that write
alike."""
Context: TypeAlias = Any  # hashable, of its own type for each style
Piece: TypeAlias = bytes | ByteDFA  # a text, or a language


@dataclass(frozen=True, eq=False)
class Layout:
    """The text before, between and after the properties of an object or the items of an array.

    empty: the whole text of an empty one. inside: the context of each value in it. unique: whether
    no name may come twice, whatever else is asked for.
    """

    first: Piece
    between: Piece
    last: Piece
    empty: Piece
    inside: Context
    unique: bool = False


class Style(ABC):
    """A way of writing. A method that returns an automaton should return the same object for the
    same argument, since results built from it are found by identity.

    quotes: whether all strings are in double quotes, with nothing around them. root: the context of
    the whole text.
    """

    quotes: bool
    root: Context

    def __init__(self, shared: Shared) -> None:
        self._shared, self._memo = shared, Shared()

    def around(self, context: Context) -> tuple[Piece, Piece]:
        """The text before and after the spelling of a scalar."""
        return b"", b""

    @abstractmethod
    def objects(self, context: Context) -> Layout:
        """The layout of an object."""

    @abstractmethod
    def arrays(self, context: Context) -> Layout:
        """The layout of an array."""

    def null(self) -> Piece:
        """The spelling of null."""
        return b"null"

    def boolean(self, value: bool) -> Piece:
        """The spelling of a boolean."""
        return b"true" if value else b"false"

    @abstractmethod
    def numbers(self, numbers: ByteDFA) -> ByteDFA:
        """The spellings in which the style writes some numbers."""

    @abstractmethod
    def strings(self, strings: ByteDFA, context: Context) -> ByteDFA:
        """The spellings of some strings as values."""

    @abstractmethod
    def string(self, text: str) -> Piece:
        """The spelling of one string as a value."""

    @abstractmethod
    def key(self, name: str, layout: Layout) -> Piece:
        """The spelling of a property's name, with all text between it and the value. layout: of the
        object."""

    @abstractmethod
    def keys(self, names: ByteDFA, layout: Layout) -> ByteDFA:
        """The spellings of a set of names, like those of `key`."""

    def _once(self, purpose: Hashable, of: ByteDFA, find: Callable[[], ByteDFA]) -> ByteDFA:
        """find(), computed once for a purpose and an automaton, which is kept alive, so that its id
        stays unique. Results that are small, or of all strings, are shared with other styles; the
        least recently used of these are evicted."""
        key = purpose, id(of)
        if key not in self._memo:
            both = self._shared.pop(key) if key in self._shared else (of, find())
            self._memo[key] = both
            if of is ALL_STRINGS or all(one.trans.size <= _LARGEST for one in reversed(both)):
                self._shared[key] = both
                if len(self._shared) > _MAX_ENTRIES:
                    self._shared.popitem(last=False)
        return self._memo[key][1]
