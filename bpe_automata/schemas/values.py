"""The form between a schema and its automaton: sets of JSON values.

    Values = null? + booleans + numbers + strings + arrays + objects

Each kind is on its own, so that "not a string" or "a string or null" never touches the others.
Strings are texts before any escaping; numbers are texts of decimals; what a style (JSON, YAML)
makes of them is decided when they are written. Arrays and objects are unions of terms, and a term
is one shape less others: with that the sets are closed under union, intersection and complement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Generic, TypeVar

from bpe_automata.automata.algebra import all_texts
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.sources import from_strings
from bpe_automata.budget import check
from bpe_automata.schemas.numbers import NumberSet, no_numbers, numbers
from bpe_automata.sharing import cached


class Unfinished(Exception):  # noqa: N818 - a signal between modules, never seen by a caller
    """A child was asked for while the schema that it comes back to is still being read."""


class Child:
    """The values that one place inside an array or object may hold, found when first asked for:
    what a recursive schema unfolds to is not needed where it cannot appear."""

    def __init__(self, find: Callable[[], Values]) -> None:
        self._find = find

    @classmethod
    def of(cls, values: Values) -> Child:
        """A child that is known already."""
        child = cls(lambda: values)
        child.__dict__["values"] = values
        return child

    @cached
    def values(self) -> Values:
        """What may stand there."""
        return self._find()

    @property
    def known(self) -> Values | None:
        """The values if they have been found, else None."""
        return self.__dict__.get("values")


@dataclass(frozen=True, eq=False)
class Property:
    """A property by name. Not required, and of no value: it must be absent."""

    child: Child
    required: bool = False


@dataclass(frozen=True, eq=False)
class ObjectShape:
    """Objects, all of whose members fit, and that have `fewest` to `most` (None: any) of them.

    named: in the order in which they are written. rest: (names, child), for names that are not in
    `named`: decoded texts, disjoint sets; a name in none of them must be absent. pointer: where in
    the schema, and counting: the keyword that `fewest` comes from, both for messages.
    """

    named: Mapping[str, Property] = field(default_factory=dict)
    rest: tuple[tuple[ByteDFA, Child], ...] = ()
    fewest: int = 0
    most: int | None = None
    pointer: str = "#"
    counting: str = "minProperties"


@dataclass(frozen=True, eq=False)
class ArrayShape:
    """Arrays with `fewest` to `most` (None: any) items; item i fits prefix[i], or else `rest`.
    unique: no two items are the same value; only for items out of a small finite set."""

    prefix: tuple[Child, ...]
    rest: Child
    fewest: int = 0
    most: int | None = None
    unique: bool = False
    pointer: str = "#"

    def item(self, at: int) -> Child:
        """What item `at` fits."""
        return self.prefix[at] if at < len(self.prefix) else self.rest


Shape = TypeVar("Shape", ObjectShape, ArrayShape)


@dataclass(frozen=True, eq=False)
class Term(Generic[Shape]):
    """{ v : v fits `shape` and none of `minus` }"""

    shape: Shape
    minus: tuple[Shape, ...] = ()


@dataclass(frozen=True, eq=False)
class Values:
    """A set of JSON values.

    strings: the texts themselves, not escaped, as a byte DFA over UTF-8. Compare by `is`: a place
    of the schema gives one object, which is what memos go by.
    loops: the loops of the schema that it lies on, by number; entry: whether a step to it is a new
    round of one. Both are only for `limited`, which cuts loops off.
    """

    null: bool
    booleans: frozenset[bool]
    numbers: NumberSet
    strings: ByteDFA
    arrays: tuple[Term[ArrayShape], ...]
    objects: tuple[Term[ObjectShape], ...]
    loops: frozenset[int] = frozenset()
    entry: bool = False
    memo: dict[Any, Any] = field(default_factory=dict, repr=False)


# The sets that everything is made from: no value, every value, all values of one kind.

ALL_TEXTS = all_texts()
NO_TEXT = from_strings(())
ALL_NUMBERS = numbers()
NO_NUMBER = no_numbers()
BOTH = frozenset((False, True))
_ANY_LOOP = -1  # arrays and objects of anything are a loop, as a $ref to itself is

NONE = Values(False, frozenset(), NO_NUMBER, NO_TEXT, (), ())
NOTHING = Child.of(NONE)

ANYTHING = Child(lambda: ALL)  # ALL holds itself
ANY_ARRAY = ArrayShape((), ANYTHING)
ANY_OBJECT = ObjectShape(rest=((ALL_TEXTS, ANYTHING),))
ALL: Values = Values(
    True,
    BOTH,
    ALL_NUMBERS,
    ALL_TEXTS,
    (Term(ANY_ARRAY),),
    (Term(ANY_OBJECT),),
    frozenset((_ANY_LOOP,)),
    True,
)
ANYTHING.__dict__["values"] = ALL


# Whether a set of JSON values is empty, told for sure or not at all.
#
# A True is a proof; a False may be an empty set that takes a longer look: one below FUEL levels of
# required members, one whose schema is still being read, or a term that its `minus` empties.

FUEL = 5
# A child's values may be a difference, which is made by asking what is empty one level further in:
# such questions inside of questions use up the same fuel, or a recursive schema would never end.
_nested: ContextVar[int] = ContextVar("nested", default=0)


def is_empty(values: Values, fuel: int = FUEL) -> bool:
    """Is it sure that no value is in the set?"""
    if values.null or values.booleans:
        return False
    known = values.memo.get("empty", (False, -1))
    if known[0] or known[1] >= fuel:
        return bool(known[0])
    try:
        found = _is_empty(values, fuel)
    except Unfinished:
        return False
    values.memo["empty"] = (found, fuel)
    return found


def _is_empty(values: Values, fuel: int) -> bool:
    return (
        not any(True for term in values.objects if not shape_is_empty(term.shape, fuel))
        and not any(True for term in values.arrays if not shape_is_empty(term.shape, fuel))
        and values.numbers.is_empty
        and values.strings.is_empty
    )


def shape_is_empty(shape: ObjectShape | ArrayShape, fuel: int = FUEL) -> bool:
    """Is it sure that nothing has the shape?"""
    if shape.most is not None and shape.fewest > shape.most:
        return True
    if isinstance(shape, ArrayShape):
        return any(child_is_empty(child, fuel) for child in _needed_items(shape))
    return _too_few(shape) or any(
        child_is_empty(member.child, fuel) for member in shape.named.values() if member.required
    )


def child_is_empty(child: Child, fuel: int = FUEL) -> bool:
    """Is it sure that nothing can stand there?"""
    nested = _nested.get()
    fuel = min(fuel, FUEL - nested)
    if fuel <= 0:
        return False
    token = _nested.set(nested + 1)
    try:
        return is_empty(child.values, fuel - 1)
    except Unfinished:
        return False
    finally:
        _nested.reset(token)


def _needed_items(shape: ArrayShape) -> list[Child]:
    """One child for each item that must be there, or one for all that are alike."""
    needed = list(shape.prefix[: shape.fewest])
    return [*needed, shape.rest] if shape.fewest > len(shape.prefix) else needed


def _too_few(shape: ObjectShape) -> bool:
    """Are there fewer names than members that must be there, or more that must than may be?"""
    required = sum(member.required for member in shape.named.values())
    if shape.most is not None and required > shape.most:
        return True
    return not shape.rest and shape.fewest > len(shape.named)


# Sets of JSON values: their form, the constants, and what is done with them.
#
# The form is in `shapes`, the constants in `constants`, the operations in `boolean`, `emptiness` and
# `depth`; this module is the list of names that the rest of the package uses.


def limited(values: Values, depth: int) -> Values:
    """The values of the set in which no loop is gone through more than `depth` times; lazy. What a
    term is less of stays as it is: it takes away no more than it should."""
    return _Limit(depth).values(values, depth)


@lru_cache(maxsize=64)
def any_value(depth: int) -> Values:
    """Every value whose arrays and objects are nested at most `depth` times inside the first."""
    return limited(ALL, depth)


class _Limit:
    """The sets that are made for one depth, each once."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._made: dict[tuple[int, int], tuple[Values, Values]] = {}

    def values(self, values: Values, left: int) -> Values:
        key = (id(values), left)
        if key not in self._made:
            arrays = tuple(Term(self._array(t.shape, values, left), t.minus) for t in values.arrays)
            objects = tuple(
                Term(self._object(t.shape, values, left), t.minus) for t in values.objects
            )
            found = replace(values, arrays=arrays, objects=objects, memo={})
            self._made[key] = (found, values)  # the second, so that its id stays its
        return self._made[key][0]

    def _array(self, shape: ArrayShape, above: Values, left: int) -> ArrayShape:
        check()
        prefix = tuple(self._child(child, above, left) for child in shape.prefix)
        return replace(shape, prefix=prefix, rest=self._child(shape.rest, above, left))

    def _object(self, shape: ObjectShape, above: Values, left: int) -> ObjectShape:
        check()
        named = {
            name: Property(self._child(member.child, above, left), member.required)
            for name, member in shape.named.items()
        }
        rest = tuple((names, self._child(child, above, left)) for names, child in shape.rest)
        return replace(shape, named=named, rest=rest)

    def _child(self, child: Child, above: Values, left: int) -> Child:
        return Child(lambda: self._below(child.values, above, left))

    def _below(self, values: Values, above: Values, left: int) -> Values:
        if not values.loops & above.loops:
            return self.values(values, self._depth)
        if not values.entry:
            return self.values(values, left)
        return self.values(values, left - 1) if left else NONE
