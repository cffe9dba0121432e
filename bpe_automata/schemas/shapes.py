"""The form between a schema and its automaton: sets of JSON values.

    Values = null? + booleans + numbers + strings + arrays + objects

Each kind is on its own, so that "not a string" or "a string or null" never touches the others.
Strings are texts before any escaping; numbers are texts of decimals; what a style (JSON, YAML)
makes of them is decided when they are written. Arrays and objects are unions of terms, and a term
is one shape less others: with that the sets are closed under union, intersection and complement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.schemas.numbers import NumberSet
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
