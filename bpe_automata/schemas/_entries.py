"""The members that objects of a shape may have, by their names as they are spelled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.parts import length_of
from bpe_automata._sharing import cached
from bpe_automata.schemas._scalar_sets import ALL_STRINGS, finite, lower_bound, subtract
from bpe_automata.schemas._style import Piece, Style
from bpe_automata.schemas._values import ObjectShape, Values

UNBOUNDED = 1 << 60
"""A number of names that no object has."""


@dataclass(frozen=True, eq=False)
class Entry:
    """Members with one name, or with one of a set of names."""

    find: Callable[[], Piece]
    values: Values

    @cached
    def key(self) -> Piece:
        """The spellings of the names, with all text between one and the value."""
        return self.find()

    @cached
    def length(self) -> int:
        """Of the shortest of these."""
        return length_of(self.key)


class Entries:
    """All entries of a shape in a style, of names that come once at most (`named`, in the order of
    the schema, `n` of them: the number of an entry is its place) and of those that may come again
    and again (`others`). all: both. unique: no name comes twice."""

    def __init__(self, shape: ObjectShape, style: Style, unique: bool) -> None:
        self._shape, self._style = shape, style
        self._bits = {name: 1 << i for i, name in enumerate(shape.named)}
        self.named = [
            Entry(partial(style.key, name), member.child.values)
            for name, member in shape.named.items()
        ]
        others = list(self._others())
        self.others = [] if unique else others
        self.named += others if unique else []
        self.n = len(self.named)
        self.all = [*self.named, *self.others]

    @cached
    def required(self) -> int:
        """Bits of the members that are required."""
        return sum(map(self._bits.__getitem__, self._shape.required))

    @cached
    def fewest(self) -> int:
        """Distinct names that an object has at least, 0 where the required ones are as many."""
        fewest = self._shape.fewest
        return 0 if fewest <= len(self._shape.required) else fewest

    @cached
    def most(self) -> int:
        """Names that an object has at most, `UNBOUNDED` where it can have no more."""
        most = self._shape.most
        bounded = most is not None and (most < self.n or self.others)
        return most if bounded and most is not None else UNBOUNDED

    def _others(self) -> Iterator[Entry]:
        """The names beyond, by set."""
        if self._shape.most == 0:
            return
        for names, child in self._shape.rest:
            find = partial(self._keys_but, lower_bound(names))
            if names is ALL_STRINGS or not find().is_empty:
                yield Entry(find, child.values)

    def _keys_but(self, names: ByteDFA) -> ByteDFA:
        """The spellings of all names but those that have places."""
        others = subtract(names, finite(frozenset(self._bits)))
        return others if others.is_empty else self._style.keys(others)
