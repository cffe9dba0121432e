"""JSON Schema to sets of values.

    Reader(document, read_part).values("#") = { v : v is valid under the schema }

exact and lazy: schemas inside properties and items are read when they are asked for, so a schema
may come back to itself there. One that comes back to itself in place says nothing, and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

from bpe_automata.budget import check
from bpe_automata.errors import InvalidSchemaError, SchemaTooLargeError
from bpe_automata.schemas.checks import check_keywords
from bpe_automata.schemas.documents import Document, Part
from bpe_automata.schemas.drafts import below
from bpe_automata.schemas.limits import as_too_large, check_levels, step
from bpe_automata.schemas.loops import Loops, find_loops
from bpe_automata.schemas.values import ALL, NONE, Child, Unfinished, Values

# What schemas say, as numbers: two have the same number iff they are equal JSON, notes aside.
#
# Copies of one schema are then read and written once. The order of members is part of what is said,
# for it is the order in which properties are written.

_NOTES = frozenset(("title", "description", "$comment", "markdownDescription"))
# What a value is: a schema (or a list of them), an object whose names are not keywords and whose
# values are schemas, or a value that is compared with.
Kind = Literal["schema", "map", "listed"]
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("enum", "const"), "listed"),
    **dict.fromkeys(("properties", "patternProperties", "$defs", "definitions"), "map"),
    **dict.fromkeys(("dependencies", "dependentRequired", "dependentSchemas"), "map"),
}


_Member = tuple[str | int, Any, Kind]


class Contents:
    """The numbers given so far. A value must live as long as this does: it is known by its id."""

    def __init__(self) -> None:
        self._of: dict[tuple[int, Kind], int] = {}
        self._numbers: dict[tuple[object, ...], int] = {}

    def of(self, value: Any, kind: Kind = "schema") -> int:
        """The number of a schema, or of a part of one. Only in a schema itself is "title" a note;
        elsewhere it is a name."""
        waiting = [(value, kind)]
        while waiting:  # from the inside out, without recursion: schemas may be nested deeply
            check()
            here, its = waiting[-1]
            later = [(v, k) for _, v, k in _members(here, its) if self._known(v, k) is None]
            waiting += later
            if not later:
                self._add(*waiting.pop())
        return self._known(value, kind) or 0

    def _known(self, value: Any, kind: Kind) -> int | None:
        """The number of a value, None if it is an object or a list that has none yet."""
        if isinstance(value, dict | list):
            return self._of.get((id(value), kind))
        return self._number((type(value), value))

    def _add(self, value: Any, kind: Kind) -> None:
        """Number a value, all of whose members have their numbers."""
        if isinstance(value, dict | list):
            members = ((name, self._known(v, k)) for name, v, k in _members(value, kind))
            self._of[id(value), kind] = self._number((type(value), *members))

    def _number(self, key: tuple[object, ...]) -> int:
        return self._numbers.setdefault(key, len(self._numbers) + 1)


def _members(value: Any, kind: Kind) -> list[_Member]:
    """What a value consists of, notes aside."""
    if isinstance(value, list):
        return [(at, inner, kind) for at, inner in enumerate(value)]
    if not isinstance(value, dict):
        return []
    if kind == "schema":
        return [
            (name, inner, _KINDS.get(name, "schema"))
            for name, inner in value.items()
            if name not in _NOTES or not isinstance(inner, str)
        ]
    return [(name, inner, "schema" if kind == "map" else "listed") for name, inner in value.items()]


class Reader:
    """What the parts of a document allow, each read once.

    closed: an object schema that says nothing of other properties has none. `open` is the reader
    for what is only compared with (`not`, `if`, the other branches of `oneOf`): there, closing
    would allow more and not less.
    """

    def __init__(
        self,
        document: Document,
        read_part: Callable[[Reader, Part], Values],
        closed: bool = False,
    ) -> None:
        """read_part: what a schema that is an object allows, its own parts read by the reader that
        it is given (`combining.read_part`)."""
        self._read_part = read_part
        loops = find_loops(document, check_keywords)
        self._begin(document, loops, closed)
        self.open = self
        if closed:
            self.open = object.__new__(Reader)
            self.open._read_part = read_part
            self.open._begin(document, loops, False)
            self.open.open = self.open

    def _begin(self, document: Document, loops: Loops, closed: bool) -> None:
        self.document, self._loops, self.closed = document, loops, closed
        self._read: dict[str, Values] = {}
        self._children: dict[str, Child] = {}
        self._reading: list[str | None] = []  # None: a step into a property or an item
        self._numbers = Contents()
        self._first: dict[tuple[object, ...], str] = {}  # what a part says -> the first such part

    def values(self, pointer: str) -> Values:
        """What the schema at a pointer allows, in the same place as the schema being read."""
        pointer = self._alike(pointer)
        found = self._read.get(pointer)
        if found is None:
            with self._inside(pointer):
                found = self._in_loop(pointer, self._found(pointer))
            self._read[pointer] = found
        return found

    def child(self, pointer: str) -> Child:
        """What the schema at a pointer allows, one place further in."""
        pointer = self._alike(pointer)
        if pointer not in self._children:
            schema = self.document.part(pointer).schema
            if isinstance(schema, bool):
                self._children[pointer] = Child.of(ALL if schema else NONE)
            else:
                self._children[pointer] = Child(lambda: self._below(pointer))
        return self._children[pointer]

    def _alike(self, pointer: str) -> str:
        """The first part that says the same: large schemas repeat themselves."""
        part = self.document.part(pointer)
        loop = (self._loops.of.get(pointer), pointer in self._loops.entries)
        key = (self._numbers.of(part.schema), part.base, part.draft, *loop)
        return self._first.setdefault(key, pointer)

    def _below(self, pointer: str) -> Values:
        self._reading.append(None)
        try:
            return self.values(pointer)
        finally:
            self._reading.pop()

    def _found(self, pointer: str) -> Values:
        part = self.document.part(pointer)
        if isinstance(part.schema, bool):
            return ALL if part.schema else NONE
        step()
        with as_too_large(pointer):
            return self._read_part(self, part)

    def _in_loop(self, pointer: str, values: Values) -> Values:
        """The values with the loop that the part itself is on."""
        number = self._loops.of.get(pointer)
        entry = pointer in self._loops.entries
        if number is None or values is NONE or (number in values.loops and entry <= values.entry):
            return values
        loops = values.loops | {number}
        return replace(values, loops=loops, entry=values.entry or entry, memo={})

    @contextmanager
    def _inside(self, pointer: str) -> Iterator[None]:
        """Note that a part is being read. Raises InvalidSchemaError if it comes back to itself in
        place, Unfinished if further in."""
        if pointer in self._reading:
            at = len(self._reading) - 1 - self._reading[::-1].index(pointer)
            if None in self._reading[at:]:
                raise Unfinished(pointer)
            way = " -> ".join(str(step) for step in (*self._reading[at:], pointer))
            raise InvalidSchemaError(pointer, f"the schema refers to itself in place: {way}")
        with as_too_large(pointer):
            check_levels(len(self._reading))
        self._reading.append(pointer)
        try:
            yield
        finally:
            self._reading.pop()


def part_below(reader: Reader, part: Part, *way: str | int) -> Part:
    """The part that stands right inside another."""
    return reader.document.part(below(part.pointer, *way))


MAX_COUNT = 100_000  # items or members, each of which takes states of its own


def count_of(schema: dict[str, Any], keyword: str) -> int | None:
    """A keyword that counts, as an integer (3.0 is 3); None if it is not there."""
    return int(schema[keyword]) if keyword in schema else None


def check_count(count: int | None, pointer: str, keyword: str) -> None:
    """Raises SchemaTooLargeError for items or members that are too many to be counted."""
    if count is not None and count > MAX_COUNT:
        advice = f"{keyword} asks for more to be counted; use a smaller one, or leave it out"
        where = below(pointer, keyword)
        raise SchemaTooLargeError(where, "items or members", MAX_COUNT, advice)
