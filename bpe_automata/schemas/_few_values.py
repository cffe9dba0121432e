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
    lower_bound,
)
from bpe_automata.schemas._values import (
    ArrayShape,
    ObjectShape,
    Values,
    is_empty,
    shape_is_empty,
)

MAX_VALUES = 64  # of one item, where items must differ
_MOST_LISTED = 1 << 20  # strings
_MAX_KINDS = 256
Kind = tuple[Values, tuple[bool, ...]]  # some values, and whether each of some sets has them


class _ManyError(Exception):
    """There are more values than are asked for, or it is not seen how many there are."""


def single_values(values: Values) -> list[Values]:
    """A set with a single value for each value of the set, where `are_told_apart`. Raises
    BudgetExceededError where it is not seen which these are."""
    try:
        return _listed(values, _MOST_LISTED)
    except _ManyError:
        why = "no two items may be equal, and they are told apart by states: allow fewer values"
        raise BudgetExceededError("values", MAX_VALUES, why) from None


def are_told_apart(shape: ArrayShape) -> bool:
    """Are the items of all arrays out of at most MAX_VALUES values, or out of a list of strings?"""
    values = shape.rest.values
    if shape.prefix or shape.counted or isinstance(values.strings, Bounded):
        return False
    others = values.null or values.booleans or values.arrays or values.objects
    if isinstance(values.strings, Finite) and not others and values.numbers.is_empty:
        return True
    try:
        _listed(values, MAX_VALUES)
    except _ManyError:
        return False
    return True


def _listed(values: Values, most: int) -> list[Values]:
    """The scalars that a set has texts of, at most so many, each with the texts that the set has of
    it. Raises _ManyError, also for arrays and objects."""
    shapes: tuple[ArrayShape | ObjectShape, ...] = (*values.arrays, *values.objects)
    if not all(shape_is_empty(shape) for shape in shapes):
        raise _ManyError
    found = [Values(null=True)] if values.null else []
    found += [Values(booleans=frozenset((value,))) for value in sorted(values.booleans)]
    strings = _strings(lower_bound(values.strings), most)
    found += [Values(strings=finite(frozenset((text,)))) for text in strings]
    if not values.numbers.is_empty:
        spelled = _texts(shortest(values.numbers), most)
        found += [Values(numbers=of_values((Decimal(text.decode()),))) for text in spelled]
    if len(found) > most:
        raise _ManyError
    return found


def _strings(strings: ByteDFA, most: int) -> list[str]:
    if isinstance(strings, Finite):
        return sorted(strings.elements)
    if isinstance(strings, Limited):  # to count them takes an automaton of all of them
        raise _ManyError
    return [text.decode() for text in _texts(strings, most)]


def _texts(texts: ByteDFA, most: int) -> list[bytes]:
    """All of them. Raises _ManyError."""
    try:
        return list(texts.strings(most))
    except BudgetExceededError as error:
        if error.resource != "strings":
            raise  # the time is up
        raise _ManyError from None


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
