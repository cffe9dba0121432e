"""Builds the network (an automaton with empty transitions) of all objects or arrays of one shape.

    object  {  named properties, in order, the optional ones present or absent;  then others  }
    array   [  items of the prefix;  then others;  `fewest` to `most` of them  ]

A regular language cannot tell whether one of the other names comes twice. So the number of distinct
names has two bounds: at least the named properties and one more if there are others, at most the
named ones and all others that are written. `fewest` is compared with the first, `most` with the
second.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache

from bpe_automata._automata import algebra
from bpe_automata._automata.algebra import less_strings
from bpe_automata._automata.assembly import Assembly
from bpe_automata._automata.compile import compile_regex
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.sources import from_strings
from bpe_automata._budget import check, check_bytes
from bpe_automata.errors import BudgetExceededError
from bpe_automata.schemas._boolean import intersection, property_of
from bpe_automata.schemas._counted import CountedArray
from bpe_automata.schemas._finite import Name, single_compounds
from bpe_automata.schemas._numbers import NumberSet, of_value
from bpe_automata.schemas._scalar_sets import lower_bound, subtract_strings
from bpe_automata.schemas._style import Brackets, NameOrder, Piece, SpellChild, Spellings, Style
from bpe_automata.schemas._values import (
    NONE,
    ArrayShape,
    Child,
    ObjectShape,
    Property,
    Values,
    is_empty,
)

MAX_VALUES = 64  # of one item, where items must differ
MAX_SETS = 20_000
_ADVICE = "no two items may be equal, which takes a state for each set of items: allow fewer values"
_STATE_BYTES = 1000  # of the state before a property, with the transitions out of it
Implied = tuple[tuple[str, str], ...]
Settled = frozenset[tuple[int, bool]]  # (place of a later member, whether it must come or must not)
Count = tuple[int, int]  # the least and the greatest number of distinct names so far


@dataclass(frozen=True, eq=False)
class _Named:
    """A named property that may appear."""

    key: Piece
    value: Spellings
    required: bool


@dataclass(frozen=True, eq=False)
class _Other:
    """Properties with other names."""

    keys: Piece
    value: Spellings


def object_network(
    shape: ObjectShape,
    brackets: Brackets,
    style: Style,
    inside: SpellChild,
    order: NameOrder | None,
    upper: bool,
    unique: bool,
) -> tuple[Assembly, int] | None:
    """The network and its start state, or None if no object has the shape.

    order: of the names; None for that of the shape. upper: accept all texts that may be such an
    object, as a difference needs, where a name that comes twice may count once or twice; otherwise
    accept only those that certainly are. unique: then no name comes twice, since at most one
    property is written for each set of other names.
    """
    if shape.most is not None and shape.fewest > shape.most:
        return None
    members = {}
    for name, tree, given in _in_order(shape, order):
        spellings = inside(given.child, tree)
        if not spellings.is_empty:
            members[name] = _Named(style.key(name), spellings, name in shape.required)
    implied = _without_missing(members, shape.implied)
    if not shape.required <= members.keys():
        return None
    named = list(members.values())
    others = [] if shape.most == 0 else _others(shape, style, inside, order)
    if unique and not upper:
        named += [_Named(other.keys, other.value, required=False) for other in others]
        others = []
    bounds = _bounds(shape, named, others)
    writing = _Object(brackets, named, others, *bounds, upper, implied)
    return writing.parts, writing.start


def _without_missing(members: dict[str, _Named], implied: Implied) -> list[tuple[int, int]]:
    """Removes the members that imply one that cannot be written; the others' implications by the
    places of their names, without those of what is required anyway."""
    while missing := [one for one, needed in implied if one in members and needed not in members]:
        for name in missing:
            members.pop(name, None)
    place = {name: at for at, name in enumerate(members)}
    return [
        (place[one], place[needed])
        for one, needed in implied
        if one in members and not members[needed].required
    ]


def _in_order(
    shape: ObjectShape, order: NameOrder | None
) -> list[tuple[str, NameOrder | None, Property]]:
    if order is None:
        return [(name, None, given) for name, given in shape.named.items()]
    return [(name, order.member(name), property_of(shape, name)) for name in order.names]


def _others(
    shape: ObjectShape, style: Style, inside: SpellChild, order: NameOrder | None
) -> list[_Other]:
    """The properties whose names are not among the named ones."""
    taken = shape.named if order is None else order.names
    found = []
    for names, child in shape.rest:
        spellings = inside(child, order and order.rest)
        if not spellings.is_empty:
            keys = keys_but(lower_bound(names), tuple(taken), style)
            if keys.start:
                found.append(_Other(keys, spellings))
    return found


def keys_but(names: ByteDFA, taken: tuple[str, ...], style: Style) -> ByteDFA:
    """The spellings of all names but those in `taken`. If those have one spelling each, they are
    removed from the spellings of all names, which is quicker."""
    spelled = [style.key(name) for name in taken]
    single = [piece for piece in spelled if isinstance(piece, bytes)]
    if len(single) == len(spelled):
        return less_strings(style.keys(names), single)
    others = subtract_strings(names, from_strings(taken))
    return others if others.is_empty else style.keys(others)


def _bounds(
    shape: ObjectShape, named: list[_Named], others: list[_Other]
) -> tuple[int, int | None]:
    """(fewest, most), 0 or None where the other conditions already imply them."""
    required = sum(one.required for one in named)
    fewest, most = shape.fewest, shape.most
    if most is not None and most >= len(named) and not others:
        most = None
    return (0 if fewest <= required else fewest), most


def _check_counts(named: list[_Named], others: list[_Other], fewest: int, most: int | None) -> None:
    """Raises BudgetExceededError, before they are made, if the states that count properties take
    more memory than the budget allows."""
    least, states = 0, 0
    for at, one in enumerate(named):
        counted = min(at, fewest) if most is None else min(at, most)
        states += max(counted - least, 0) + 1
        least += one.required
    if others:
        states += most or fewest
    check_bytes(states * _STATE_BYTES, "the places where members are counted")


class _Object:
    """The network of objects: a state before each named property, in order, and one before the
    others; several of each, by the count of names, where `fewest` or `most` must be compared, and
    by what those before have settled of those after, where they imply each other."""

    def __init__(
        self,
        brackets: Brackets,
        named: list[_Named],
        others: list[_Other],
        fewest: int,
        most: int | None,
        upper: bool,
        implied: list[tuple[int, int]],
    ) -> None:
        _check_counts(named, others, fewest, most)
        self.parts = Assembly()
        self._brackets, self._named, self._others = brackets, named, others
        self._fewest, self._most, self._upper = fewest, most, upper
        self._after_present = _by_first((one, other) for one, other in implied if one < other)
        self._after_absent = _by_first((other, one) for one, other in implied if other < one)
        needed = [at + 1 for at, one in enumerate(named) if one.required]
        self._last_required = needed[-1] if needed else 0
        self._cap = fewest if fewest > 1 else 0
        self._keys: dict[tuple[int, Count, bool, Settled], int] = {}
        self._end = self.parts.state()
        self.parts.accept(self._end)
        self.start = self.parts.state()
        if not needed and fewest == 0:
            self.parts.put(self.start, brackets.empty, self._end)
        self._closing = self.parts.state()
        self.parts.put(self._closing, brackets.last, self._end)
        self._pending: list[tuple[int, Count, bool, Settled]] = []
        self.parts.put(self.start, brackets.first, self._key(0, (0, 0), False, frozenset()))
        while self._pending:
            self._choose(*self._pending.pop())

    def _key(self, at: int, count: Count, later: bool, settled: Settled) -> int:
        """The state before the key of the next property, which is named[at] or a later one. later:
        whether one of the others has been read."""
        key = (at, count, later and (self._cap > 0 or self._most is not None), settled)
        if key not in self._keys:
            if settled and len(self._keys) >= MAX_SETS:
                advice = "members that others need are far from them; list them side by side"
                raise BudgetExceededError("sets of members", MAX_SETS, advice)
            self._keys[key] = self.parts.state()
            self._pending.append(key)
        return self._keys[key]

    def _choose(self, at: int, count: Count, later: bool, settled: Settled) -> None:
        """Add the properties that may follow."""
        check()
        here = self._keys[at, count, later, settled]
        if at == len(self._named):
            self._choose_other(here, count, later)
            return
        one, after = self._named[at], self._counted(count, 1, 1)
        left = settled - {(at, True), (at, False)}
        if after is not None and (at, False) not in settled:
            present = left.union((other, True) for other in self._after_present.get(at, ()))
            self._member(here, one.key, one.value, self._after(at + 1, after, False, present))
        if not one.required and (at, True) not in settled:
            absent = left.union((other, False) for other in self._after_absent.get(at, ()))
            self.parts.skip(here, self._key(at + 1, count, later, absent))

    def _choose_other(self, here: int, count: Count, later: bool) -> None:
        again = int(self._upper) if later else 1
        after = self._counted(count, again, 1 - again if later else 1)
        if after is None or not self._others:
            return
        to = self._after(len(self._named), after, True, frozenset())
        for other in self._others:
            self._member(here, other.keys, other.value, to)

    def _counted(self, count: Count, few: int, many: int) -> Count | None:
        """The count after one more property; None if that is one too many."""
        if self._most is None:
            return min(count[0] + few, self._cap), 0
        if count[1] + many > self._most:
            return None
        return min(count[0] + few, self._cap), count[1] + many

    def _member(self, here: int, key: Piece, value: Spellings, to: int) -> None:
        after_key = self.parts.state()
        self.parts.put(here, key, after_key)
        value.put(self.parts, after_key, to)

    def _after(self, at: int, count: Count, later: bool, settled: Settled) -> int:
        """The state after a property, from which another one or the end follows."""
        state = self.parts.state()
        if at < len(self._named) or self._others:
            self.parts.put(state, self._brackets.between, self._key(at, count, later, settled))
        owing = any(must for _, must in settled)
        if at >= self._last_required and count[0] >= self._cap and not owing:
            self.parts.skip(state, self._closing)
        return state


def _by_first(pairs: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for one, other in pairs:
        found.setdefault(one, []).append(other)
    return found


def array_network(
    shape: ArrayShape, brackets: Brackets, inside: SpellChild, order: NameOrder | None
) -> tuple[Assembly, int] | None:
    """The network and its start state, or None if no array has the shape. Raises
    BudgetExceededError for unique items that are too many."""
    if shape.unique and (shape.most is None or shape.most > 1):
        return _unique_network(shape, brackets, inside, order)
    if shape.counted:
        last = last_item(shape)
        counting = CountedArray(shape, brackets, inside, order and order.item, last)
        return (counting.parts, counting.start) if counting.ends else None
    writing = _Array(shape, brackets, inside, order and order.item)
    return (writing.parts, writing.start) if writing.ends else None


def last_item(shape: ArrayShape) -> int:
    """The index of the last item, or of the one that may be repeated."""
    return max(len(shape.prefix), shape.fewest - 1) if shape.most is None else shape.most - 1


class _Array:
    """The network of arrays: a state before each item, and one before all items that have the same
    values and no limit to their number."""

    def __init__(
        self, shape: ArrayShape, brackets: Brackets, inside: SpellChild, tree: NameOrder | None
    ) -> None:
        self.parts, self._brackets, self._shape = Assembly(), brackets, shape
        self._inside, self._tree = inside, tree
        self._end, self.start = self.parts.state(), self.parts.state()
        self.parts.accept(self._end)
        self.ends = shape.fewest == 0
        if self.ends:
            self.parts.put(self.start, brackets.empty, self._end)
        self._closing = self.parts.state()
        self.parts.put(self._closing, brackets.last, self._end)
        self._items()

    def _items(self) -> None:
        """Add one item after another, the last of them repeated if there may be more."""
        last, before = last_item(self._shape), self.parts.state()
        self.parts.put(self.start, self._brackets.first, before)
        for count in range(last + 1):
            spellings = self._spellings(count)
            if spellings.is_empty:
                return
            after = self.parts.state()
            spellings.put(self.parts, before, after)
            if count + 1 >= self._shape.fewest:
                self.parts.skip(after, self._closing)
                self.ends = True
            if count < last:
                before = self.parts.state()
            if count < last or self._shape.most is None:
                self.parts.put(after, self._brackets.between, before)

    def _spellings(self, at: int) -> Spellings:
        return self._inside(self._shape.item(at), self._tree)


# Arrays in which no value comes twice, with a state for each set of values that have been written.


def _unique_network(
    shape: ArrayShape, brackets: Brackets, inside: SpellChild, order: NameOrder | None
) -> tuple[Assembly, int] | None:
    """See `array_network`."""
    writing = _Unique(shape, brackets, inside, order)
    return (writing.parts, writing.start) if writing.ends else None


class _Unique:
    """The network of arrays with unique items."""

    def __init__(
        self, shape: ArrayShape, brackets: Brackets, inside: SpellChild, order: NameOrder | None
    ) -> None:
        self.parts, self._shape, self._inside, self._order = Assembly(), shape, inside, order
        self._between = brackets.between
        self._single: dict[Name, Child] = {}
        self._at: list[list[Name]] = []
        self._before: dict[frozenset[Name], int] = {}
        self._pending: list[frozenset[Name]] = []
        end, self.start = self.parts.state(), self.parts.state()
        self.parts.accept(end)
        self.ends = shape.fewest == 0 and self._counts_fit(frozenset())
        if self.ends:
            self.parts.put(self.start, brackets.empty, end)
        self._closing = self.parts.state()
        self.parts.put(self._closing, brackets.last, end)
        self.parts.put(self.start, brackets.first, self._set(frozenset()))
        while self._pending:
            self._choose(self._pending.pop())

    def _set(self, used: frozenset[Name]) -> int:
        """The state before the next item, after these have been written."""
        if used not in self._before:
            if len(self._before) == MAX_SETS:
                raise BudgetExceededError("sets of items", MAX_SETS, _ADVICE)
            self._before[used] = self.parts.state()
            self._pending.append(used)
        return self._before[used]

    def _choose(self, used: frozenset[Name]) -> None:
        """Add the items that may follow."""
        for name in self._names(len(used)):
            if name in used:
                continue
            after = self.parts.state()
            spellings = self._inside(self._single[name], self._order and self._order.item)
            spellings.put(self.parts, self._before[used], after)
            if len(used) + 1 != self._shape.most:
                self.parts.put(after, self._between, self._set(used | {name}))
            if len(used) + 1 >= self._shape.fewest and self._counts_fit(used | {name}):
                self.parts.skip(after, self._closing)
                self.ends = True

    def _counts_fit(self, used: frozenset[Name]) -> bool:
        """Whether as many of the values are of each counted set as must be."""
        for one in self._shape.counted:
            wanted = one.wanted.values
            inside = (intersection(self._single[name].values, wanted) for name in used)
            count = sum(not is_empty(values) for values in inside)
            if count < one.fewest or (one.most is not None and count > one.most):
                return False
        return True

    def _names(self, at: int) -> list[Name]:
        """The values that item `at` may have."""
        at = min(at, len(self._shape.prefix))
        while len(self._at) <= at:
            found = single_values(self._shape.item(len(self._at)).values)
            for name, values in found.items():
                self._single.setdefault(name, Child.of(values))
            self._at.append(list(found))
        return self._at[at]


def single_values(values: Values) -> dict[Name, Values]:
    """A set with a single value for each value of the set. Raises BudgetExceededError if there are
    more than MAX_VALUES."""
    found: dict[Name, Values] = {}
    if values.null:
        found["null", None] = replace(NONE, null=True, memo={})
    for value in sorted(values.booleans):
        found["boolean", value] = replace(NONE, booleans=frozenset((value,)), memo={})
    for text in values.strings.strings(MAX_VALUES):
        found["string", text] = replace(NONE, strings=from_strings((text.decode(),)), memo={})
    for number, only in _single_numbers(values.numbers).items():
        found["number", number] = replace(NONE, numbers=only, memo={})
    found.update(single_compounds(values, MAX_VALUES, _ADVICE, single_values))
    if len(found) > MAX_VALUES:
        raise BudgetExceededError("values", MAX_VALUES, _ADVICE)
    return found


def _single_numbers(numbers: NumberSet) -> dict[Decimal, NumberSet]:
    """A set with a single number for each number of the set. Raises BudgetExceededError if there
    are more than MAX_VALUES, or one whose shortest decimal spelling is not in the set."""
    short = algebra.intersection(numbers.decimals, _shortest())
    found = {}
    others = numbers
    for text in short.strings(MAX_VALUES):
        number = Decimal(text.decode())
        found[number] = numbers & of_value(number)
        others = others - of_value(number)
    if not others.is_empty:
        raise BudgetExceededError("values", MAX_VALUES, _ADVICE)
    return found


@lru_cache(maxsize=1)
def _shortest() -> ByteDFA:
    """The shortest decimal spelling of each number."""
    return compile_regex(r"0|-?[1-9][0-9]*|-?(0|[1-9][0-9]*)\.[0-9]*[1-9]")
