"""Sets of values taken apart: into single values, where they have only a few, and by the other sets
that their values are in."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from bpe_automata._automata.dfa import ByteDFA
from bpe_automata.errors import BudgetExceededError
from bpe_automata.schemas._boolean import difference, intersection
from bpe_automata.schemas._numbers import of_values, shortest
from bpe_automata.schemas._scalar_sets import (
    Bounded,
    Finite,
    Limited,
    finite,
)
from bpe_automata.schemas._values import (
    ArrayShape,
    ObjectShape,
    Values,
    is_empty,
    shape_is_empty,
)

MAX_VALUES = 64  # of one item, where items must differ
_MAX_KINDS = 256
Kind = tuple[Values, tuple[bool, ...]]  # some values, and whether each of some sets has them


def single_values(shape: ArrayShape) -> list[Values] | None:
    """A set for each value that an item may have, with the texts that the item has of it, where
    these are at most MAX_VALUES, or a list of strings: so items can be told apart."""
    values = shape.rest.values
    shapes: tuple[ArrayShape | ObjectShape, ...] = (*values.arrays, *values.objects)
    if shape.prefix or shape.counted or not all(map(shape_is_empty, shapes)):
        return None
    found = [Values(null=True)] if values.null else []
    found += [Values(booleans=frozenset((value,))) for value in sorted(values.booleans)]
    if isinstance(values.strings, Finite):
        strings: list[str] | None = sorted(values.strings.elements)
    elif isinstance(values.strings, Bounded | Limited):  # these are many, or not known
        strings = None
    else:
        strings = _texts(values.strings)
    numbers = _texts(shortest(values.numbers))
    if strings is None or numbers is None:
        return None
    found += [Values(numbers=of_values((Decimal(text),))) for text in numbers]
    only_strings = isinstance(values.strings, Finite) and not found
    found += [Values(strings=finite(frozenset((text,)))) for text in strings]
    return found if len(found) <= MAX_VALUES or only_strings else None


def _texts(texts: ByteDFA) -> list[str] | None:
    """All of them, None where they are too many."""
    try:
        return [text.decode() for text in texts.strings(MAX_VALUES)]
    except BudgetExceededError as error:
        if error.resource != "strings":
            raise  # the time is up
        return None


# Values apart by other sets.


def apart(values: Values, sets: Iterable[Values]) -> list[Kind]:
    """A set, apart by which of some sets its values are in. Raises BudgetExceededError."""
    found: list[Kind] = [(values, ())]
    for one in sets:
        found = [
            (part, (*flags, inside))
            for known, flags in found
            for inside in (True, False)
            for part in [(intersection if inside else difference)(known, one)]
            if not is_empty(part)
        ]
        if len(found) > _MAX_KINDS:
            why = "sets overlap in too many ways: compare or count fewer of them at once"
            raise BudgetExceededError("kinds of values", _MAX_KINDS, why)
    return found
