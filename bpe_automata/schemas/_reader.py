"""Computes the set of JSON values that are valid under a schema, exactly and lazily.

    Reader(document).values("#") = { v : v is valid under the schema }

    v is valid  iff  it has the type, fits the keywords of its type, `enum` and `const`, and fits
                     $ref, allOf, anyOf, oneOf, not, if, contains, dependentRequired,
                     dependentSchemas; and what none of these evaluates fits unevaluated...

The schemas of properties and items are read when they are first needed, so a schema may refer to
itself there. A schema that refers to itself without such a step says nothing and is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial, reduce

from bpe_automata.errors import InvalidSchemaError
from bpe_automata.schemas._boolean import difference, intersection, union
from bpe_automata.schemas._documents import Document, Part, types_of
from bpe_automata.schemas._drafts import (
    DEPENDENT_SCHEMAS,
    OF_ARRAYS,
    OF_NUMBERS,
    OF_OBJECTS,
    OF_STRINGS,
    below,
)
from bpe_automata.schemas._keywords import (
    arrays_within,
    counted_items,
    objects_within,
    read_array,
    read_listed,
    read_numbers,
    read_object,
    read_strings,
)
from bpe_automata.schemas._limits import as_too_large, check_levels, step
from bpe_automata.schemas._numbers import ALL_NUMBERS
from bpe_automata.schemas._regularity import uncontained
from bpe_automata.schemas._scalar_sets import ALL_STRINGS, NO_TEXT
from bpe_automata.schemas._values import (
    ALL,
    ANY_ARRAY,
    ANY_OBJECT,
    BOOLEANS,
    NONE,
    ArrayShape,
    Child,
    ObjectShape,
    Unfinished,
    Values,
    having,
    is_empty,
)


class Reader:
    """Reads each schema of a document once.

    closed: whether an object schema that does not mention additional properties forbids them.
    loosen: the keywords to leave out; left_out: the pointer to the first use of each of them.

    Schemas whose values are subtracted from others have readers of their own, since closing those
    would allow more values in the end, and loosening them fewer. `taken` reads the schemas of `not`
    and of the other branches of `oneOf`; where a keyword would be left out, it allows only values
    that satisfy the keyword in any case. `open` reads conditions (`if`, `contains`), whose
    complements are used too, so it reads them as they are.
    """

    def __init__(
        self,
        document: Document,
        closed: bool = False,
        loosen: tuple[str, ...] = (),
        whole: Reader | None = None,
    ) -> None:
        """whole: the reader whose `taken` this one is."""
        self.document, self.closed, self._loosen = document, closed, loosen
        self._is_taken = whole is not None
        self.left_out: dict[str, str] = {} if whole is None else whole.left_out
        self.open: Reader = self
        self.taken: Reader = self
        if whole is not None:
            self.open = self.taken = whole.open
        elif closed or loosen:
            self.open = self.taken = Reader(document)
            if loosen:
                self.taken = Reader(document, False, loosen, self)
        self._read: dict[str, Values] = {}
        self._children: dict[str, Child] = {}
        self._reading: list[str | None] = []  # None: a step into a property or an item

    def values(self, pointer: str) -> Values:
        """The values that the schema at a pointer allows, where it applies to the same instance as
        the schema that is being read."""
        found = self._read.get(pointer)
        if found is None:
            found = self._read[pointer] = self._found(pointer)
        return found

    def child(self, pointer: str) -> Child:
        """The values that the schema at a pointer allows, where it applies to a property or an
        item of the instance."""
        if pointer not in self._children:
            schema = self.document.part(pointer).schema
            if isinstance(schema, bool):
                self._children[pointer] = Child.of(ALL if schema else NONE)
            else:
                self._children[pointer] = Child(lambda: self._below(pointer))
        return self._children[pointer]

    def array(self, part: Part) -> ArrayShape:
        """The arrays that the keywords of arrays allow, but for `contains` and those left out."""
        shape, keyword = read_array(part, self.child), "uniqueItems"
        if not shape.unique or keyword not in self._loosen:
            return shape
        self.left_out.setdefault(keyword, below(part.pointer, keyword))
        return replace(shape, unique=False, most=1 if self._is_taken else shape.most)

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
        if pointer in self._reading:
            raise self._in_place(pointer)
        with as_too_large(pointer):
            check_levels(len(self._reading))
            step()
            self._reading.append(pointer)
            try:
                return _read(self, part)
            finally:
                self._reading.pop()

    def _in_place(self, pointer: str) -> InvalidSchemaError | Unfinished:
        """The error for a schema that is needed while it is being read: Unfinished if it refers to
        itself through a property or an item, which can wait, else InvalidSchemaError."""
        at = len(self._reading) - 1 - self._reading[::-1].index(pointer)
        if None in self._reading[at:]:
            return Unfinished(pointer)
        path = " -> ".join(map(str, (*self._reading[at:], pointer)))
        return InvalidSchemaError(pointer, f"the schema refers to itself in place: {path}")


_OF_ONE_TYPE = OF_STRINGS | OF_NUMBERS | OF_ARRAYS | OF_OBJECTS | {"type"}


def _read(reader: Reader, part: Part) -> Values:
    """The values that a schema in the form of an object allows."""
    schema = part.schema
    found = _of_type(reader, part)
    if "const" in schema:
        found = intersection(found, read_listed((schema["const"],), part.pointer))
    if "enum" in schema:
        found = intersection(found, read_listed(schema["enum"], part.pointer))
    for keyword, apply in _APPLYING.items():
        if keyword in schema:
            found = apply(reader, part, found)
    return found


def _of_type(reader: Reader, part: Part) -> Values:
    """The values that `type` and the keywords for a single type allow."""
    schema, types = part.schema, types_of(part.schema)
    if _OF_ONE_TYPE.isdisjoint(schema):
        return ALL
    is_number = bool(types & {"number", "integer"})
    numbers = ALL_NUMBERS if is_number else NO_TEXT
    if is_number and ("number" not in types or not OF_NUMBERS.isdisjoint(schema)):
        numbers = read_numbers(part, "number" not in types)
    strings = ALL_STRINGS if "string" in types else NO_TEXT
    if "string" in types and not OF_STRINGS.isdisjoint(schema):
        strings = read_strings(part)
    arrays: tuple[ArrayShape, ...] = (ANY_ARRAY,) if "array" in types else ()
    if arrays and not OF_ARRAYS.isdisjoint(schema):
        arrays = (reader.array(part),)
    objects: tuple[ObjectShape, ...] = (ANY_OBJECT,) if "object" in types else ()
    if objects and (reader.closed or not OF_OBJECTS.isdisjoint(schema)):
        objects = (read_object(part, reader.child, reader.closed),)
    return Values(
        "null" in types,
        BOOLEANS if "boolean" in types else frozenset(),
        numbers,
        strings,
        arrays,
        objects,
    )


def _ref(reader: Reader, part: Part, found: Values) -> Values:
    return intersection(found, reader.values(reader.document.target(part).pointer))


def _branches(reader: Reader, part: Part, keyword: str) -> list[Values]:
    count = len(part.schema[keyword])
    return [reader.values(below(part.pointer, keyword, at)) for at in range(count)]


def _all_of(reader: Reader, part: Part, found: Values) -> Values:
    return reduce(intersection, _branches(reader, part, "allOf"), found)


def _any_of(reader: Reader, part: Part, found: Values) -> Values:
    branches = (intersection(found, branch) for branch in _branches(reader, part, "anyOf"))
    return reduce(union, branches, NONE)


def _one_of(reader: Reader, part: Part, found: Values) -> Values:
    branches = others = [intersection(found, v) for v in _branches(reader, part, "oneOf")]
    if reader.taken is not reader:
        others = [intersection(found, v) for v in _branches(reader.taken, part, "oneOf")]
    once, seen = NONE, NONE  # the values of exactly one branch so far, and of any
    for branch, other in zip(branches, others, strict=True):
        once = union(difference(once, other), difference(branch, seen))
        seen = union(seen, other)
    return once


def _not(reader: Reader, part: Part, found: Values) -> Values:
    return difference(found, reader.taken.values(below(part.pointer, "not")))


def _if(reader: Reader, part: Part, found: Values) -> Values:
    schema = part.schema
    if not schema.keys() & {"then", "else"}:
        return found
    condition = reader.open.values(below(part.pointer, "if"))
    yes, no = intersection(found, condition), difference(found, condition)
    if "then" in schema and not is_empty(yes):
        yes = intersection(yes, reader.values(below(part.pointer, "then")))
    if "else" in schema and not is_empty(no):
        no = intersection(no, reader.values(below(part.pointer, "else")))
    return union(yes, no)


def _contains(reader: Reader, part: Part, found: Values) -> Values:
    counted = counted_items(part, reader.open.child) if found.arrays else None
    if counted is None:
        return found
    shape = replace(ANY_ARRAY, pointer=part.pointer, counted=(counted,))
    return intersection(found, replace(ALL, arrays=(shape,)))


def _dependent(keyword: str, reader: Reader, part: Part, found: Values) -> Values:
    """dependentRequired, dependentSchemas, and `dependencies`, the older name of both."""
    for name, needed in part.schema[keyword].items():
        where = below(part.pointer, keyword, name)
        if isinstance(needed, dict | bool):
            then = reader.values(where)
        else:
            others = [needed] if isinstance(needed, str) else needed
            then = replace(ALL, objects=having(others, where).objects)
        # The two sets overlap, so that shapes within others can be dropped; disjoint sets would
        # make 2 ** n shapes of n conditions.
        without = difference(found, having([name], where))
        found = union(without, intersection(found, then))
        found = replace(found, objects=uncontained(found.objects))
    return found


def _unevaluated(keyword: str, reader: Reader, part: Part, found: Values) -> Values:
    child, document = reader.child(below(part.pointer, keyword)), reader.document
    if keyword == "unevaluatedItems":
        return intersection(found, replace(ALL, arrays=(arrays_within(document, part, child),)))
    return intersection(found, replace(ALL, objects=(objects_within(document, part, child),)))


_APPLYING: dict[str, Callable[[Reader, Part, Values], Values]] = {
    "$ref": _ref,
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "if": _if,
    "contains": _contains,
    **{name: partial(_dependent, name) for name in ("dependentRequired", *DEPENDENT_SCHEMAS)},
    **{name: partial(_unevaluated, name) for name in ("unevaluatedItems", "unevaluatedProperties")},
}
"""Keywords that apply to the same instance, in the order in which they are read."""
