"""Takes sets of values apart: by the other sets that their values are in, or into single values.

Two arrays are the same value if their items are; two objects, if they have the same members. So a
value is named by the names of what is in it: ("array", names in order), ("object", set of pairs).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from itertools import product

from bpe_automata._automata import algebra
from bpe_automata._automata.compile import compile_regex
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.sources import from_strings
from bpe_automata.errors import BudgetExceededError
from bpe_automata.schemas._boolean import difference, intersection
from bpe_automata.schemas._numbers import NumberSet, of_value
from bpe_automata.schemas._scalar_sets import Bounded
from bpe_automata.schemas._values import (
    NONE,
    NOTHING,
    ArrayShape,
    Child,
    Counted,
    ObjectShape,
    Property,
    Term,
    Values,
    is_empty,
    shape_is_empty,
)

MAX_VALUES = 64  # of one item, where items must differ
_MAX_KINDS = 256
Kind = tuple[Values, tuple[bool, ...]]  # some values, and whether each of some sets has them
Name = tuple[str, object]  # (type, value)
Singles = dict[Name, Values]


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


def single_values(values: Values) -> Singles:
    """A set with a single value for each value of the set. Raises BudgetExceededError if there are
    more than MAX_VALUES."""
    found: Singles = {}
    if values.null:
        found["null", None] = replace(NONE, null=True, memo={})
    for value in sorted(values.booleans):
        found["boolean", value] = replace(NONE, booleans=frozenset((value,)), memo={})
    for text in values.strings.strings(MAX_VALUES):
        found["string", text] = replace(NONE, strings=from_strings((text.decode(),)), memo={})
    for number, only in _single_numbers(values.numbers).items():
        found["number", number] = replace(NONE, numbers=only, memo={})
    found.update(_single_compounds(values))
    if len(found) > MAX_VALUES:
        raise too_many()
    return found


def _single_numbers(numbers: NumberSet) -> dict[Decimal, NumberSet]:
    """A set with a single number for each number of the set. Raises BudgetExceededError if there
    are more than MAX_VALUES, or one whose shortest decimal spelling is not in the set."""
    short = algebra.intersection(numbers.decimals, shortest_spellings())
    found = {}
    others = numbers
    for text in short.strings(MAX_VALUES):
        number = Decimal(text.decode())
        found[number] = numbers & of_value(number)
        others = others - of_value(number)
    if not others.is_empty:
        raise too_many()
    return found


@lru_cache(maxsize=1)
def shortest_spellings() -> ByteDFA:
    """The shortest decimal spelling of each number."""
    return compile_regex(r"0|-?[1-9][0-9]*|-?(0|[1-9][0-9]*)\.[0-9]*[1-9]")


def _single_compounds(values: Values) -> Singles:
    """A set with one value for each array and object of the set. Raises BudgetExceededError if
    there may be more than MAX_VALUES."""
    found: Singles = {}

    def add(name: Name, one: Values) -> None:
        found.setdefault(name, one)
        if len(found) > MAX_VALUES:
            raise too_many()

    for array in values.arrays:
        if not shape_is_empty(array.shape):
            longest = array.shape.most
            if array.minus or longest is None or longest > MAX_VALUES or not _is_free(array.shape):
                raise too_many()
            for name, one in _arrays(array.shape):
                add(name, one)
    for term in values.objects:
        if not shape_is_empty(term.shape):
            if term.minus or term.shape.rest or not _is_free(term.shape):
                raise too_many()
            for name, one in _objects(term.shape):
                add(name, one)
    return found


def _is_free(shape: ArrayShape | ObjectShape) -> bool:
    """Whether the values of a shape are all combinations of its items or members."""
    if isinstance(shape, ArrayShape):
        return not shape.unique and not shape.counted
    return shape.most is None and not shape.fewest and not shape.implied


def _arrays(shape: ArrayShape) -> Iterator[tuple[Name, Values]]:
    for count in range(shape.fewest, (shape.most or 0) + 1):
        places = [single_values(shape.item(at).values) for at in range(count)]
        for chosen in product(*places):
            items = tuple(Child.of(one[name]) for one, name in zip(places, chosen, strict=True))
            only = Term(ArrayShape(items, NOTHING, count, count, pointer=shape.pointer))
            yield ("array", chosen), replace(NONE, arrays=(only,), memo={})


def _objects(shape: ObjectShape) -> Iterator[tuple[Name, Values]]:
    choices: list[list[tuple[str, Name, Values] | None]] = []
    for member, given in shape.named.items():
        some = single_values(given.child.values).items()
        missing = [] if given.required else [None]
        choices.append([*((member, name, one) for name, one in some), *missing])
    for chosen in product(*choices):
        there = [one for one in chosen if one is not None]
        named = {member: Property(Child.of(one), required=True) for member, _, one in there}
        only = Term(ObjectShape(named, pointer=shape.pointer))
        names = frozenset((member, name) for member, name, _ in there)
        yield ("object", names), replace(NONE, objects=(only,), memo={})


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
