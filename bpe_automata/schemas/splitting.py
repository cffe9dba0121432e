"""The difference of two shapes as a union of shapes, where there is one.

    p - n = union of { v in p : v breaks c } over the conditions c that n consists of

A condition on a named member, on the item at one place, or on how many there are is broken in a way
that is a shape again. That some member or item out of many breaks one is not, then there is None.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.errors import UnsupportedSchemaError
from bpe_automata.schemas.constants import NOTHING
from bpe_automata.schemas.emptiness import child_is_empty, shape_is_empty
from bpe_automata.schemas.leaves import holds, less_texts, listed, meet_texts, most
from bpe_automata.schemas.shapes import (
    ArrayShape,
    Child,
    ObjectShape,
    Property,
    Shape,
    Values,
)

Less = Callable[[Values, Values], Values]
_PLACES = 16  # items that are looked at one by one


def split(shape: Shape, other: Shape, less: Less) -> list[Shape] | None:
    """Shapes whose union is `shape` less `other`; None where no such shapes are found.
    less: the difference of two sets of values."""
    if isinstance(shape, ObjectShape) and isinstance(other, ObjectShape):
        pieces = _split_object(shape, other, less)
    elif isinstance(shape, ArrayShape) and isinstance(other, ArrayShape):
        pieces = _split_array(shape, other, less)
    else:
        raise TypeError("an object and an array are never compared")
    return None if pieces is None else [p for p in pieces if not shape_is_empty(p)]


def member(shape: ObjectShape, name: str) -> Property:
    """What the shape says of the property `name`, in `named` or not."""
    found = shape.named.get(name)
    if found is not None:
        return found
    for names, child in shape.rest:
        if holds_name(names, name, shape.pointer):
            return Property(child)
    return Property(NOTHING)


def holds_name(names: ByteDFA, name: str, pointer: str) -> bool:
    """Is a name in a set? Raises UnsupportedSchemaError if that is not known."""
    if holds(names, name) != holds(most(names), name):
        why = f"it is not decided whether the name {name!r} is of the format"
        raise UnsupportedSchemaError("format", pointer, why)
    return holds(names, name)


def _split_object(shape: ObjectShape, other: ObjectShape, less: Less) -> list[ObjectShape] | None:
    if _rest_may_break(shape, other, less):
        return None
    pieces = []
    for name in [*shape.named, *(n for n in other.named if n not in shape.named)]:
        have, need = member(shape, name), member(other, name)
        if need.required and not have.required:
            pieces.append(_with(shape, name, Property(NOTHING)))
        bad = _bad(have.child, need.child, less)
        if bad is not None:
            pieces.append(_with(shape, name, Property(bad, required=True)))
    if other.most is not None and (shape.most is None or shape.most > other.most):
        more = max(shape.fewest, other.most + 1)
        why = "maxProperties"
        pieces.append(replace(shape, fewest=more, pointer=other.pointer, counting=why))
    return pieces + _too_few(shape, other)


def _with(shape: ObjectShape, name: str, found: Property) -> ObjectShape:
    return replace(shape, named={**shape.named, name: found})


def _bad(have: Child, need: Child, less: Less) -> Child | None:
    """What `have` may hold and `need` may not; None if that is nothing."""
    if have is need:
        return None
    bad = Child(lambda: less(have.values, need.values))
    return None if child_is_empty(bad) else bad


def _rest_may_break(shape: ObjectShape, other: ObjectShape, less: Less) -> bool:
    """May a member that neither shape names break a condition of `other`?"""
    if shape.rest == other.rest:
        return False
    named = listed(frozenset((*shape.named, *other.named)))
    for names, have in shape.rest:
        left = less_texts(names, named)
        for theirs, need in other.rest:
            if meet_texts(left, theirs).is_empty:
                continue
            if _bad(have, need, less) is not None:
                return True
            left = less_texts(left, theirs)
        if not left.is_empty and not child_is_empty(have):
            return True
    return False


def _split_array(shape: ArrayShape, other: ArrayShape, less: Less) -> list[ArrayShape] | None:
    if other.unique and not shape.unique and (shape.most is None or shape.most > 1):
        return None
    places = max(len(shape.prefix), len(other.prefix))
    if _bad(shape.rest, other.rest, less) is not None:
        if shape.most is None or shape.most > _PLACES:
            return None
        places = max(places, shape.most)
    if shape.most is not None:
        places = min(places, shape.most)
    pieces = []
    for at in range(places):
        bad = _bad(shape.item(at), other.item(at), less)
        if bad is not None:
            pieces.append(_with_item(shape, at, bad))
    if other.most is not None and (shape.most is None or shape.most > other.most):
        pieces.append(replace(shape, fewest=max(shape.fewest, other.most + 1)))
    return pieces + _too_few(shape, other)


def _with_item(shape: ArrayShape, at: int, bad: Child) -> ArrayShape:
    """The arrays of the shape whose item `at` is there, and is `bad`."""
    before = tuple(shape.item(i) for i in range(at))
    prefix = (*before, bad, *shape.prefix[at + 1 :])
    return replace(shape, prefix=prefix, fewest=max(shape.fewest, at + 1))


def _too_few(shape: Shape, other: Shape) -> list[Shape]:
    """[those with fewer members or items than `other` asks for], or nothing."""
    if other.fewest <= shape.fewest:
        return []
    most = other.fewest - 1 if shape.most is None else min(shape.most, other.fewest - 1)
    return [replace(shape, most=most)]
