"""Represents sets of JSON values, the form between a schema and its automaton.

    Values = null? + booleans + numbers + strings + arrays + objects

Each type has its own part, so that "not a string" or "a string or null" leaves the other parts
alone. Strings are not escaped, and numbers are decimal spellings; a style (JSON, YAML) decides how
they are written. Arrays and objects are unions of shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from bpe_automata._sharing import cached
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.schemas._numbers import ALL_NUMBERS
from bpe_automata.schemas._scalar_sets import ALL_STRINGS, NO_TEXT, Finite, contains_name


class Unfinished(Exception):  # noqa: N818 - a signal between modules, never seen by a caller
    """A child is needed while the schema that it refers back to is still being read."""


class Child:
    """The set of values of an item or a property, computed when it is first needed: a recursive
    schema is unfolded only as far as its values can appear."""

    def __init__(self, find: Callable[[], Values]) -> None:
        self._find = find

    @classmethod
    def of(cls, values: Values) -> Child:
        """A child whose values are already computed."""
        child = cls(lambda: values)
        child.__dict__["values"] = values
        return child

    @cached
    def values(self) -> Values:
        """The set of values."""
        return self._find()

    @property
    def computed(self) -> Values | None:
        """The values if they have been computed, else None."""
        return self.__dict__.get("values")


@dataclass(frozen=True, eq=False)
class Property:
    """The values of a property with a given name. If there are no values and the property is not
    required, it must be absent."""

    child: Child
    required: bool = False


@dataclass(frozen=True, eq=False)
class ObjectShape:
    """Objects with `fewest` to `most` properties (None: no bound), each with an allowed value.

    named: the properties of single names, in the order in which they are written. rest: (names,
    child) for all other names; the sets of names are disjoint and not escaped, names of `named` in
    them are ignored, and a name in none of them must be absent. For messages: pointer, to the
    schema, and counting, the keyword that set `fewest`.
    """

    named: Mapping[str, Property] = field(default_factory=dict)
    rest: tuple[tuple[ByteDFA, Child], ...] = ()
    fewest: int = 0
    most: int | None = None
    pointer: str = "#"
    counting: str = "minProperties"

    @cached
    def required(self) -> frozenset[str]:
        """The names that are required."""
        return frozenset(name for name, member in self.named.items() if member.required)

    @cached
    def constants(self) -> dict[str, frozenset[str | bool | None]]:
        """The values of each required member that allows only listed strings, true, false or null.
        (Numbers do not count: each has many spellings, of which no list is kept.)"""
        found = dict[str, frozenset[str | bool | None]]()
        for name in self.required:
            with suppress(Unfinished):  # the schema refers back to what is being read
                given = self.named[name].child.values
                strings = given.strings
                is_other = given.arrays or given.objects or not given.numbers.is_empty
                if not is_other and (strings is NO_TEXT or isinstance(strings, Finite)):
                    some = strings.elements if isinstance(strings, Finite) else ()
                    found[name] = frozenset((*some, *given.booleans, *[None] * given.null))
        return found

    def property(self, name: str) -> Property:
        """The property with a name, whether it is in `named` or not."""
        if name in self.named:
            return self.named[name]
        for names, child in self.rest:
            if contains_name(names, name, self.pointer):
                return Property(child)
        return ABSENT

    def differs(self, other: ObjectShape) -> bool:
        """Does a constant prove both shapes disjoint, as it does in most unions of a schema?"""
        theirs = other.constants
        for name, some in self.constants.items():
            if name in theirs and some.isdisjoint(theirs[name]):
                return True
        return False


@dataclass(frozen=True, eq=False)
class Counted:
    """A condition on arrays: `fewest` to `most` items (None: no bound) have values of `wanted`."""

    wanted: Child
    fewest: int
    most: int | None


@dataclass(frozen=True, eq=False)
class ArrayShape:
    """Arrays with `fewest` to `most` items (None: no bound); item i is in prefix[i], or in `rest`
    if there is no such child. unique: no two items are equal. counted: conditions on how many items
    are in some sets.
    """

    prefix: tuple[Child, ...]
    rest: Child
    fewest: int = 0
    most: int | None = None
    unique: bool = False
    pointer: str = "#"
    counted: tuple[Counted, ...] = ()

    def differs(self, other: ArrayShape) -> bool:
        """See `ObjectShape.differs`; it is never decided for arrays."""
        return False

    def item(self, at: int) -> Child:
        """The child of item `at`."""
        return self.prefix[at] if at < len(self.prefix) else self.rest


Shape = TypeVar("Shape", ObjectShape, ArrayShape)


@dataclass(frozen=True, eq=False)
class Values:
    """A set of JSON values. Sets are compared by identity, as memos need: each schema gives one.

    strings: not escaped, as a byte DFA over UTF-8. numbers: see `_numbers`.
    """

    null: bool = False
    booleans: frozenset[bool] = frozenset()
    numbers: ByteDFA = NO_TEXT
    strings: ByteDFA = NO_TEXT
    arrays: tuple[ArrayShape, ...] = ()
    objects: tuple[ObjectShape, ...] = ()
    memo: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)


# The smallest and the largest sets: no value, every value, all values of one type.

BOOLEANS = frozenset((False, True))

NONE = Values()
NOTHING = Child.of(NONE)
ABSENT = Property(NOTHING)

ANYTHING = Child(lambda: ALL)  # ALL contains itself
ANY_ARRAY = ArrayShape((), ANYTHING)
ANY_OBJECT = ObjectShape(rest=((ALL_STRINGS, ANYTHING),))
ALL: Values = Values(True, BOOLEANS, ALL_NUMBERS, ALL_STRINGS, (ANY_ARRAY,), (ANY_OBJECT,))
ANYTHING.__dict__["values"] = ALL


def having(names: Iterable[str], pointer: str = "#") -> Values:
    """All objects with members of these names."""
    named = {name: Property(ANYTHING, required=True) for name in names}
    return Values(objects=(ObjectShape(named, ANY_OBJECT.rest, pointer=pointer),))


# Whether a set of JSON values is empty. True is a proof; False may also mean "not decided": a set
# that is empty because of required members more than FUEL levels inside, or one whose schema is
# still being read.

FUEL = 5
# A child may be a difference, and computing it asks which sets one level further inside are empty.
# Such nested questions share the fuel; otherwise they would never end in a recursive schema.
_nested: ContextVar[int] = ContextVar("nested", default=0)


def is_empty(values: Values, fuel: int = FUEL) -> bool:
    """Whether the set is proved to have no value."""
    if _has_scalars(values):
        return False
    is_proved, tried = values.memo.get("empty", (False, -1))
    if is_proved or tried >= fuel:
        return bool(is_proved)
    found = _is_empty(values, fuel)
    values.memo["empty"] = (found, fuel)
    return found


def _has_scalars(values: Values) -> bool:
    if values.null or values.booleans:
        return True
    return not (values.strings.is_empty and values.numbers.is_empty)


def _is_empty(values: Values, fuel: int) -> bool:
    return all(shape_is_empty(shape, fuel) for shape in values.objects) and all(
        shape_is_empty(shape, fuel) for shape in values.arrays
    )


def shape_is_empty(shape: ObjectShape | ArrayShape, fuel: int = FUEL) -> bool:
    """Whether the shape is proved to have no value."""
    if shape.most is not None and shape.fewest > shape.most:
        return True
    if isinstance(shape, ArrayShape):
        if any(_never(counted, shape.most) for counted in shape.counted):
            return True
        return any(child_is_empty(child, fuel) for child in _needed_items(shape))
    return _has_no_room(shape) or any(
        child_is_empty(member.child, fuel) for member in shape.named.values() if member.required
    )


def child_is_empty(child: Child, fuel: int = FUEL) -> bool:
    """Whether the child is proved to have no value."""
    if child.computed is not None and _has_scalars(child.computed):
        return False
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
    """The children of the required items, each once."""
    needed = list(shape.prefix[: shape.fewest])
    return [*needed, shape.rest] if shape.fewest > len(shape.prefix) else needed


def _never(counted: Counted, most: int | None) -> bool:
    """Whether no array with at most `most` items fits a count."""
    bounds = [bound for bound in (counted.most, most) if bound is not None]
    return counted.fewest > min(bounds, default=counted.fewest)


def _has_no_room(shape: ObjectShape) -> bool:
    """Whether the shape requires more properties than it has names for, or than it allows."""
    if shape.most is not None and len(shape.required) > shape.most:
        return True
    return not shape.rest and shape.fewest > len(shape.named)
