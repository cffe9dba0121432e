"""Takes sets of values apart: by the other sets that their values are in, or into single values."""

from __future__ import annotations

from collections.abc import Iterable

from bpe_automata._automata.json_texts import Name
from bpe_automata.errors import BudgetExceededError
from bpe_automata.schemas._boolean import difference, intersection
from bpe_automata.schemas._few_values import ManyError, UndecidedError, listed
from bpe_automata.schemas._scalar_sets import Bounded
from bpe_automata.schemas._values import ArrayShape, Child, Counted, Values, is_empty

MAX_VALUES = 64  # of one item, where items must differ
_MAX_KINDS = 256
Kind = tuple[Values, tuple[bool, ...]]  # some values, and whether each of some sets has them


def kinds(values: Values, counted: tuple[Counted, ...]) -> list[Kind]:
    """The values of an item, apart by the counted sets that they are in. Raises
    BudgetExceededError."""
    return apart(values, [one.wanted.values for one in counted])


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


def single_values(values: Values) -> dict[Name, Values]:
    """A set with a single value for each value of the set. Raises BudgetExceededError if there may
    be more than MAX_VALUES."""
    try:
        return {name: one.values for name, one in listed(values, MAX_VALUES).items()}
    except (ManyError, UndecidedError):
        raise too_many() from None


def items_reached(shape: ArrayShape) -> list[Child]:
    """The sets of which items may be."""
    reached = [*shape.prefix[: shape.most]]
    return [*reached, shape.rest] if shape.most is None or shape.most > len(reached) else reached


def has_few_items(shape: ArrayShape) -> bool:
    """Is each item out of at most MAX_VALUES values?"""
    for child in items_reached(shape):
        if isinstance(child.values.strings, Bounded):
            return False
        try:
            single_values(child.values)
        except BudgetExceededError:
            return False
    return True


def too_many() -> BudgetExceededError:
    """The error of items whose values are too many to be told apart by states."""
    advice = (
        "no two items may be equal, which takes a state for each set of items: allow fewer values"
    )
    return BudgetExceededError("values", MAX_VALUES, advice)
