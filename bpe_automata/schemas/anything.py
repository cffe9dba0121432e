"""Whether a set is that of all values up to some depth, however it was made."""

from __future__ import annotations

from bpe_automata.schemas import numbers
from bpe_automata.schemas.constants import ALL_TEXTS, BOTH
from bpe_automata.schemas.shapes import ArrayShape, Child, ObjectShape, Values

_DEEPEST = 16  # levels that are looked at


def anything_to(values: Values) -> int | None:
    """The d for which the set is `any_value(d)`; None if there is none (or it is very deep)."""
    depth = 0
    while depth < _DEEPEST:
        inside = _inside(values)
        if inside is None:
            return None
        if all(_is_none(child.values) for child in inside):
            return depth
        values, other = (child.values for child in inside)
        if values is not other and anything_to(values) != anything_to(other):
            return None
        depth += 1
    return None


def _inside(values: Values) -> tuple[Child, Child] | None:
    """What items and members may be, if all other things may be anything."""
    scalars = values.null and values.booleans == BOTH and values.strings is ALL_TEXTS
    if not scalars or values.numbers is not numbers.ALL:
        return None
    if len(values.arrays) != 1 or len(values.objects) != 1:
        return None
    array, members = values.arrays[0], values.objects[0]
    if array.minus or members.minus:
        return None
    item, member = _item(array.shape), _member(members.shape)
    return None if item is None or member is None else (item, member)


def _item(shape: ArrayShape) -> Child | None:
    free = shape.fewest == 0 and shape.most is None and not shape.unique and not shape.prefix
    return shape.rest if free else None


def _member(shape: ObjectShape) -> Child | None:
    free = shape.fewest == 0 and shape.most is None and not shape.named and len(shape.rest) == 1
    return shape.rest[0][1] if free and shape.rest[0][0] is ALL_TEXTS else None


def _is_none(values: Values) -> bool:
    scalars = values.null or values.booleans or values.arrays or values.objects
    return not scalars and values.numbers.is_empty and values.strings.is_empty
