"""Defines the interface of a style, that is of a way to write values as text (JSON, YAML).

    text(scalar)  =  before  spelling  after
    text([])      =  empty                          text({})  =  empty
    text([x, y])  =  first  text(x)  between  text(y)  last
    text({k: x, l: y})  =  first  key(k)  text(x)  between  key(l)  text(y)  last

A `Context` is everything outside of a value that its spelling depends on: its level for JSON with
line breaks, and for YAML also whether it follows a key or a dash. Values are written once for each
context, so a style should distinguish as few as possible.

The texts of a value (numbers excepted) must not depend on the set that contains it, because the
texts of a difference of sets are computed as a difference of languages.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

from bpe_automata._automata.assembly import Assembly, Network
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._sharing import cached
from bpe_automata.schemas._boolean import property_of
from bpe_automata.schemas._numbers import NumberSet
from bpe_automata.schemas._values import ArrayShape, Child, ObjectShape, Values

_MAX_ENTRIES = 1024
_LARGEST = 20_000  # entries of the table of an automaton that is kept; larger ones seldom recur
Found = TypeVar("Found")


class IdentityMemo:
    """A cache with objects as keys, by identity, from which the least recently used entry is
    dropped. It keeps the pieces that many schemas have in common."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Hashable, tuple[object, Any]] = OrderedDict()

    def once(self, purpose: Hashable, of: object, find: Callable[[], Found]) -> Found:
        """find(), computed once for a purpose and an object. The object is kept, so that its id
        stays unique."""
        key = (purpose, id(of))
        entry = self._entries.pop(key, None)
        if entry is None:
            entry = (of, find())
        if not any(isinstance(x, ByteDFA) and x.trans.size > _LARGEST for x in entry):
            self._entries[key] = entry
            if len(self._entries) > _MAX_ENTRIES:
                self._entries.pop(next(iter(self._entries)), None)
        found: Found = entry[1]
        return found


Context: TypeAlias = Hashable
Piece: TypeAlias = bytes | ByteDFA  # a text, or a language


@dataclass(frozen=True, eq=False)
class Brackets:
    """The text before, between and after the properties of an object or the items of an array.

    empty: the whole text of an empty one. inside: the context of each value in it.
    """

    first: Piece
    between: Piece
    last: Piece
    empty: Piece
    inside: Context


class Style(Protocol):
    """A way of writing. A method that returns an automaton should return the same object for the
    same argument, since results built from it are found by identity."""

    @property
    def shared(self) -> IdentityMemo:
        """The cache of all styles that write in the same way."""

    @property
    def root(self) -> Context:
        """The context of the whole text."""

    def around(self, context: Context) -> tuple[Piece, Piece]:
        """The text before and after the spelling of a scalar."""

    def objects(self, context: Context) -> Brackets:
        """The layout of an object."""

    def arrays(self, context: Context) -> Brackets:
        """The layout of an array."""

    def null(self) -> Piece:
        """The spelling of null."""

    def boolean(self, value: bool) -> Piece:
        """The spelling of a boolean."""

    def numbers(self, numbers: NumberSet, upper: bool) -> ByteDFA:
        """The spellings of some numbers. upper: all that may be one of them, as the subtrahend of a
        difference needs; otherwise only those that certainly are."""

    def strings(self, strings: ByteDFA, context: Context) -> ByteDFA:
        """The spellings of some strings as values."""

    def key(self, name: str) -> Piece:
        """The spelling of a property's name, with all text between it and the value."""

    def keys(self, names: ByteDFA) -> ByteDFA:
        """The spellings of a set of names, like those of `key`."""


# One order of names for several shapes, and for everything inside them.
#
# A difference of languages is the language of the difference only if a value has the same texts in
# both. So in a term with a `minus`, all shapes are written with their names in one order: those of
# the term's own shape first, then others as they come up.

_Shape = ObjectShape | ArrayShape


