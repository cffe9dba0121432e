"""Whether the texts of a set of values can be told apart by an automaton; else it is refused.

An automaton cannot see that a key comes twice. Where a text repeats a key that is not named, all
its members must fit, so the value that a parser keeps fits too: what is accepted is right. But in
p - n a text of p that is not in n only because of a member that the parser drops would be accepted
wrongly. So of every n that is taken away from a p:

    a text of p whose value is in n must be a text of n                       (law of `_compare`)

which holds if, for the members that neither names, p's are all in n's, or none is. Counting is
limited in the same way: see `_check_count`. Where n has a place for the values of some q - m, a
text of m must have a value of m there, so of every k that is taken away from m the law must hold
again (`_compare_below`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

from bpe_automata.budget import check
from bpe_automata.errors import (
    BudgetExceededError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from bpe_automata.schemas.boolean import difference, intersection, meet_shapes, member
from bpe_automata.schemas.containers import MAX_VALUES, single_values
from bpe_automata.schemas.drafts import below, tokens_of
from bpe_automata.schemas.leaves import Bounded, meet_texts
from bpe_automata.schemas.limits import as_too_large, check_levels, step
from bpe_automata.schemas.loops import references
from bpe_automata.schemas.reader import Reader
from bpe_automata.schemas.values import (
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


def check_writable(values: Values) -> None:
    """Look through a set of bounded depth. Raises UnsupportedSchemaError with the pointer of what
    cannot be told apart; SchemaTooLargeError where that takes more steps than `limits` allows."""
    _Check().values(values)


class _Check:
    def __init__(self) -> None:
        self._levels = 0  # of comparisons inside one another
        self._seen: dict[int, Values] = {}
        self._compared: dict[tuple[str, int, int], tuple[Values, Values]] = {}

    def values(self, values: Values) -> None:
        """Everything in and below a set; one that is under way is found again, not gone into."""
        waiting = [values]
        while waiting:
            check()
            here = waiting.pop()
            if id(here) in self._seen:
                continue
            self._seen[id(here)] = here
            for term in here.arrays:
                self._term(term)
                waiting += [child.values for child in (*term.shape.prefix, term.shape.rest)]
            for found in here.objects:
                self._term(found)
                waiting += [m.child.values for m in found.shape.named.values()]
                waiting += [child.values for _, child in found.shape.rest]

    def _term(self, term: Term[Shape]) -> None:
        with as_too_large(term.shape.pointer):
            step()
            _check_shape(term.shape)
        for taken in term.minus:
            with as_too_large(taken.pointer):
                self._compare(term.shape, taken)

    def _compare(self, shape: Shape, taken: Shape) -> None:
        """The law above, for one shape less another."""
        if shape is taken or shape_is_empty(meet_shapes(shape, taken)):
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
            self._compare_children(shape.item(at), taken.item(at))

    def _compare_objects(self, shape: ObjectShape, taken: ObjectShape) -> None:
        for name in {**shape.named, **taken.named}:
            self._compare_children(member(shape, name).child, member(taken, name).child)
        _check_names(shape, taken)
        for mine, have in shape.rest:
            for theirs, need in taken.rest:
                if not meet_texts(mine, theirs).is_empty:
                    self._compare_rest(have, need, taken.pointer)
        both = meet_shapes(shape, taken)
        _check_count(both)
        required = sum(found.required for found in both.named.values())
        counts = taken.most is not None and (shape.most is None or shape.most > taken.most)
        if counts and both.rest and (both.most or 0) > required:
            raise _refused(taken.pointer, "members beyond the named ones would have to be counted")

    def _compare_rest(self, have: Child, need: Child, pointer: str) -> None:
        if need.values is ALL or child_is_empty(have):
            return
        inside = is_empty(difference(have.values, need.values))
        if not inside and not is_empty(intersection(have.values, need.values)):
            raise _refused(pointer, "members beyond the named ones would have to be compared")
        self._compare_children(have, need)

    def _compare_children(self, have: Child, need: Child) -> None:
        """The law, for what may stand at one place."""
        for one, other in self._pairs("compared", have, need):
            self._compare(one.shape, other.shape)
            for kept in other.minus:
                self._compare_below(one.shape, meet_shapes(other.shape, kept))

    def _compare_below(self, shape: Shape, kept: Shape) -> None:
        """The law for all that is taken away inside of `kept`, a shape that is not taken away."""
        both = meet_shapes(shape, kept)
        if shape_is_empty(both):
            return
        _check_shape(both)
        with self._one_level():
            for have, need in _places(shape, kept):
                for one, other in self._pairs("below", have, need):
                    common = meet_shapes(one.shape, other.shape)
                    self._compare_below(one.shape, other.shape)
                    for taken in other.minus:
                        self._compare(common, taken)

    def _pairs(self, kind: str, have: Child, need: Child) -> list[tuple[Term[Any], Term[Any]]]:
        """The terms of both, each with each; none where nothing is to be found out any more."""
        one, other = have.values, need.values
        key = (kind, id(one), id(other))
        if other is ALL or one is other or key in self._compared:
            return []
        self._compared[key] = (one, other)
        pairs: list[tuple[Term[Any], Term[Any]]] = list(product(one.arrays, other.arrays))
        return pairs + list(product(one.objects, other.objects))


def _places(shape: Shape, other: Shape) -> list[tuple[Child, Child]]:
    """What two shapes say of the same place, for each place that one of them speaks of."""
    if isinstance(shape, ArrayShape) and isinstance(other, ArrayShape):
        last = max(len(shape.prefix), len(other.prefix))
        return [(shape.item(at), other.item(at)) for at in range(last + 1)]
    if isinstance(shape, ObjectShape) and isinstance(other, ObjectShape):
        names = {**shape.named, **other.named}
        named = [(member(shape, name).child, member(other, name).child) for name in names]
        rest = [
            (have, need)
            for a, have in shape.rest
            for b, need in other.rest
            if not meet_texts(a, b).is_empty
        ]
        return named + rest
    raise TypeError("an object and an array are never compared")


def _check_shape(shape: Shape) -> None:
    """What one shape counts and compares by itself."""
    if isinstance(shape, ArrayShape):
        _check_unique(shape)
    elif isinstance(shape, ObjectShape):
        _check_count(shape)


def _check_names(*shapes: ObjectShape) -> None:
    """What is taken away must have all its names."""
    for shape in shapes:
        if any(isinstance(names, Bounded) for names, _ in shape.rest):
            why = "names would have to be compared, but of some it is not decided if they are of it"
            raise UnsupportedSchemaError("format", shape.pointer, why)


def _check_count(shape: ObjectShape) -> None:
    """Members that are not named count as one: they might all be the same."""
    required = sum(found.required for found in shape.named.values())
    if shape.fewest <= required + 1 or all(child_is_empty(child) for _, child in shape.rest):
        return
    why = "members beyond the named ones would have to be told apart to be counted"
    where = below(shape.pointer, shape.counting)
    raise UnsupportedSchemaError(shape.counting, where, why)


def _check_unique(shape: ArrayShape) -> None:
    if not shape.unique or (shape.most is not None and shape.most <= 1):
        return
    most = shape.most
    reached = [*shape.prefix[:most]]
    if most is None or most > len(shape.prefix):
        reached.append(shape.rest)
    for child in reached:
        if not _few(child.values):
            why = f"items out of more than {MAX_VALUES} values, or of arrays or objects"
            where = below(shape.pointer, "uniqueItems")
            raise UnsupportedSchemaError("uniqueItems", where, why)


def _few(values: Values) -> bool:
    """Are there at most MAX_VALUES values, all of them scalars?"""
    if isinstance(values.strings, Bounded):
        return False
    try:
        single_values(values)
    except BudgetExceededError:
        return False
    return True


def _refused(pointer: str, why: str) -> UnsupportedSchemaError:
    named = [token for token in tokens_of(pointer) if token in _COMPARING]
    return UnsupportedSchemaError(named[-1] if named else "oneOf", pointer, why)


_WHY = "no value is valid under this schema"


_NO_TEXT = (
    "no value that is valid under this schema can be written: it would be nested too deeply, has "
    "no spelling in this style, or is too close to one that is not valid (a rounded number, or a "
    "text of which it is not decided whether it is of a format)"
)


def unsatisfiable(reader: Reader) -> UnsatisfiableSchemaError:
    """The error for a schema whose automaton accepts nothing."""
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
    """The schemas without which the one at a pointer has no value, though there may be more."""
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
