"""Computes unions, intersections, differences and complements of sets of JSON values.

A set has a part for each type, and each operation is done part by part. Of null, booleans, numbers
and strings the parts are finite sets or automata. Of arrays and objects they are unions of shapes:

    (A | B) & C = (A & C) | (B & C)      (A | B) - C = (A - C) | (B - C)

It remains to combine two shapes. Their intersection is one shape, in which each member fits both.
Their difference is a union of shapes, one for each way not to fit the second shape. So

    objects whose `a`, if there is one, is a number or a string
        - objects that have an `a`, a string  =  objects whose `a`, if there is one, is a number

The values of a member are a `Child`, which is computed only if it is needed. All operations are
exact: more than MAX_SHAPES shapes are refused, and so is a difference that is no union of shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from typing import Any, cast

from bpe_automata.errors import BudgetExceededError, UnsupportedSchemaError
from bpe_automata.schemas._drafts import tokens_of
from bpe_automata.schemas._limits import step
from bpe_automata.schemas._numbers import ALL_NUMBERS
from bpe_automata.schemas._scalar_sets import Bounded, finite, intersect, subtract, unite
from bpe_automata.schemas._values import (
    ABSENT,
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
"""Keywords that take differences of sets."""
_ALL_OF_A_TYPE = (ANY_ARRAY, ANY_OBJECT)
_BEGUN = object()  # in a memo, stands for a result that is being computed


def union(one: Values, other: Values) -> Values:
    """{ v : v in one or v in other }. Raises BudgetExceededError, as do the three below."""
    if one is other or one is ALL or other is NONE:
        return one
    if other is ALL or one is NONE:
        return other
    return Values(
        one.null or other.null,
        one.booleans | other.booleans,
        unite(one.numbers, other.numbers, ALL_NUMBERS),
        unite(one.strings, other.strings),
        _union_of_shapes(one.arrays, other.arrays),
        _union_of_shapes(one.objects, other.objects),
    )


def intersection(one: Values, other: Values) -> Values:
    """{ v : v in one and v in other }."""
    if one is other or other is ALL or one is NONE:
        return one
    if one is ALL or other is NONE:
        return other
    # memo["of"]: the sets of which this one is the intersection. Schemas that contain themselves
    # ask for the intersection of the same sets again and again: each is made once.
    mine, theirs = one.memo.get("of", (one,)), other.memo.get("of", (other,))
    sets = {id(values): values for values in (*mine, *theirs)}
    for side, own in ((one, mine), (other, theirs)):
        if len(sets) == len(own):  # the other side's sets are all among its own
            return side
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
    return cast(Values, found)  # the memo keeps `other` alive, so its id is not used again


def complement(values: Values) -> Values:
    """{ v : not v in values }."""
    if values is ALL or values is NONE:
        return NONE if values is ALL else ALL
    back = _once(values, "not", lambda: _difference(ALL, values))
    back.memo["not"] = values
    return cast(Values, back)


def _once(values: Values, key: Hashable, find: Callable[[], Any]) -> Any:
    """find(), computed once. Raises Unfinished where computing it needs the result itself, as when
    a recursive schema asks whether a part of it is empty."""
    if key not in values.memo:
        values.memo[key] = _BEGUN
        try:
            values.memo[key] = find()
        finally:
            if values.memo[key] is _BEGUN:
                del values.memo[key]
    if values.memo[key] is _BEGUN:
        raise Unfinished("a set that is made of itself")
    return values.memo[key]


def _intersection(one: Values, other: Values) -> Values:
    return Values(
        one.null and other.null,
        one.booleans & other.booleans,
        intersect(one.numbers, other.numbers, ALL_NUMBERS),
        intersect(one.strings, other.strings),
        _intersection_of_shapes(one.arrays, other.arrays),
        _intersection_of_shapes(one.objects, other.objects),
    )


def _difference(one: Values, other: Values) -> Values:
    return Values(
        one.null and not other.null,
        one.booleans - other.booleans,
        subtract(one.numbers, other.numbers, ALL_NUMBERS),
        subtract(one.strings, other.strings),
        _difference_of_shapes(one.arrays, other.arrays),
        _difference_of_shapes(one.objects, other.objects),
    )


# Unions of shapes.


def _union_of_shapes(one: Shapes[Shape], other: Shapes[Shape]) -> Shapes[Shape]:
    """The shapes of both, each once; if one of them is all arrays or all objects, only that."""
    for widest in _ALL_OF_A_TYPE:
        if widest in one or widest in other:
            return (widest,)
    seen = set(map(id, one))
    return _few(one + tuple(shape for shape in other if id(shape) not in seen))


def _intersection_of_shapes(one: Shapes[Shape], other: Shapes[Shape]) -> Shapes[Shape]:
    """The intersections of each of the first with each of the second that are not empty."""
    for widest, narrower in ((one, other), (other, one)):
        if len(widest) == 1 and widest[0] in _ALL_OF_A_TYPE:
            return narrower
    return _few(found for a in one for b in other for found in _both(a, b))


def _both(one: Shape, other: Shape) -> list[Shape]:
    """The intersection of two shapes, unless it is empty."""
    step()
    if one.differs(other):
        return []
    found = intersect_shapes(one, other)
    return [found] if one is other or not shape_is_empty(found) else []


def _difference_of_shapes(one: Shapes[Shape], other: Shapes[Shape]) -> Shapes[Shape]:
    """The shapes of the first, from which each of the second is subtracted in turn."""
    for theirs in other:
        one = _few(found for shape in one for found in _without(shape, theirs))
    return one


def _without(shape: Shape, other: Shape) -> list[Shape]:
    """Shapes whose union is one shape without another. Raises UnsupportedSchemaError."""
    step()
    if shape is other:
        return []
    if shape.differs(other) or shape_is_empty(intersect_shapes(shape, other)):
        return [shape]
    return shape_difference(shape, other)


def _few(shapes: Iterable[Shape]) -> Shapes[Shape]:
    """The same shapes. Raises BudgetExceededError for too many."""
    advice = "alternatives multiply under allOf, oneOf, not, if or dependencies; use fewer of them"
    found = []
    for shape in shapes:
        found.append(shape)
        if len(found) > MAX_SHAPES:
            raise BudgetExceededError("terms", MAX_SHAPES, advice)
    return tuple(found)


# The intersection of two shapes.


def intersect_shapes(one: Shape, other: Shape) -> Shape:
    """{ v : v has both shapes }, with the names of the first, then those of the second."""
    if one is other or other in _ALL_OF_A_TYPE:
        return one
    if one in _ALL_OF_A_TYPE:
        return other
    if isinstance(one, ObjectShape):
        return _intersect_objects(one, other)
    return _intersect_arrays(one, other)


def _intersect_objects(one: ObjectShape, other: ObjectShape) -> ObjectShape:
    named = {
        name: _intersect_properties(one.property(name), other.property(name))
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


def _intersect_properties(one: Property, other: Property) -> Property:
    return Property(intersect_children(one.child, other.child), one.required or other.required)


def _intersect_arrays(one: ArrayShape, other: ArrayShape) -> ArrayShape:
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
    if one is other or other.computed is ALL or one is NOTHING:
        return one
    if one.computed is ALL or other is NOTHING:
        return other
    return Child(lambda: intersection(one.values, other.values))


def _fewer(one: int | None, other: int | None) -> int | None:
    """The lower of two bounds, None being no bound."""
    return min((most for most in (one, other) if most is not None), default=None)


# The difference of two shapes.
#
#     one - other = union of { v in one : v does not fit c } over the conditions c of the other
#
# The values of `one` that do not fit c are a shape again if c is about one named property, the item
# at one index, a number, or all items of an array. They are no shape if c is about all properties
# that the schema does not name: a shape cannot say that one of them, whichever it is, does not fit.


def shape_difference(shape: Shape, other: Shape) -> list[Shape]:
    """Shapes whose union is `shape` without `other`, none of them empty. Raises
    UnsupportedSchemaError where no such shapes are found."""
    if isinstance(shape, ObjectShape):
        found = _object_difference(shape, other)
    else:
        found = _array_difference(shape, other)
    return [one for one in found if not shape_is_empty(one)]


def _no_shapes(other: Shape) -> UnsupportedSchemaError:
    """The error for a difference that is no union of shapes."""
    keywords = [token for token in tokens_of(other.pointer) if token in _COMPARING]
    why = "values that are taken away would have to be compared beyond what is named or counted"
    return UnsupportedSchemaError(keywords[-1] if keywords else "oneOf", other.pointer, why)


def _object_difference(shape: ObjectShape, other: ObjectShape) -> list[ObjectShape]:
    if _unnamed_may_differ(shape, other):
        raise _no_shapes(other)
    found = []
    for name in {**shape.named, **other.named}:
        have, need = shape.property(name), other.property(name)
        bad = _child_difference(have.child, need.child)
        if need.required and not have.required:  # absent, or present with a bad value
            found.append(_with(shape, name, ABSENT if bad is None else Property(bad)))
        elif bad is not None:
            found.append(_with(shape, name, Property(bad, required=True)))
    why = {"pointer": other.pointer, "counting": "maxProperties"}
    return found + _of_other_sizes(shape, other, why)


def _with(shape: ObjectShape, name: str, found: Property) -> ObjectShape:
    return replace(shape, named={**shape.named, name: found})


def _child_difference(have: Child, need: Child) -> Child | None:
    """The values of `have` that `need` lacks; None if there are none."""
    if have is need:
        return None
    bad = Child(lambda: difference(have.values, need.values))
    return None if child_is_empty(bad) else bad


def _unnamed_may_differ(shape: ObjectShape, other: ObjectShape) -> bool:
    """May a property that neither shape names fit the first shape, and not the other?"""
    if shape.rest == other.rest:
        return False
    if any(isinstance(names, Bounded) for names, _ in (*shape.rest, *other.rest)):
        return True  # it is not decided which names these sets have
    named = finite(frozenset((*shape.named, *other.named)))
    for names, have in shape.rest:
        remaining = subtract(names, named)
        for theirs, need in other.rest:
            if intersect(remaining, theirs).is_empty:
                continue
            if _child_difference(have, need) is not None:
                return True
            remaining = subtract(remaining, theirs)
        if not remaining.is_empty and not child_is_empty(have):
            return True
    return False


def _array_difference(shape: ArrayShape, other: ArrayShape) -> list[ArrayShape]:
    if other.unique and not shape.unique and (shape.most is None or shape.most > 1):
        raise _no_shapes(other)
    count = max(len(shape.prefix), len(other.prefix))
    has_rest = shape.most is None or shape.most > count
    bad = _child_difference(shape.rest, other.rest) if has_rest else None
    if bad is not None and count:
        raise _no_shapes(other)
    counts = [] if bad is None else [Counted(bad, 1, None)]
    for counted in other.counted:
        counts += [] if counted in shape.counted else _other_counts(counted)
    found = [replace(shape, counted=(*shape.counted, one)) for one in counts]
    for at in range(count if shape.most is None else min(count, shape.most)):
        bad = _child_difference(shape.item(at), other.item(at))
        if bad is not None:
            found.append(_with_item(shape, at, bad))
    return found + _of_other_sizes(shape, other, {})


def _other_counts(counted: Counted) -> list[Counted]:
    """The condition that fewer items are counted, and the one that more are."""
    few = [replace(counted, fewest=0, most=counted.fewest - 1)] if counted.fewest else []
    many = [] if counted.most is None else [replace(counted, fewest=counted.most + 1, most=None)]
    return few + many


def _with_item(shape: ArrayShape, at: int, values: Child) -> ArrayShape:
    """The arrays of the shape that have an item `at`, with one of some values."""
    before = tuple(shape.item(i) for i in range(at))
    prefix = (*before, values, *shape.prefix[at + 1 :])
    return replace(shape, prefix=prefix, fewest=max(shape.fewest, at + 1))


def _of_other_sizes(shape: Shape, other: Shape, why: dict[str, Any]) -> list[Shape]:
    """The values of the shape with more properties or items than `other` allows, and those with
    fewer. why: fields of the first of these, for messages."""
    found = []
    if other.most is not None and (shape.most is None or shape.most > other.most):
        found.append(replace(shape, fewest=max(shape.fewest, other.most + 1), **why))
    if other.fewest > shape.fewest:
        found.append(replace(shape, most=_fewer(shape.most, other.fewest - 1)))
    return found