class NameOrder:
    """The order of names in some shapes, a tree with a branch for each property. It is computed
    where it is needed, since the shapes may be infinitely deep."""

    def __init__(self, shapes: Iterable[_Shape]) -> None:
        self._shapes = tuple({id(shape): shape for shape in shapes}.values())
        self._members: dict[str, NameOrder | None] = {}

    @cached
    def names(self) -> tuple[str, ...]:
        """The names of all shapes."""
        return tuple(dict.fromkeys(name for shape in self._objects for name in shape.named))

    def member(self, name: str) -> NameOrder | None:
        """The order in the values of a property, one of `names`; None if no shape in them names a
        property."""
        if name not in self._members:
            self._members[name] = _below(property_of(shape, name).child for shape in self._objects)
        return self._members[name]

    @cached
    def rest(self) -> NameOrder | None:
        """The order in the values of all other properties; see `member`."""
        return _below(child for shape in self._objects for _, child in shape.rest)

    @cached
    def item(self) -> NameOrder | None:
        """The order in all items; see `member`."""
        arrays = [shape for shape in self._shapes if isinstance(shape, ArrayShape)]
        return _below(child for shape in arrays for child in _items(shape))

    @cached
    def _objects(self) -> list[ObjectShape]:
        return [shape for shape in self._shapes if isinstance(shape, ObjectShape)]


def _below(children: Iterable[Child]) -> NameOrder | None:
    """The order of names in the values of some children."""
    found = list({id(child.values): child.values for child in children}.values())
    if _nameless(found):
        return None
    return NameOrder(shape for values in found for shape in _shapes(values))


def _nameless(pending: list[Values]) -> bool:
    """Whether no shape in these sets, at any depth, names a property."""
    pending = list(pending)
    seen = {id(values) for values in pending}
    while pending:
        for shape in _shapes(pending.pop()):
            if isinstance(shape, ObjectShape) and shape.named:
                return False
            for child in _children(shape):
                if id(child.values) not in seen:
                    seen.add(id(child.values))
                    pending.append(child.values)
    return True


def _shapes(values: Values) -> list[_Shape]:
    found: list[_Shape] = [shape for term in values.objects for shape in (term.shape, *term.minus)]
    return found + [shape for term in values.arrays for shape in (term.shape, *term.minus)]


def _children(shape: _Shape) -> list[Child]:
    if isinstance(shape, ArrayShape):
        return _items(shape)
    return [child for _, child in shape.rest]


def _items(shape: ArrayShape) -> list[Child]:
    """The children of the items that arrays of the shape may have, and that are counted."""
    known = list(shape.prefix if shape.most is None else shape.prefix[: shape.most])
    long = shape.most is None or shape.most > len(shape.prefix)
    known += [counted.wanted for counted in shape.counted]
    return [*known, shape.rest] if long else known


Compound = ByteDFA | Network  # of arrays or objects; a network if a DFA would be very large


@dataclass(frozen=True, eq=False)
class Spellings:
    """The texts of a set of values: `before` s `after` for each spelling s of a scalar, and the
    languages of its arrays and objects."""

    before: Piece
    scalars: tuple[Piece, ...]
    after: Piece
    compounds: tuple[Compound, ...]

    @property
    def is_empty(self) -> bool:
        """Whether there is no text."""
        return not self.scalars and not self.compounds

    def put(self, parts: Assembly, one: int, other: int) -> None:
        """Let each text lead from state `one` to state `other` of `parts`."""
        for compound in self.compounds:
            parts.put(one, compound, other)
        if not self.scalars:
            return
        if self.before != b"":
            one, begin = parts.state(), one
            parts.put(begin, self.before, one)
        if self.after != b"":
            other, end = parts.state(), other
            parts.put(other, self.after, end)
        for piece in self.scalars:
            parts.put(one, piece, other)


# Maps an item or a property, and the order of names in it, to its texts.
SpellChild = Callable[[Child, NameOrder | None], Spellings]
