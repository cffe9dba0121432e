"""Computes unions, intersections, differences and complements of sets of JSON values.

The operations are exact, and lazy inside arrays and objects. A set of arrays or objects is a union
of shapes, so an intersection multiplies their numbers; more than MAX_SHAPES are refused, and so is
a difference that is no union of shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

from bpe_automata._budget import check
from bpe_automata.errors import BudgetExceededError, UnsupportedSchemaError
from bpe_automata.schemas._drafts import tokens_of
from bpe_automata.schemas._limits import limited_steps, step
from bpe_automata.schemas._numbers import ALL_NUMBERS
from bpe_automata.schemas._scalar_sets import (
    Bounded,
    contains_name,
    finite,
    intersect,
    subtract,
    unite,
)
from bpe_automata.schemas._values import (
    ALL,
    ANY_ARRAY,
    ANY_OBJECT,
    NONE,
    NOTHING,
    ArrayShape,
    Child,
    Counted,
    ObjectShape,
    Property,
    Shape,
    Unfinished,
    Values,
    child_is_empty,
    shape_is_empty,
)

Shapes = tuple[Shape, ...]

MAX_SHAPES = 1024
_COMPARING = frozenset(
    ("not", "oneOf", "if", "contains", "dependentRequired", "dependentSchemas", "dependencies")
)
_WIDEST = (ANY_ARRAY, ANY_OBJECT)
_OPEN = object()  # stands for a result that is being computed


def union(one: Values, other: Values) -> Values:
    """{ v : v in one or v in other }. Raises BudgetExceededError, as do the four below."""
    if one is other or one is ALL or other is NONE:
        return one
    if other is ALL or one is NONE:
        return other
    return Values(
        one.null or other.null,
        one.booleans | other.booleans,
        unite(one.numbers, other.numbers, ALL_NUMBERS),
        unite(one.strings, other.strings),
        _joined(one.arrays, other.arrays),
        _joined(one.objects, other.objects),
    )


def intersection(one: Values, other: Values) -> Values:
    """{ v : v in one and v in other }."""
    if one is other or other is ALL or one is NONE:
        return one
    if one is ALL or other is NONE:
        return other
    met, more = one.memo.get("of", (one,)), other.memo.get("of", (other,))
    sets = {id(values): values for values in (*met, *more)}
    for side, known in ((one, met), (other, more)):
        if len(sets) == len(known):  # it has been met with the other already
            return side
    # Schemas that contain themselves meet again and again: the same sets are met once.
    first = sets[min(sets)]
    found, _ = _once(first, ("and", frozenset(sets)), lambda: (_intersection(one, other), sets))
    found.memo["of"] = tuple(sets.values())
    return cast(Values, found)


def difference(one: Values, other: Values) -> Values:
    """{ v : v in one and not v in other }."""
    if one is other or other is ALL or one is NONE:
        return NONE
    if other is NONE:
        return one
    if one is ALL:  # it is never freed, so its memo would keep `other` alive for ever
        return complement(other)
    found, _ = _once(one, ("less", id(other)), lambda: (_difference(one, other), other))
    return cast(Values, found)  # kept with the other, whose id so stays its own


def complement(values: Values) -> Values:
    """{ v : not v in values }."""
    if values is ALL or values is NONE:
        return NONE if values is ALL else ALL
    back = _once(values, "not", lambda: _difference(ALL, values))
    back.memo["not"] = values
    return cast(Values, back)


def exactly_one(branches: Sequence[Values], others: Sequence[Values]) -> Values:
    """{ v : v in branches[i] for some i, and in others[j] for no j != i }."""
    once, seen = NONE, NONE
    for branch, other in zip(branches, others, strict=True):
        once = union(difference(once, other), difference(branch, seen))
        seen = union(seen, other)
    return once


def _once(values: Values, key: Hashable, find: Callable[[], Any]) -> Any:
    """find(), computed once. Raises Unfinished where computing it needs the result itself, as when
    a recursive schema asks whether a part of it is empty."""
    if key not in values.memo:
        values.memo[key] = _OPEN
        try:
            values.memo[key] = find()
        finally:
            if values.memo[key] is _OPEN:
                del values.memo[key]
    if values.memo[key] is _OPEN:
        raise Unfinished("a set that is made of itself")
    return values.memo[key]


def _intersection(one: Values, other: Values) -> Values:
    return Values(
        one.null and other.null,
        one.booleans & other.booleans,
        intersect(one.numbers, other.numbers, ALL_NUMBERS),
        intersect(one.strings, other.strings),
        _met(one.arrays, other.arrays),
        _met(one.objects, other.objects),
    )


def _difference(one: Values, other: Values) -> Values:
    return Values(
        one.null and not other.null,
        one.booleans - other.booleans,
        subtract(one.numbers, other.numbers, ALL_NUMBERS),
        subtract(one.strings, other.strings),
        _less(one.arrays, other.arrays),
        _less(one.objects, other.objects),
    )


def _joined(one: Shapes[Shape], other: Shapes[Shape]) -> Shapes[Shape]:
    """The shapes of both, each once; if one of them is all arrays or all objects, only that."""
    for widest in _WIDEST:
        if widest in one or widest in other:
            return (widest,)
    known = set(map(id, one))
    return _few(one + tuple(shape for shape in other if id(shape) not in known))


def _met(one: Shapes[Shape], other: Shapes[Shape]) -> Shapes[Shape]:
    for widest, narrower in ((one, other), (other, one)):
        if len(widest) == 1 and widest[0] in _WIDEST:
            return narrower
    if len(one) * len(other) > 64 * MAX_SHAPES:
        raise _too_many()
    return _few(found for a in one for b in other for found in _met_shapes(a, b))


def _met_shapes(one: Shape, other: Shape) -> list[Shape]:
    """The intersection of two shapes, unless it is empty."""
    step()
    if one.differs(other):
        return []
    both = intersect_shapes(one, other)
    return [both] if one is other or not shape_is_empty(both) else []


def _less(one: Shapes[Shape], other: Shapes[Shape]) -> Shapes[Shape]:
    for theirs in other:
        one = _few(found for shape in one for found in _less_shape(shape, theirs))
    return one


def _less_shape(shape: Shape, other: Shape) -> list[Shape]:
    """Shapes whose union is one shape without the other. Raises UnsupportedSchemaError."""
    step()
    if shape is other:
        return []
    if shape.differs(other) or shape_is_empty(intersect_shapes(shape, other)):
        return [shape]
    pieces = shape_difference(shape, other)
    if pieces is None:
        named = [token for token in tokens_of(other.pointer) if token in _COMPARING]
        why = "values that are taken away would have to be compared beyond what is named or counted"
        keyword = named[-1] if named else "oneOf"
        raise UnsupportedSchemaError(keyword, other.pointer, why)
    return pieces


def intersect_shapes(one: Shape, other: Shape) -> Shape:
    """{ v : v has both shapes }, with the names of the first, then those of the second."""
    if one is other or other in _WIDEST:
        return one
    if one in _WIDEST:
        return other
    return _MEET[type(one)](one, other)


def _meet_objects(one: ObjectShape, other: ObjectShape) -> ObjectShape:
    named = {
        name: _meet_members(property_of(one, name), property_of(other, name))
        for name in {**one.named, **other.named}
    }
    rest = []
    for mine, a in one.rest:
        for theirs, b in other.rest:
            both = intersect(mine, theirs)
            if not both.is_empty:
                rest.append((both, intersect_children(a, b)))
    most = _fewer(one.most, other.most)
    more = one if one.fewest >= other.fewest else other
    return ObjectShape(named, tuple(rest), more.fewest, most, more.pointer, more.counting)


def _meet_members(one: Property, other: Property) -> Property:
    child, required = intersect_children(one.child, other.child), one.required or other.required
    for member in (one, other):
        if child is member.child and required == member.required:
            return member
    return Property(child, required)


def _meet_arrays(one: ArrayShape, other: ArrayShape) -> ArrayShape:
    count = max(len(one.prefix), len(other.prefix))
    return ArrayShape(
        tuple(intersect_children(one.item(at), other.item(at)) for at in range(count)),
        intersect_children(one.rest, other.rest),
        max(one.fewest, other.fewest),
        _fewer(one.most, other.most),
        one.unique or other.unique,
        other.pointer if other.unique else one.pointer,
        tuple(dict.fromkeys(one.counted + other.counted)),
    )


def intersect_children(one: Child, other: Child) -> Child:
    """The child with the values of both, computed when they are needed."""
    if one is other or other.known is ALL or one is NOTHING:
        return one
    if one.known is ALL or other is NOTHING:
        return other
    return Child(lambda: intersection(one.values, other.values))


def _fewer(one: int | None, other: int | None) -> int | None:
    return min((most for most in (one, other) if most is not None), default=None)


def _few(shapes: Iterable[Shape]) -> Shapes[Shape]:
    found = []
    for shape in shapes:
        found.append(shape)
        if len(found) > MAX_SHAPES:
            raise _too_many()
    return tuple(found)


def _too_many() -> BudgetExceededError:
    advice = "alternatives multiply under allOf, oneOf, not, if or dependencies; use fewer of them"
    return BudgetExceededError("terms", MAX_SHAPES, advice)


# The difference of two shapes as a union of shapes.
#
#     p - n = union of { v in p : v violates c } over the conditions c of n
#
# The values that violate a condition on a named property, on the item at one index, or on a count
# have a shape, and so have arrays with some item that violates one. Objects with some property out
# of many that does have none.

_ABSENT = Property(NOTHING)


def shape_difference(shape: Shape, other: Shape) -> list[Shape] | None:
    """Shapes whose union is `shape` without `other`; None where no such shapes are found."""
    pieces = _DIFFERENCE[type(shape)](shape, other)
    return None if pieces is None else [p for p in pieces if not shape_is_empty(p)]


def property_of(shape: ObjectShape, name: str) -> Property:
    """The property with a name, whether it is in `named` or not."""
    found = shape.named.get(name)
    if found is not None:
        return found
    for names, child in shape.rest:
        if contains_name(names, name, shape.pointer):
            return Property(child)
    return _ABSENT


def _object_difference(shape: ObjectShape, other: ObjectShape) -> list[ObjectShape] | None:
    if _rest_may_violate(shape, other):
        return None
    pieces = []
    for name in [*shape.named, *(n for n in other.named if n not in shape.named)]:
        have, need = property_of(shape, name), property_of(other, name)
        bad = _excess(have.child, need.child)
        if need.required and not have.required:  # absent, or present with a bad value
            pieces.append(_with(shape, name, _ABSENT if bad is None else Property(bad)))
        elif bad is not None:
            pieces.append(_with(shape, name, Property(bad, required=True)))
    if other.most is not None and (shape.most is None or shape.most > other.most):
        more = max(shape.fewest, other.most + 1)
        why = "maxProperties"
        pieces.append(replace(shape, fewest=more, pointer=other.pointer, counting=why))
    return pieces + _too_few(shape, other)


def _with(shape: ObjectShape, name: str, found: Property) -> ObjectShape:
    return replace(shape, named={**shape.named, name: found})


def _excess(have: Child, need: Child) -> Child | None:
    """The values of `have` that `need` lacks; None if there are none."""
    if have is need:
        return None
    bad = Child(lambda: difference(have.values, need.values))
    return None if child_is_empty(bad) else bad


def _rest_may_violate(shape: ObjectShape, other: ObjectShape) -> bool:
    """Whether a property that neither shape names may violate a condition of `other`."""
    if shape.rest == other.rest:
        return False
    if any(isinstance(names, Bounded) for names, _ in (*shape.rest, *other.rest)):
        return True  # of some names it is not decided which they are
    named = finite(frozenset((*shape.named, *other.named)))
    for names, have in shape.rest:
        unmatched = subtract(names, named)
        for theirs, need in other.rest:
            if intersect(unmatched, theirs).is_empty:
                continue
            if _excess(have, need) is not None:
                return True
            unmatched = subtract(unmatched, theirs)
        if not unmatched.is_empty and not child_is_empty(have):
            return True
    return False


def _array_difference(shape: ArrayShape, other: ArrayShape) -> list[ArrayShape] | None:
    if other.unique and not shape.unique and (shape.most is None or shape.most > 1):
        return None
    count = max(len(shape.prefix), len(other.prefix))
    some = _excess(shape.rest, other.rest)
    pieces = list[ArrayShape]()
    if some is not None and count:
        return None
    if some is not None:
        pieces.append(replace(shape, counted=(*shape.counted, Counted(some, 1, None))))
    if shape.most is not None:
        count = min(count, shape.most)
    for at in range(count):
        bad = _excess(shape.item(at), other.item(at))
        if bad is not None:
            pieces.append(_with_item(shape, at, bad))
    for counted in other.counted:
        if counted not in shape.counted:
            pieces += [
                replace(shape, counted=(*shape.counted, other_count))
                for other_count in _other_counts(counted)
            ]
    if other.most is not None and (shape.most is None or shape.most > other.most):
        pieces.append(replace(shape, fewest=max(shape.fewest, other.most + 1)))
    return pieces + _too_few(shape, other)


def _other_counts(counted: Counted) -> list[Counted]:
    few = [replace(counted, fewest=0, most=counted.fewest - 1)] if counted.fewest else []
    many = [] if counted.most is None else [replace(counted, fewest=counted.most + 1, most=None)]
    return few + many


def _with_item(shape: ArrayShape, at: int, bad: Child) -> ArrayShape:
    """The arrays of the shape that have an item `at`, with a value of `bad`."""
    before = tuple(shape.item(i) for i in range(at))
    prefix = (*before, bad, *shape.prefix[at + 1 :])
    return replace(shape, prefix=prefix, fewest=max(shape.fewest, at + 1))


def _too_few(shape: Shape, other: Shape) -> list[Shape]:
    """The values of the shape with fewer properties or items than `other` requires."""
    if other.fewest <= shape.fewest:
        return []
    most = other.fewest - 1 if shape.most is None else min(shape.most, other.fewest - 1)
    return [replace(shape, most=most)]


_MEET: dict[type, Callable[[Any, Any], Any]] = {
    ObjectShape: _meet_objects,
    ArrayShape: _meet_arrays,
}
_DIFFERENCE: dict[type, Callable[[Any, Any], list[Any] | None]] = {
    ObjectShape: _object_difference,
    ArrayShape: _array_difference,
}

# Shapes that others contain are dropped. Their texts must be contained too: named properties are
# written in the order of the shape, the rest in any.

_COMPARED = 32  # shapes that one is compared with
_STEPS = 500  # of all comparisons; the shapes that are left then stay


def uncontained(shapes: Shapes[ObjectShape]) -> Shapes[ObjectShape]:
    """Shapes with the same union, without most of those that others contain."""
    found, waiting = list[ObjectShape](), list(shapes)
    with limited_steps(_STEPS), suppress(BudgetExceededError):
        while waiting:
            shape = waiting[0]
            if not any(_is_within(shape, other) for other in found[:_COMPARED]):
                kept = [other for other in found[:_COMPARED] if not _is_within(other, shape)]
                found = [*kept, *found[_COMPARED:], shape]
            del waiting[0]
    return (*found, *waiting)


def _is_within(one: ObjectShape, two: ObjectShape) -> bool:
    """Is a shape seen to be a subset of another, and so are its texts?"""
    check()
    if not two.required <= one.required:
        return False
    if [name for name in one.named if name in two.named] != list(two.named):
        return False
    if one.differs(two):
        return False
    try:
        return shape_difference(one, two) == []
    except UnsupportedSchemaError:
        return False
