"""Prepares a set of values for its automaton: the set is refused if no automaton can describe its
texts exactly; it is split into single values, or by other sets that its values are in; and shapes
that others contain are dropped.

An automaton cannot tell whether a name that the schema does not list comes twice. In a text that
repeats such a name, all its values must be allowed, so the one that a parser keeps is allowed too,
and accepting the text is right. But such names cannot be counted, see `_check_count`; and items out
of many values cannot be compared with one another.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from decimal import Decimal

from bpe_automata._budget import check
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.errors import BudgetExceededError, UnsupportedSchemaError
from bpe_automata.schemas._boolean import Shapes, difference, intersection, shape_difference
from bpe_automata.schemas._drafts import below
from bpe_automata.schemas._limits import as_too_large, limited_steps, step
from bpe_automata.schemas._numbers import of_values, shortest
from bpe_automata.schemas._scalar_sets import Bounded, Finite, Limited, finite
from bpe_automata.schemas._values import (
    ArrayShape,
    ObjectShape,
    Shape,
    Values,
    child_is_empty,
    is_empty,
    shape_is_empty,
)

MAX_VALUES = 64  # of one item, where items must differ
_MAX_KINDS = 256
Kind = tuple[Values, tuple[bool, ...]]  # some values, and whether each of some sets has them
_NOT_UNIQUE = (
    f"items out of more than {MAX_VALUES} values would have to be compared with one another. Leave "
    'the keyword out of the schema, or give loosen=("uniqueItems",), which does so'
)


def check_regular(values: Values) -> None:
    """Check a set and everything inside, each set once. Raises UnsupportedSchemaError, with the
    pointer of the schema that no automaton can express; SchemaTooLargeError where the check takes
    more steps than `limits` allows."""
    seen, waiting = dict[int, Values](), [values]
    while waiting:
        here = waiting.pop()
        if id(here) in seen:
            continue
        check()
        seen[id(here)] = here
        for array in here.arrays:
            _check_shape(array)
            with as_too_large(array.pointer):
                counts = [one.wanted.values for one in array.counted]
                for item in (*array.prefix, array.rest):  # by those that are counted
                    waiting += [part for part, _ in split_by(item.values, counts)]
        for found in here.objects:
            _check_shape(found)
            with as_too_large(found.pointer):
                waiting += [member.child.values for member in found.named.values()]
                waiting += [child.values for _, child in found.rest]


def _check_shape(shape: Shape) -> None:
    """Check what one shape counts and compares."""
    step()
    if isinstance(shape, ObjectShape):
        _check_count(shape)
        return
    differ = shape.unique and (shape.most is None or shape.most > 1)
    if differ and single_values(shape) is None:
        where = below(shape.pointer, "uniqueItems")
        raise UnsupportedSchemaError("uniqueItems", where, _NOT_UNIQUE)


def _check_count(shape: ObjectShape) -> None:
    """Raises UnsupportedSchemaError if the count needs more than one property that is not named:
    those might all have one name."""
    if shape.fewest <= len(shape.required) + 1 or all(
        child_is_empty(child) for _, child in shape.rest
    ):
        return
    why = "members beyond the named ones would have to be distinguished to be counted"
    where = below(shape.pointer, shape.counting)
    raise UnsupportedSchemaError(shape.counting, where, why)


# Sets split into parts.


def single_values(shape: ArrayShape) -> list[Values] | None:
    """A set for each value that an item may have, if there are at most MAX_VALUES of them, or if
    they are a list of strings; else None, since items out of more cannot be compared."""
    values = shape.rest.values
    shapes: tuple[ArrayShape | ObjectShape, ...] = (*values.arrays, *values.objects)
    if shape.prefix or shape.counted or not all(map(shape_is_empty, shapes)):
        return None
    found = [Values(null=True)] if values.null else []
    found += [Values(booleans=frozenset((value,))) for value in sorted(values.booleans)]
    numbers, strings = _texts(shortest(values.numbers)), _texts(values.strings)
    if strings is None or numbers is None:
        return None
    found += [Values(numbers=of_values((Decimal(text),))) for text in numbers]
    only_strings = isinstance(values.strings, Finite) and not found
    found += [Values(strings=finite(frozenset((text,)))) for text in strings]
    return found if len(found) <= MAX_VALUES or only_strings else None


def _texts(texts: ByteDFA) -> list[str] | None:
    """All texts of a set; None where there are too many, or where the set is not written out."""
    if isinstance(texts, Finite):
        return sorted(texts.elements)
    if isinstance(texts, Bounded | Limited):
        return None
    try:
        return [text.decode() for text in texts.strings(MAX_VALUES)]
    except BudgetExceededError as error:
        if error.resource != "strings":
            raise  # the time is up
        return None


def split_by(values: Values, sets: Iterable[Values]) -> list[Kind]:
    """A set, split by which of some sets its values are in. Raises BudgetExceededError."""
    found: list[Kind] = [(values, ())]
    for one in sets:
        found = [
            (part, (*flags, inside))
            for some, flags in found
            for inside in (True, False)
            for part in [(intersection if inside else difference)(some, one)]
            if not is_empty(part)
        ]
        if len(found) > _MAX_KINDS:
            why = "sets overlap in too many ways: compare or count fewer of them at once"
            raise BudgetExceededError("kinds of values", _MAX_KINDS, why)
    return found


# Unions without the shapes that others contain. Where properties are written in the order of their
# shape, the texts of a shape must be contained too: so the names must be in the same order.

_COMPARED = 32  # shapes that one is compared with
_STEPS = 500  # of all comparisons; the shapes that remain then are kept


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
    """Is it proved that a shape is a subset of another, and that its texts are, too?"""
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
