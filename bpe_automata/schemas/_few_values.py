"""Sets of values taken apart: into single values, where they have only a few, and by the other sets
that their values are in; and sets without some values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import product
from typing import Any, cast

from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.json_texts import Name
from bpe_automata._budget import check
from bpe_automata.errors import BudgetExceededError
from bpe_automata.schemas._boolean import difference, intersect_shapes, intersection
from bpe_automata.schemas._numbers import NumberSet, of_value
from bpe_automata.schemas._scalar_sets import (
    AllBut,
    Bounded,
    Finite,
    Limited,
    finite,
    lower_bound,
    subtract_numbers,
    subtract_strings,
)
from bpe_automata.schemas._values import (
    ALL_STRINGS,
    NOTHING,
    ArrayShape,
    Child,
    ObjectShape,
    Property,
    Shape,
    Term,
    Values,
    child_is_empty,
    is_empty,
    shape_is_empty,
)

MAX_VALUES = 64  # of one item, where items must differ
_MOST_LISTED = 1 << 20  # strings
_MAX_KINDS = 256
Kind = tuple[Values, tuple[bool, ...]]  # some values, and whether each of some sets has them
_DEPTH = 8  # levels of arrays and objects that are looked at


class SingleChild(Child):
    """A child with one value, of this name."""

    def __init__(self, name: Name) -> None:
        super().__init__(lambda: single(name))
        self.name = name


@dataclass(frozen=True, eq=False)
class SingleArray(ArrayShape):
    """The shape of one array, of which the items have these names."""

    names: tuple[Name, ...] = ()


@dataclass(frozen=True, eq=False)
class SingleObject(ObjectShape):
    """The shape of one object. Its names have no order."""


@lru_cache(maxsize=1024)
def single(name: Name) -> Values:
    """The set of one value. Raises BudgetExceededError."""
    kind, value = cast("tuple[str, Any]", name)
    if kind == "null":
        return Values(null=True)
    if kind == "boolean":
        return Values(booleans=frozenset((value,)))
    if kind == "string":
        return Values(strings=finite(frozenset((value,))))
    if kind == "number":
        return Values(numbers=of_value(value))
    if kind == "array":
        items = tuple(map(SingleChild, value))
        array = SingleArray(items, NOTHING, len(items), len(items), names=value)
        return Values(arrays=(Term(array),))
    members = sorted(value, key=lambda member: member[0])
    named = {key: Property(SingleChild(one), required=True) for key, one in members}
    return Values(objects=(Term(SingleObject(named)),))


def without(values: Values, names: Iterable[Name]) -> Values:
    """A set without some values. Raises BudgetExceededError."""
    strings, numbers = set[str](), values.numbers
    null, booleans = values.null, set(values.booleans)
    arrays, objects = list[ArrayShape](), list[ObjectShape]()
    for name in names:
        kind, value = cast("tuple[str, Any]", name)
        if kind == "null":
            null = False
        elif kind == "boolean":
            booleans.discard(value)
        elif kind == "string":
            strings.add(value)
        elif kind == "number":
            numbers = subtract_numbers(numbers, single(name).numbers)
        elif kind == "array":
            arrays.append(single(name).arrays[0].shape)
        else:
            objects.append(single(name).objects[0].shape)
    return Values(
        null,
        frozenset(booleans),
        numbers,
        subtract_strings(values.strings, finite(frozenset(strings))),
        tuple(_less(term, arrays) for term in values.arrays),
        tuple(_less(term, objects) for term in values.objects),
    )


def _less(term: Term[Shape], shapes: Iterable[Shape]) -> Term[Shape]:
    minus = list(term.minus)
    for one in shapes:
        if not shape_is_empty(intersect_shapes(term.shape, one)):
            minus.append(one)
    return Term(term.shape, tuple(minus))


def refuting_singles(have: Values, needs: Sequence[Child]) -> list[tuple[Values, int]] | None:
    """`_entries.refuting` where the needs have one value each, or none, and some have one; None of
    others."""
    bits, absent = dict[Name, int](), 0
    for i, need in enumerate(needs):
        if isinstance(need, SingleChild):
            bits[need.name] = bits.get(need.name, 0) | 1 << i
        elif need is NOTHING:
            absent |= 1 << i
        else:
            return None
    if not bits or is_empty(have):
        return None
    every = (1 << len(needs)) - 1
    found = [(have, absent)]
    for name, of in bits.items():
        if every & ~of != absent and not is_empty(only := intersection(have, single(name))):
            found.append((only, every & ~of))
    if not is_empty(others := without(have, bits)):
        found.append((others, every))
    return found


# The values of a set, if it has only a few.


class _ManyError(Exception):
    """There are more than are asked for."""


class _UndecidedError(Exception):
    """It is not seen how many there are."""


def few_values(values: Values, most: int) -> frozenset[Name] | int | None:
    """The values that a set has texts of, if these are at most so many; `most` + 1 if there are
    more; None where that is not seen."""
    try:
        return frozenset(_listed(values, most))
    except _ManyError:
        return most + 1
    except _UndecidedError:
        return None


def single_values(values: Values) -> dict[Name, Values]:
    """A set with a single value for each value of the set. Raises BudgetExceededError where it is
    not seen which these are."""
    try:
        return {name: one.values for name, one in _listed(values, _MOST_LISTED).items()}
    except (_ManyError, _UndecidedError):
        why = "no two items may be equal, and they are told apart by states: allow fewer values"
        raise BudgetExceededError("values", MAX_VALUES, why) from None


def has_few_items(shape: ArrayShape) -> bool:
    """Is each item out of at most MAX_VALUES values?"""
    reached = list(shape.prefix[: shape.most])
    if shape.most is None or shape.most > len(reached):
        reached.append(shape.rest)
    return not any(
        isinstance(one.values.strings, Bounded)
        or not isinstance(few_values(one.values, MAX_VALUES), frozenset)
        for one in reached
    )


def are_listed(term: Term[Any]) -> bool:
    """Are the items of all arrays out of the same list of strings, however long?"""
    apart = term.minus or term.shape.prefix or term.shape.counted
    return bool(listed_strings(term.shape.rest.values)) and not apart


def listed_strings(values: Values) -> frozenset[str]:
    """The strings of a finite set of them, without any other values; else none."""
    others = values.null or values.booleans or values.arrays or values.objects
    if others or not values.numbers.is_empty or not isinstance(values.strings, Finite):
        return frozenset()
    return values.strings.elements


def _listed(values: Values, most: int, depth: int = _DEPTH) -> dict[Name, Child]:
    """The values that a set has texts of, at most so many, each with the texts that the set has of
    it. Raises _ManyError, _UndecidedError."""
    scalars: list[Name] = [("null", None)] if values.null else []
    scalars += [("boolean", value) for value in sorted(values.booleans)]
    scalars += [("string", text) for text in _strings(lower_bound(values.strings), most)]
    found: dict[Name, Child] = {name: SingleChild(name) for name in scalars}
    found |= {
        ("number", one): _number(values.numbers, one) for one in _numbers(values.numbers, most)
    }
    if len(found) > most:
        raise _ManyError
    undecided = False
    terms: list[Term[Any]] = [*values.arrays, *values.objects]
    for term in terms:
        check()
        try:
            found = _compounds(term, most, depth) | found
        except _UndecidedError:
            undecided = True  # those of another term may be many
        if len(found) > most:
            raise _ManyError
    if undecided:
        raise _UndecidedError
    return found


def _strings(strings: ByteDFA, most: int) -> list[str]:
    if isinstance(strings, Finite):
        return sorted(strings.elements)
    if isinstance(strings, Limited):
        if strings.base is ALL_STRINGS or isinstance(strings.base, AllBut):
            raise _ManyError
        raise _UndecidedError  # to count them takes an automaton of all of them
    return [text.decode() for text in _texts(strings, most)]


def _numbers(numbers: NumberSet, most: int) -> list[Decimal]:
    if numbers.shortest is None:
        raise _UndecidedError
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


def _number(numbers: NumberSet, value: Decimal) -> Child:
    """As far as it is one of some numbers, of which draft 4 has 1 without 1.0."""
    return Child(lambda: Values(numbers=numbers & of_value(value)))


def _compounds(term: Term[Any], most: int, depth: int) -> dict[Name, Child]:
    shape: ArrayShape | ObjectShape = term.shape
    if shape_is_empty(shape):
        return {}
    if depth == 0 or not all(isinstance(one, SingleArray | SingleObject) for one in term.minus):
        raise _UndecidedError
    if isinstance(shape, ArrayShape):
        found = _arrays(shape, most, depth - 1)
    else:
        found = _objects(shape, most, depth - 1)
    if term.minus:
        raise _UndecidedError  # which are left is not looked at
    return found


def _arrays(shape: ArrayShape, most: int, depth: int) -> dict[Name, Child]:
    if shape.counted:
        raise _UndecidedError
    longest = len(shape.prefix) if shape.most is None else shape.most
    is_endless = shape.most is None and not child_is_empty(shape.rest)
    empty = [k for k, child in enumerate(shape.prefix[:longest]) if child_is_empty(child)]
    if empty:
        longest, is_endless = empty[0], False
    if is_endless and not shape.unique:
        raise _ManyError
    items = [_of(child, most, depth) for child in shape.prefix[:longest]]
    if longest > len(items) or is_endless:
        others = _of(shape.rest, most, depth)
        if is_endless or longest > most:
            raise _UndecidedError  # as many as there are values, or more than are asked for
        items += [others] * (longest - len(items))
    if shape.unique:
        raise _UndecidedError
    counts = range(shape.fewest, longest + 1)
    chosen = (one for n in counts for one in product(*(some.items() for some in items[:n])))
    return _at_most(most, (_array(shape, one) for one in chosen))


def _array(shape: ArrayShape, items: Sequence[tuple[Name, Child]]) -> tuple[Name, Child]:
    names, children = tuple(name for name, _ in items), tuple(child for _, child in items)
    only = ArrayShape(children, NOTHING, len(items), len(items), pointer=shape.pointer)
    return ("array", names), Child(lambda: Values(arrays=(Term(only),)))


def _objects(shape: ObjectShape, most: int, depth: int) -> dict[Name, Child]:
    has_room = shape.most is None or shape.most > len(shape.required)
    for names, child in shape.rest if has_room else ():
        if not child_is_empty(child):
            _strings(lower_bound(names), most)
            raise _UndecidedError
    choices = list[list[tuple[str, Name, Child] | None]]()
    for key, member in shape.named.items():
        required = key in shape.required
        if not (required or (has_room and not shape.implied)):
            raise _UndecidedError
        found = _of(member.child, most, depth).items()
        choices.append([*((key, name, one) for name, one in found), *([] if required else [None])])
    if shape.fewest > len(shape.required) or shape.most is not None:
        raise _UndecidedError
    chosen = (list(filter(None, members)) for members in product(*choices))
    return _at_most(most, (_object(shape, members) for members in chosen))


def _object(shape: ObjectShape, members: list[tuple[str, Name, Child]]) -> tuple[Name, Child]:
    named = {key: Property(child, required=True) for key, _, child in members}
    only = ObjectShape(named, pointer=shape.pointer)
    name = "object", frozenset((key, one) for key, one, _ in members)
    return name, Child(lambda: Values(objects=(Term(only),)))


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


# Whether values can be chosen.


def can_differ(sets: Counter[frozenset[Name]]) -> bool:
    """Can as many values be chosen of each set as are asked of it, so that all differ? By
    augmenting paths."""
    if any(len(values) < items for values, items in sets.items()):
        return False
    if len(sets) < 2:
        return True
    wanted = [values for values, items in sets.items() for _ in range(items)]
    taken_by, has = dict[Name, int](), dict[int, Name]()
    for at in range(len(wanted)):
        seen_by, waiting = dict[Name, int](), [at]
        free = None
        while waiting and free is None:
            check()
            one = waiting.pop()
            for name in wanted[one] - seen_by.keys():
                seen_by[name] = one
                if name not in taken_by:
                    free = name
                    break
                waiting.append(taken_by[name])
        if free is None:
            return False
        one = -1
        while one != at:  # each on the path takes what the next one had
            one = seen_by[free]
            taken_by[free], has[one], free = one, free, has.get(one, free)
    return True
