"""What a way of writing values (JSON, YAML) must say, so that arrays and objects need know of none.

    text(scalar)  =  before  spelling  after
    text([])      =  empty                          text({})  =  empty
    text([x, y])  =  first  text(x)  between  text(y)  last
    text({k: x, l: y})  =  first  key(k)  text(x)  between  key(l)  text(y)  last

A `Place` is all that the spelling of a value depends on besides the value: for JSON with line
breaks how deep it stands, for YAML also whether it follows a key, a dash, or nothing. Values at
equal places are written once, so a place should tell apart no more than it has to.

For each value, its texts must not depend on the set it is in, numbers aside: the texts of a
difference are found as a difference of texts.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.schemas.numbers import NumberSet

# What is remembered from one schema to the next: pieces that many schemas have in common.

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


Place: TypeAlias = Hashable
Piece: TypeAlias = bytes | ByteDFA  # one text, or any of a set of texts


@dataclass(frozen=True, eq=False)
class Brackets:
    """What stands around and between the members of an object, or the items of an array.

    empty: the whole text where there is none. inside: the place of each value in it.
    """

    first: Piece
    between: Piece
    last: Piece
    empty: Piece
    inside: Place


class Style(Protocol):
    """A way of writing. Every answer that is no bytes should be remembered and given again as the
    same object: what is built from it is found by identity."""

    @property
    def shared(self) -> Kept:
        """What is remembered for all styles that write alike."""

    @property
    def root(self) -> Place:
        """The place of the whole text."""

    def around(self, place: Place) -> tuple[Piece, Piece]:
        """What stands before and after the spelling of a scalar there."""

    def objects(self, place: Place) -> Brackets:
        """The layout of an object there."""

    def arrays(self, place: Place) -> Brackets:
        """The layout of an array there."""

    def null(self) -> Piece:
        """The spelling of null."""

    def boolean(self, value: bool) -> Piece:
        """The spelling of a boolean."""

    def numbers(self, numbers: NumberSet, generous: bool) -> ByteDFA:
        """The spellings of some numbers. generous: all that the style can spell and that may be
        one of them, which is what is taken away in a difference; else only what is one for sure.
        """

    def strings(self, texts: ByteDFA, place: Place) -> ByteDFA:
        """The spellings of some texts as values there."""

    def key(self, name: str) -> Piece:
        """The spelling of a property's name, with all that stands between it and any value."""

    def keys(self, names: ByteDFA) -> ByteDFA:
        """The same of a set of names."""
