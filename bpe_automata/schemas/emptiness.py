"""Whether a set of JSON values is empty, told for sure or not at all.

A True is a proof; a False may be an empty set that takes a longer look: one below FUEL levels of
required members, one whose schema is still being read, or a term that its `minus` empties.
"""

from __future__ import annotations

from contextvars import ContextVar

from bpe_automata.schemas.shapes import ArrayShape, Child, ObjectShape, Unfinished, Values

FUEL = 5
# A child's values may be a difference, which is made by asking what is empty one level further in:
# such questions inside of questions use up the same fuel, or a recursive schema would never end.
_nested: ContextVar[int] = ContextVar("nested", default=0)


def is_empty(values: Values, fuel: int = FUEL) -> bool:
    """Is it sure that no value is in the set?"""
    if values.null or values.booleans:
        return False
    known = values.memo.get("empty", (False, -1))
    if known[0] or known[1] >= fuel:
        return bool(known[0])
    try:
        found = _is_empty(values, fuel)
    except Unfinished:
        return False
    values.memo["empty"] = (found, fuel)
    return found


def _is_empty(values: Values, fuel: int) -> bool:
    return (
        not any(True for term in values.objects if not shape_is_empty(term.shape, fuel))
        and not any(True for term in values.arrays if not shape_is_empty(term.shape, fuel))
        and values.numbers.is_empty
        and values.strings.is_empty
    )


def shape_is_empty(shape: ObjectShape | ArrayShape, fuel: int = FUEL) -> bool:
    """Is it sure that nothing has the shape?"""
    if shape.most is not None and shape.fewest > shape.most:
        return True
    if isinstance(shape, ArrayShape):
        return any(child_is_empty(child, fuel) for child in _needed_items(shape))
    return _too_few(shape) or any(
        child_is_empty(member.child, fuel) for member in shape.named.values() if member.required
    )


def child_is_empty(child: Child, fuel: int = FUEL) -> bool:
    """Is it sure that nothing can stand there?"""
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
    """One child for each item that must be there, or one for all that are alike."""
    needed = list(shape.prefix[: shape.fewest])
    return [*needed, shape.rest] if shape.fewest > len(shape.prefix) else needed


def _too_few(shape: ObjectShape) -> bool:
    """Are there fewer names than members that must be there, or more that must than may be?"""
    required = sum(member.required for member in shape.named.values())
    if shape.most is not None and required > shape.most:
        return True
    return not shape.rest and shape.fewest > len(shape.named)
