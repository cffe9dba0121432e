"""Refuses sets of values whose texts no automaton can describe exactly.

An automaton cannot tell whether a name comes twice. In a text that repeats a name which is not
listed, all values of that name must be allowed, so the one that a parser keeps is allowed too, and
the text is accepted rightly. But p - n would wrongly accept a text of p that is outside n only
because of a property that the parser drops. So for every n that is subtracted from a p:

    (*)  a text of p whose value is in n must be a text of n

This holds if, for properties that neither p nor n names, the values in p are all in n or none is.
Counts are restricted in a similar way, see `_check_count`. If n allows q - m for an item or a
property, a text of m there must have a value of m, so (*) must hold again for every k that is
subtracted from m; see `_compare_inside`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

from bpe_automata._budget import check
from bpe_automata.errors import (
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from bpe_automata.schemas._boolean import difference, intersect_shapes, intersection, property_of
from bpe_automata.schemas._documents import references
from bpe_automata.schemas._drafts import below, tokens_of
from bpe_automata.schemas._few_values import MAX_VALUES, apart, are_listed, has_few_items
from bpe_automata.schemas._limits import as_too_large, check_levels, step
from bpe_automata.schemas._reader import Reader
from bpe_automata.schemas._scalar_sets import Bounded, intersect_strings
from bpe_automata.schemas._values import (
    ALL,
    ArrayShape,
    Child,
    ObjectShape,
    Shape,
    Term,
    Values,
    child_is_empty,
    is_empty,
    shape_is_empty,
)

_COMPARING = frozenset(
    ("not", "oneOf", "if", "contains", "dependentRequired", "dependentSchemas", "dependencies")
)
_NOT_UNIQUE = (
    f"items out of more than {MAX_VALUES} values would have to be compared with one another. Leave "
    'the keyword out of the schema, or give loosen=("uniqueItems",), which does so'
)


def check_regular(values: Values) -> None:
    """Check a set. Raises UnsupportedSchemaError, with the pointer of the schema that no automaton
    can express; SchemaTooLargeError where the check takes more steps than `limits` allows."""
    _Checks().values(values)


class _Checks:
    def __init__(self) -> None:
        self._levels = 0  # of comparisons inside one another
        self._seen: dict[int, Values] = {}
        self._compared: dict[tuple[str, int, int], tuple[Values, Values]] = {}

    def values(self, values: Values) -> None:
        """Check a set and everything inside, each set once."""
        waiting = [values]
        while waiting:
            here = waiting.pop()
            if id(here) in self._seen:
                continue
            check()
            self._seen[id(here)] = here
            for term in here.arrays:
                self._term(term)
                waiting += _items(term.shape)
            for found in here.objects:
                self._term(found)
                waiting += [m.child.values for m in found.shape.named.values()]
                waiting += [child.values for _, child in found.shape.rest]

    def _term(self, term: Term[Shape]) -> None:
        with as_too_large(term.shape.pointer):
            step()
            if not (_is_unique(term.shape) and are_listed(term)):
                _check_shape(term.shape)
        for taken in term.minus:
            with as_too_large(taken.pointer):
                self._compare(term.shape, taken)

    def _compare(self, shape: Shape, taken: Shape) -> None:
        """Check (*) for one shape without another."""
        if shape is taken or shape_is_empty(intersect_shapes(shape, taken)):
            return
        with self._one_level():
            if isinstance(shape, ObjectShape) and isinstance(taken, ObjectShape):
                self._compare_objects(shape, taken)
            elif isinstance(shape, ArrayShape) and isinstance(taken, ArrayShape):
                self._compare_arrays(shape, taken)

    @contextmanager
    def _one_level(self) -> Iterator[None]:
        step()
        self._levels += 1
        check_levels(self._levels)
        try:
            yield
        finally:
            self._levels -= 1

    def _compare_arrays(self, shape: ArrayShape, taken: ArrayShape) -> None:
        if taken.unique and not shape.unique:
            raise _refused(taken.pointer, "items would have to be compared with one another")
        for at in range(max(len(shape.prefix), len(taken.prefix)) + 1):
            for values in _apart(taken.item(at), taken):
                self._compare_children(shape.item(at), Child.of(values))

    def _compare_objects(self, shape: ObjectShape, taken: ObjectShape) -> None:
        for name in {**shape.named, **taken.named}:
            self._compare_children(property_of(shape, name).child, property_of(taken, name).child)
        _check_names(shape, taken)
        for mine, have in shape.rest:
            for theirs, need in taken.rest:
                if not intersect_strings(mine, theirs).is_empty:
                    self._compare_rest(have, need, taken.pointer)
        both = intersect_shapes(shape, taken)
        _check_count(both)
        counts = taken.most is not None and (shape.most is None or shape.most > taken.most)
        if counts and both.rest and (both.most or 0) > len(both.required):
            raise _refused(taken.pointer, "members beyond the named ones would have to be counted")

    def _compare_rest(self, have: Child, need: Child, pointer: str) -> None:
        if need.values is ALL or child_is_empty(have):
            return
        inside = is_empty(difference(have.values, need.values))
        if not inside and not is_empty(intersection(have.values, need.values)):
            raise _refused(pointer, "members beyond the named ones would have to be compared")
        self._compare_children(have, need)

    def _compare_children(self, have: Child, need: Child) -> None:
        """Check (*) for the values of one item or property."""
        for one, other in self._pairs("compared", have, need):
            self._compare(one.shape, other.shape)
            for added in other.minus:
                self._compare_inside(one.shape, intersect_shapes(other.shape, added))

    def _compare_inside(self, shape: Shape, added: Shape) -> None:
        """Check (*) for everything subtracted inside of `added`, a shape not subtracted itself."""
        both = intersect_shapes(shape, added)
        if shape_is_empty(both):
            return
        _check_shape(both)
        with self._one_level():
            for have, need in _common_children(shape, added):
                for one, other in self._pairs("inside", have, need):
                    common = intersect_shapes(one.shape, other.shape)
                    self._compare_inside(one.shape, other.shape)
                    for taken in other.minus:
                        self._compare(common, taken)

    def _pairs(self, purpose: str, have: Child, need: Child) -> list[tuple[Term[Any], Term[Any]]]:
        """All pairs of their terms; none if they have been compared before, or need not be."""
        one, other = have.values, need.values
        key = (purpose, id(one), id(other))
        if other is ALL or one is other or key in self._compared:
            return []
        self._compared[key] = (one, other)
        pairs: list[tuple[Term[Any], Term[Any]]] = list(product(one.arrays, other.arrays))
        return pairs + list(product(one.objects, other.objects))


def _items(shape: ArrayShape) -> list[Values]:
    """The sets of items that are written, each for itself."""
    children = (*shape.prefix, shape.rest)
    return [part for one in children for part in _apart(one, shape)]


def _apart(item: Child, shape: ArrayShape) -> list[Values]:
    """Its values, by those that are counted."""
    return [part for part, _ in apart(item.values, [one.wanted.values for one in shape.counted])]


def _common_children(shape: Shape, other: Shape) -> list[tuple[Child, Child]]:
    """The children of both shapes for the same item or property."""
    if isinstance(shape, ArrayShape) and isinstance(other, ArrayShape):
        last = max(len(shape.prefix), len(other.prefix))
        return [(shape.item(at), other.item(at)) for at in range(last + 1)]
    if isinstance(shape, ObjectShape) and isinstance(other, ObjectShape):
        names = {**shape.named, **other.named}
        named = [(property_of(shape, name).child, property_of(other, name).child) for name in names]
        rest = [
            (have, need)
            for a, have in shape.rest
            for b, need in other.rest
            if not intersect_strings(a, b).is_empty
        ]
        return named + rest
    raise TypeError("an object and an array are never compared")


def _check_shape(shape: Shape) -> None:
    """Check what one shape counts and compares by itself."""
    if isinstance(shape, ObjectShape):
        _check_count(shape)
    elif _is_unique(shape) and not has_few_items(shape):
        raise UnsupportedSchemaError(
            "uniqueItems", below(shape.pointer, "uniqueItems"), _NOT_UNIQUE
        )


def _check_names(*shapes: ObjectShape) -> None:
    """Raises UnsupportedSchemaError if a set of names is known only by bounds."""
    for shape in shapes:
        if any(isinstance(names, Bounded) for names, _ in shape.rest):
            why = "names would have to be compared, but of some it is not decided if they are of it"
            raise UnsupportedSchemaError("format", shape.pointer, why)


def _check_count(shape: ObjectShape) -> None:
    """Raises UnsupportedSchemaError if the count needs more than one property that is not named:
    those might all have one name."""
    if shape.fewest <= len(shape.required) + 1 or all(
        child_is_empty(child) for _, child in shape.rest
    ):
        return
    why = "members beyond the named ones would have to be told apart to be counted"
    where = below(shape.pointer, shape.counting)
    raise UnsupportedSchemaError(shape.counting, where, why)


def _is_unique(shape: Shape) -> bool:
    """Must items differ?"""
    return isinstance(shape, ArrayShape) and shape.unique and (shape.most is None or shape.most > 1)


def _refused(pointer: str, why: str) -> UnsupportedSchemaError:
    named = [token for token in tokens_of(pointer) if token in _COMPARING]
    return UnsupportedSchemaError(named[-1] if named else "oneOf", pointer, why)


# Why no value is valid: the innermost schema that has no value although the whole needs one of it.

_WHY = "no value is valid under this schema"
_NO_TEXT = (
    "no value that is valid under this schema can be written: it would be nested too deeply, has "
    "no spelling in this style, or is too close to one that is not valid (a rounded number, or a "
    "text of which it is not decided whether it is of a format)"
)


def unsatisfiable(reader: Reader) -> UnsatisfiableSchemaError:
    """The error for a schema whose automaton accepts no text."""
    pointer, seen = "#", set[str]()
    if not is_empty(reader.values("#")):
        return UnsatisfiableSchemaError(pointer, _NO_TEXT)
    while True:
        seen.add(pointer)
        causes = (p for p in _needed(reader, pointer) if p not in seen)
        cause = next((p for p in causes if is_empty(reader.child(p).values)), None)
        if cause is None:
            return UnsatisfiableSchemaError(pointer, _WHY)
        pointer = cause


def _needed(reader: Reader, pointer: str) -> Iterator[str]:
    """Schemas that must have a value for the one at a pointer to have one, not necessarily all."""
    part = reader.document.part(pointer)
    if not isinstance(part.schema, dict):
        return
    for keyword in references(part):
        yield reader.document.target(part, keyword).pointer
    if part.draft.ref_alone and "$ref" in part.schema:
        return
    for at in range(len(part.schema.get("allOf", ()))):
        yield below(pointer, "allOf", at)
    for keyword in ("anyOf", "oneOf"):
        branches = part.schema.get(keyword, ())
        if len(branches) == 1:
            yield below(pointer, keyword, 0)
    if part.schema.get("type") == "object":
        for name in part.schema.get("required", ()):
            if name in part.schema.get("properties", {}):
                yield below(pointer, "properties", name)
    some = part.schema.get("type") == "array" and part.schema.get("minItems", 0) > 0
    if some and isinstance(part.schema.get("items"), dict | bool):
        yield below(pointer, "items")
