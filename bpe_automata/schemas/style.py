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
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

from bpe_automata.automata.assembly import Assembly, Network
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.schemas.boolean import member
from bpe_automata.schemas.numbers import NumberSet
from bpe_automata.schemas.values import ArrayShape, Child, ObjectShape, Values
from bpe_automata.sharing import cached

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


# The texts of one set of values at one place, still in parts.

_Shape = ObjectShape | ArrayShape


class OrderTree:
    """The names at one place in order, and the trees of the places inside. Found when asked for:
    the shapes may go on for ever."""

    def __init__(self, shapes: Iterable[_Shape]) -> None:
        self._shapes = tuple({id(shape): shape for shape in shapes}.values())
        self._members: dict[str, OrderTree | None] = {}

    @cached
    def names(self) -> tuple[str, ...]:
        """All names that some shape knows."""
        return tuple(dict.fromkeys(name for shape in self._objects for name in shape.named))

    def member(self, name: str) -> OrderTree | None:
        """The tree of the property with this name, which is one of `names`. None: no order is
        needed there, since nobody names a property."""
        if name not in self._members:
            self._members[name] = _below(member(shape, name).child for shape in self._objects)
        return self._members[name]

    @cached
    def rest(self) -> OrderTree | None:
        """The tree of all other properties; see `member`."""
        return _below(child for shape in self._objects for _, child in shape.rest)

    @cached
    def item(self) -> OrderTree | None:
        """The tree of all items; see `member`."""
        arrays = [shape for shape in self._shapes if isinstance(shape, ArrayShape)]
        return _below(child for shape in arrays for child in _items(shape))

    @cached
    def _objects(self) -> list[ObjectShape]:
        return [shape for shape in self._shapes if isinstance(shape, ObjectShape)]


def _below(children: Iterable[Child]) -> OrderTree | None:
    """The tree of the places where these stand."""
    found = list({id(child.values): child.values for child in children}.values())
    if _nameless(found):
        return None
    return OrderTree(shape for values in found for shape in _shapes(values))


def _nameless(pending: list[Values]) -> bool:
    """Does no shape in these sets, at any depth, name a property?"""
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
    """What its items may be; never asked of places that no item reaches."""
    known = list(shape.prefix if shape.most is None else shape.prefix[: shape.most])
    long = shape.most is None or shape.most > len(shape.prefix)
    return [*known, shape.rest] if long else known


Compound = ByteDFA | Network  # of arrays or objects; a network where a DFA would be very large


@dataclass(frozen=True, eq=False)
class Texts:
    """before s after, for each spelling s of a scalar, and the texts of arrays and objects."""

    before: Piece
    scalars: tuple[Piece, ...]
    after: Piece
    compounds: tuple[Compound, ...]

    @property
    def is_empty(self) -> bool:
        """Is there no text?"""
        return not self.scalars and not self.compounds

    def put(self, parts: Assembly, one: int, other: int) -> None:
        """Any of the texts leads from place `one` to place `other` of `parts`."""
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


# The texts of what may stand inside an array or object, in the order of names that is given.
Inside = Callable[[Child, OrderTree | None], Texts]
