"""Lists the arrays and objects of a small finite set, each as a set of its own.

Two arrays are the same value if their items are; two objects, if they have the same members. So a
value is named by the names of what is in it: ("array", names in order), ("object", set of pairs).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

from bpe_automata.errors import BudgetExceededError
from bpe_automata.schemas._values import (
    NONE,
    NOTHING,
    ArrayShape,
    Child,
    ObjectShape,
    Property,
    Term,
    Values,
    shape_is_empty,
)

Name = tuple[str, object]  # (type, value)
Singles = dict[Name, Values]
SingleValues = Callable[[Values], Singles]


def single_compounds(values: Values, most: int, advice: str, inside: SingleValues) -> Singles:
    """A set with one value for each array and object of the set. inside: the same for the values of
    items and members. Raises BudgetExceededError if there may be more than `most`."""
    found: Singles = {}

    def add(name: Name, one: Values) -> None:
        found.setdefault(name, one)
        if len(found) > most:
            raise BudgetExceededError("values", most, advice)

    for array in values.arrays:
        if not shape_is_empty(array.shape):
            longest = array.shape.most
            if array.minus or longest is None or longest > most or not _is_free(array.shape):
                raise BudgetExceededError("values", most, advice)
            for name, one in _arrays(array.shape, inside):
                add(name, one)
    for term in values.objects:
        if not shape_is_empty(term.shape):
            if term.minus or term.shape.rest or not _is_free(term.shape):
                raise BudgetExceededError("values", most, advice)
            for name, one in _objects(term.shape, inside):
                add(name, one)
    return found


def _is_free(shape: ArrayShape | ObjectShape) -> bool:
    """Whether the values of a shape are all combinations of its items or members."""
    if isinstance(shape, ArrayShape):
        return not shape.unique and not shape.counted
    return shape.most is None and not shape.fewest and not shape.implied


def _arrays(shape: ArrayShape, inside: SingleValues) -> Iterator[tuple[Name, Values]]:
    for count in range(shape.fewest, (shape.most or 0) + 1):
        places = [inside(shape.item(at).values) for at in range(count)]
        for chosen in product(*places):
            items = tuple(Child.of(one[name]) for one, name in zip(places, chosen, strict=True))
            only = Term(ArrayShape(items, NOTHING, count, count, pointer=shape.pointer))
            yield ("array", chosen), replace(NONE, arrays=(only,), memo={})


def _objects(shape: ObjectShape, inside: SingleValues) -> Iterator[tuple[Name, Values]]:
    choices: list[list[tuple[str, Name, Values] | None]] = []
    for member, given in shape.named.items():
        some = inside(given.child.values).items()
        missing = [] if given.required else [None]
        choices.append([*((member, name, one) for name, one in some), *missing])
    for chosen in product(*choices):
        there = [one for one in chosen if one is not None]
        named = {member: Property(Child.of(one), required=True) for member, _, one in there}
        only = Term(ObjectShape(named, pointer=shape.pointer))
        names = frozenset((member, name) for member, name, _ in there)
        yield ("object", names), replace(NONE, objects=(only,), memo={})
