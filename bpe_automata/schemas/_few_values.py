"""Sets of values taken apart: into single values, where they have only a few, and by the other sets
that their values are in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import product
from typing import Any

from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._budget import check
from bpe_automata.errors import BudgetExceededError
from bpe_automata.schemas._boolean import difference, intersection
from bpe_automata.schemas._numbers import NumberSet, of_value
from bpe_automata.schemas._scalar_sets import (
    Bounded,
    Finite,
    Limited,
    finite,
    lower_bound,
)
from bpe_automata.schemas._values import (
    NOTHING,
    ArrayShape,
    Child,
    ObjectShape,
    Property,
    Values,
    child_is_empty,
    is_empty,
    shape_is_empty,
)

MAX_VALUES = 64  # of one item, where items must differ
_MOST_LISTED = 1 << 20  # strings
_MAX_KINDS = 256
Name = tuple[str, object]
"""(type, value) of a JSON value: equal where the values are. An array has the names of its items,
in order; an object the set of its members, each (name, name of the value)."""
Kind = tuple[Values, tuple[bool, ...]]  # some values, and whether each of some sets has them
_DEPTH = 8  # levels of arrays and objects that are looked at


class _ManyError(Exception):
    """There are more values than are asked for, or it is not seen how many there are."""


def single_values(values: Values) -> dict[Name, Values]:
    """A set with a single value for each value of the set. Raises BudgetExceededError where it is
    not seen which these are."""
    try:
        return {name: one.values for name, one in _listed(values, _MOST_LISTED).items()}
    except _ManyError:
        why = "no two items may be equal, and they are told apart by states: allow fewer values"
        raise BudgetExceededError("values", MAX_VALUES, why) from None


def has_few_items(shape: ArrayShape) -> bool:
    """Is each item out of at most MAX_VALUES values?"""
    reached = list(shape.prefix[: shape.most])
    if shape.most is None or shape.most > len(reached):
        reached.append(shape.rest)
    return all(_is_few(one.values) for one in reached)


def _is_few(values: Values) -> bool:
    if isinstance(values.strings, Bounded):
        return False
    try:
        _listed(values, MAX_VALUES)
    except _ManyError:
        return False
    return True


def are_listed(shape: ArrayShape) -> bool:
    """Are the items of all arrays out of the same list of strings, however long?"""
    apart = shape.prefix or shape.counted
    return bool(listed_strings(shape.rest.values)) and not apart


def listed_strings(values: Values) -> frozenset[str]:
    """The strings of a finite set of them, without any other values; else none."""
    others = values.null or values.booleans or values.arrays or values.objects
    if others or not values.numbers.is_empty or not isinstance(values.strings, Finite):
        return frozenset()
    return values.strings.elements


def _listed(values: Values, most: int, depth: int = _DEPTH) -> dict[Name, Child]:
    """The values that a set has texts of, at most so many, each with the texts that the set has of
    it. Raises _ManyError."""
    scalars: list[Name] = [("null", None)] if values.null else []
    scalars += [("boolean", value) for value in sorted(values.booleans)]
    scalars += [("string", text) for text in _strings(lower_bound(values.strings), most)]
    found = {name: _single(*name) for name in scalars}
    found |= {
        ("number", one): _number(values.numbers, one) for one in _numbers(values.numbers, most)
    }
    if len(found) > most:
        raise _ManyError
    shapes: tuple[ArrayShape | ObjectShape, ...] = (*values.arrays, *values.objects)
    for shape in shapes:
        check()
        found = _compounds(shape, most, depth) | found
        if len(found) > most:
            raise _ManyError
    return found


def _strings(strings: ByteDFA, most: int) -> list[str]:
    if isinstance(strings, Finite):
        return sorted(strings.elements)
    if isinstance(strings, Limited):  # to count them takes an automaton of all of them
        raise _ManyError
    return [text.decode() for text in _texts(strings, most)]


def _numbers(numbers: NumberSet, most: int) -> list[Decimal]:
    if numbers.shortest is None:
        raise _ManyError
    return [Decimal(text.decode()) for text in _texts(numbers.shortest, most)]


def _texts(texts: ByteDFA, most: int) -> list[bytes]:
    """All of them. Raises _ManyError."""
    find = _texts_if_few if most <= MAX_VALUES else _texts_if_few.__wrapped__
    found: list[bytes] | None = find(texts, most)
    if found is None:
        raise _ManyError
    return found


@lru_cache(maxsize=64)
def _texts_if_few(texts: ByteDFA, most: int) -> list[bytes] | None:
    """None where there are more than `most`."""
    try:
        return list(texts.strings(most))
    except BudgetExceededError as error:
        if error.resource != "strings":
            raise  # the time is up
        return None


@lru_cache(maxsize=1024)
def _single(kind: str, value: Any) -> Child:
    """One null, boolean or string."""
    if kind == "string":
        return Child(lambda: Values(strings=finite(frozenset((value,)))))
    return Child.of(Values(null=True) if kind == "null" else Values(booleans=frozenset((value,))))


def _number(numbers: NumberSet, value: Decimal) -> Child:
    """As far as it is one of some numbers, of which draft 4 has 1 without 1.0."""
    return Child(lambda: Values(numbers=numbers & of_value(value)))


def _compounds(shape: ArrayShape | ObjectShape, most: int, depth: int) -> dict[Name, Child]:
    if shape_is_empty(shape):
        return {}
    if depth == 0:
        raise _ManyError
    if isinstance(shape, ArrayShape):
        return _arrays(shape, most, depth - 1)
    return _objects(shape, most, depth - 1)


def _arrays(shape: ArrayShape, most: int, depth: int) -> dict[Name, Child]:
    if shape.counted or shape.unique:
        raise _ManyError
    longest = len(shape.prefix) if shape.most is None else shape.most
    is_endless = shape.most is None and not child_is_empty(shape.rest)
    empty = [k for k, child in enumerate(shape.prefix[:longest]) if child_is_empty(child)]
    if empty:
        longest, is_endless = empty[0], False
    if is_endless:
        raise _ManyError
    items = [_of(child, most, depth) for child in shape.prefix[:longest]]
    if longest > len(items):
        if longest > most:
            raise _ManyError
        items += [_of(shape.rest, most, depth)] * (longest - len(items))
    counts = range(shape.fewest, longest + 1)
    chosen = (one for n in counts for one in product(*(some.items() for some in items[:n])))
    return _at_most(most, (_array(shape, one) for one in chosen))


def _array(shape: ArrayShape, items: Sequence[tuple[Name, Child]]) -> tuple[Name, Child]:
    names, children = tuple(name for name, _ in items), tuple(child for _, child in items)
    only = ArrayShape(children, NOTHING, len(items), len(items), pointer=shape.pointer)
    return ("array", names), Child(lambda: Values(arrays=(only,)))


def _objects(shape: ObjectShape, most: int, depth: int) -> dict[Name, Child]:
    if shape.fewest > len(shape.required) or shape.most is not None:
        raise _ManyError
    if not all(child_is_empty(child) for _, child in shape.rest):
        raise _ManyError
    choices = list[list[tuple[str, Name, Child] | None]]()
    for key, member in shape.named.items():
        required = key in shape.required
        if shape.implied and not required:
            raise _ManyError
        found = _of(member.child, most, depth).items()
        choices.append([*((key, name, one) for name, one in found), *([] if required else [None])])
    chosen = (list(filter(None, members)) for members in product(*choices))
    return _at_most(most, (_object(shape, members) for members in chosen))


def _object(shape: ObjectShape, members: list[tuple[str, Name, Child]]) -> tuple[Name, Child]:
    named = {key: Property(child, required=True) for key, _, child in members}
    only = ObjectShape(named, pointer=shape.pointer)
    name = "object", frozenset((key, one) for key, one, _ in members)
    return name, Child(lambda: Values(objects=(only,)))


def _of(child: Child, most: int, depth: int) -> dict[Name, Child]:
    return {} if child_is_empty(child) else _listed(child.values, most, depth)


def _at_most(most: int, values: Iterable[tuple[Name, Child]]) -> dict[Name, Child]:
    found = dict[Name, Child]()
    for name, child in values:
        check()
        found[name] = child
        if len(found) > most:
            raise _ManyError
    return found


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
