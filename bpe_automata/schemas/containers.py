"""The texts of objects of one shape.

    { } with the named members in order, each or none, the required ones for sure, then any others

A regular language cannot see that one of the other names comes twice. What `fewest` and `most`
count is bounded on the safe side: how many names there are is at most the named ones and all others
that are written, at least the named ones and one more if there are others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache

from bpe_automata.automata.algebra import intersection, less_strings
from bpe_automata.automata.assembly import Assembly
from bpe_automata.automata.compile import compile_regex
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.sources import from_strings
from bpe_automata.budget import check, check_bytes
from bpe_automata.errors import BudgetExceededError
from bpe_automata.schemas.boolean import member
from bpe_automata.schemas.leaves import least, less_texts
from bpe_automata.schemas.numbers import NumberSet, of_value
from bpe_automata.schemas.style import Brackets, Inside, OrderTree, Piece, Style, Texts
from bpe_automata.schemas.values import (
    NONE,
    ArrayShape,
    Child,
    ObjectShape,
    Property,
    Values,
    shape_is_empty,
)

# The texts of arrays in which no value comes twice, for items out of few scalars.
#
# a place for each set of values that may have been written; its size is the number of items

MAX_VALUES = 8  # at one place
MAX_SETS = 50_000
Name = tuple[str, object]  # of a value; the same only for the same value
_ADVICE = "no two items may be equal, which takes a state for each set of items: allow fewer values"


def unique_texts(
    shape: ArrayShape, brackets: Brackets, inside: Inside, order: OrderTree | None
) -> tuple[Assembly, int] | None:
    """Parts that read the arrays from the place returned, or None if there are none. Raises
    BudgetExceededError for items that are too many or not scalars."""
    writing = _Unique(shape, brackets, inside, order)
    return (writing.parts, writing.start) if writing.ends else None


class _Unique:
    """The way through the sets."""

    def __init__(
        self, shape: ArrayShape, brackets: Brackets, inside: Inside, order: OrderTree | None
    ) -> None:
        self.parts, self._shape, self._inside, self._order = Assembly(), shape, inside, order
        self._between = brackets.between
        self._single: dict[Name, Child] = {}
        self._at: list[list[Name]] = []
        self._before: dict[frozenset[Name], int] = {}
        self._pending: list[frozenset[Name]] = []
        end, self.start = self.parts.state(), self.parts.state()
        self.parts.accept(end)
        self.ends = shape.fewest == 0
        if self.ends:
            self.parts.put(self.start, brackets.empty, end)
        self._closing = self.parts.state()
        self.parts.put(self._closing, brackets.last, end)
        self.parts.put(self.start, brackets.first, self._set(frozenset()))
        while self._pending:
            self._choose(self._pending.pop())

    def _set(self, used: frozenset[Name]) -> int:
        """The place before the next item, where these have been written."""
        if used not in self._before:
            if len(self._before) == MAX_SETS:
                raise BudgetExceededError("sets of items", MAX_SETS, _ADVICE)
            self._before[used] = self.parts.state()
            self._pending.append(used)
        return self._before[used]

    def _choose(self, used: frozenset[Name]) -> None:
        """All items that may follow."""
        if len(used) == self._shape.most:
            return
        for name in self._names(len(used)):
            if name in used:
                continue
            after = self.parts.state()
            texts = self._inside(self._single[name], self._order and self._order.item)
            texts.put(self.parts, self._before[used], after)
            self.parts.put(after, self._between, self._set(used | {name}))
            if len(used) + 1 >= self._shape.fewest:
                self.parts.skip(after, self._closing)
                self.ends = True

    def _names(self, at: int) -> list[Name]:
        """What item `at` may be."""
        at = min(at, len(self._shape.prefix))
        while len(self._at) <= at:
            found = single_values(self._shape.item(len(self._at)).values)
            for name, values in found.items():
                self._single.setdefault(name, Child.of(values))
            self._at.append(list(found))
        return self._at[at]


def single_values(values: Values) -> dict[Name, Values]:
    """The set cut into sets of one value each. Raises BudgetExceededError if it has more than
    MAX_VALUES values, or any but scalars."""
    found: dict[Name, Values] = {}
    if values.null:
        found["null", None] = replace(NONE, null=True, memo={})
    for value in sorted(values.booleans):
        found["boolean", value] = replace(NONE, booleans=frozenset((value,)), memo={})
    for text in values.strings.strings(MAX_VALUES):
        found["string", text] = replace(NONE, strings=from_strings((text.decode(),)), memo={})
    for number, texts in _single_numbers(values.numbers).items():
        found["number", number] = replace(NONE, numbers=texts, memo={})
    arrays = any(not shape_is_empty(term.shape) for term in values.arrays)
    objects = any(not shape_is_empty(term.shape) for term in values.objects)
    if len(found) > MAX_VALUES or arrays or objects:
        raise BudgetExceededError("values", MAX_VALUES, _ADVICE)
    return found


def _single_numbers(numbers: NumberSet) -> dict[Decimal, NumberSet]:
    """A set of numbers cut into sets of one value each. Raises BudgetExceededError if it has more
    than MAX_VALUES values, or one of which the shortest decimal is not in it."""
    short = intersection(numbers.decimals, _shortest())
    found = {}
    left = numbers
    for text in short.strings(MAX_VALUES):
        number = Decimal(text.decode())
        found[number] = numbers & of_value(number)
        left = left - of_value(number)
    if not left.is_empty:
        raise BudgetExceededError("values", MAX_VALUES, _ADVICE)
    return found


@lru_cache(maxsize=1)
def _shortest() -> ByteDFA:
    """Decimals of which no digit is needless: one for each value."""
    return compile_regex(r"0|-?[1-9][0-9]*|-?(0|[1-9][0-9]*)\.[0-9]*[1-9]")


_PLACE = 1000  # bytes of a place before a member, with the ways out of it
Count = tuple[int, int]  # names there are for sure, or maybe; what `fewest` and `most` look at


@dataclass(frozen=True, eq=False)
class _Named:
    """A named member that may appear."""

    key: Piece
    texts: Texts
    required: bool


@dataclass(frozen=True, eq=False)
class _Other:
    """Members of other names."""

    keys: Piece
    texts: Texts


def object_texts(
    shape: ObjectShape,
    brackets: Brackets,
    style: Style,
    inside: Inside,
    order: OrderTree | None,
    generous: bool,
    unique: bool,
) -> tuple[Assembly, int] | None:
    """Parts that read the objects from the place returned, or None if there are none. order: of the
    names; None for that of the shape. generous: all texts that may be one, for a difference, where
    a text with a name twice may count as either; else only those that are one for sure. unique: in
    those no name comes twice, since of each set of other names at most one is written."""
    if shape.most is not None and shape.fewest > shape.most:
        return None
    named = []
    for name, tree, given in _in_order(shape, order):
        texts = inside(given.child, tree)
        if not texts.is_empty:
            named.append(_Named(style.key(name), texts, given.required))
        elif given.required:
            return None
    others = [] if shape.most == 0 else _others(shape, style, inside, order)
    if unique and not generous:
        named += [_Named(other.keys, other.texts, required=False) for other in others]
        others = []
    writing = _Object(brackets, named, others, *_bounds(shape, named, others), generous)
    return writing.parts, writing.start


def _in_order(
    shape: ObjectShape, order: OrderTree | None
) -> list[tuple[str, OrderTree | None, Property]]:
    if order is None:
        return [(name, None, given) for name, given in shape.named.items()]
    return [(name, order.member(name), member(shape, name)) for name in order.names]


def _others(
    shape: ObjectShape, style: Style, inside: Inside, order: OrderTree | None
) -> list[_Other]:
    """The other members, whose names are not among the named ones."""
    taken = shape.named if order is None else order.names
    found = []
    for names, child in shape.rest:
        texts = inside(child, order and order.rest)
        if not texts.is_empty:
            keys = _keys_but(least(names), tuple(taken), style)
            if keys.start:
                found.append(_Other(keys, texts))
    return found


def _keys_but(names: ByteDFA, taken: tuple[str, ...], style: Style) -> ByteDFA:
    """The spellings of all of `names` but those in `taken`. Where a name has one spelling, that is
    taken away from the spellings, which is quicker than to spell what is left."""
    spelled = [style.key(name) for name in taken]
    single = [piece for piece in spelled if isinstance(piece, bytes)]
    if len(single) == len(spelled):
        return less_strings(style.keys(names), single)
    left = less_texts(names, from_strings(taken))
    return left if left.is_empty else style.keys(left)


def _bounds(
    shape: ObjectShape, named: list[_Named], others: list[_Other]
) -> tuple[int, int | None]:
    """(fewest, most), 0 or None where they ask for nothing that the rest does not."""
    required = sum(one.required for one in named)
    fewest, most = shape.fewest, shape.most
    if most is not None and most >= len(named) and not others:
        most = None
    return (0 if fewest <= required else fewest), most


def _check_counts(named: list[_Named], others: list[_Other], fewest: int, most: int | None) -> None:
    """Places that are told apart by how many members there were take their bytes in Python. Raises
    BudgetExceededError before they are made."""
    least, places = 0, 0
    for at, one in enumerate(named):
        counted = min(at, fewest) if most is None else min(at, most)
        places += max(counted - least, 0) + 1
        least += one.required
    if others:
        places += most or fewest
    check_bytes(places * _PLACE, "the places where members are counted")


class _Object:
    """The way through the members: before and after each of the named ones, in order, and then
    round and round the others; with counts where there are bounds."""

    def __init__(
        self,
        brackets: Brackets,
        named: list[_Named],
        others: list[_Other],
        fewest: int,
        most: int | None,
        generous: bool,
    ) -> None:
        _check_counts(named, others, fewest, most)
        self.parts = Assembly()
        self._brackets, self._named, self._others = brackets, named, others
        self._fewest, self._most, self._generous = fewest, most, generous
        needed = [at + 1 for at, one in enumerate(named) if one.required]
        self._last_required = needed[-1] if needed else 0
        self._cap = fewest if fewest > 1 else 0
        self._keys: dict[tuple[int, Count, bool], int] = {}
        self._end = self.parts.state()
        self.parts.accept(self._end)
        self.start = self.parts.state()
        if not needed and fewest == 0:
            self.parts.put(self.start, brackets.empty, self._end)
        self._closing = self.parts.state()
        self.parts.put(self._closing, brackets.last, self._end)
        self._pending: list[tuple[int, Count, bool]] = []
        self.parts.put(self.start, brackets.first, self._key(0, (0, 0), False))
        while self._pending:
            self._choose(*self._pending.pop())

    def _key(self, at: int, count: Count, later: bool) -> int:
        """The place before the key of the next member: number `at` or after; among the others,
        `later` if one of them was there already."""
        key = (at, count, later and (self._cap > 0 or self._most is not None))
        if key not in self._keys:
            self._keys[key] = self.parts.state()
            self._pending.append(key)
        return self._keys[key]

    def _choose(self, at: int, count: Count, later: bool) -> None:
        """All members that may follow."""
        check()
        here = self._keys[at, count, later]
        if at == len(self._named):
            self._choose_other(here, count, later)
            return
        one, after = self._named[at], self._counted(count, 1, 1)
        if after is not None:
            self._member(here, one.key, one.texts, self._after(at + 1, after, False))
        if not one.required:
            self.parts.skip(here, self._key(at + 1, count, later))

    def _choose_other(self, here: int, count: Count, later: bool) -> None:
        again = int(self._generous) if later else 1
        after = self._counted(count, again, 1 - again if later else 1)
        if after is None or not self._others:
            return
        to = self._after(len(self._named), after, True)
        for other in self._others:
            self._member(here, other.keys, other.texts, to)

    def _counted(self, count: Count, few: int, many: int) -> Count | None:
        """One member more; None if that is one too many."""
        if self._most is None:
            return min(count[0] + few, self._cap), 0
        if count[1] + many > self._most:
            return None
        return min(count[0] + few, self._cap), count[1] + many

    def _member(self, here: int, key: Piece, texts: Texts, to: int) -> None:
        value = self.parts.state()
        self.parts.put(here, key, value)
        texts.put(self.parts, value, to)

    def _after(self, at: int, count: Count, later: bool) -> int:
        """The place after a member: another one, or the end."""
        place = self.parts.state()
        if at < len(self._named) or self._others:
            self.parts.put(place, self._brackets.between, self._key(at, count, later))
        if at >= self._last_required and count[0] >= self._cap:
            self.parts.skip(place, self._closing)
        return place


# The texts of arrays of one shape.
#
# [ ] with the items of the prefix, then others, `fewest` to `most` of them in all


def array_texts(
    shape: ArrayShape, brackets: Brackets, inside: Inside, order: OrderTree | None
) -> tuple[Assembly, int] | None:
    """Parts that read the arrays from the place returned, or None if there are none."""
    if shape.unique and (shape.most is None or shape.most > 1):
        return unique_texts(shape, brackets, inside, order)
    writing = _Array(shape, brackets, inside, order and order.item)
    return (writing.parts, writing.start) if writing.ends else None


class _Array:
    """The way through the items: one place for each number of items that matters."""

    def __init__(
        self, shape: ArrayShape, brackets: Brackets, inside: Inside, tree: OrderTree | None
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
        """One item after another, until there may be no more or all others are alike."""
        last, before = self._last(), self.parts.state()
        self.parts.put(self.start, self._brackets.first, before)
        for count in range(last + 1):
            texts = self._texts(count)
            if texts.is_empty:
                return
            after = self.parts.state()
            texts.put(self.parts, before, after)
            if count + 1 >= self._shape.fewest:
                self.parts.skip(after, self._closing)
                self.ends = True
            if count < last:
                before = self.parts.state()
            if count < last or self._shape.most is None:
                self.parts.put(after, self._brackets.between, before)

    def _last(self) -> int:
        """The last item, or the first of those after which all goes on as after the one before."""
        if self._shape.most is not None:
            return self._shape.most - 1
        return max(len(self._shape.prefix), self._shape.fewest - 1)

    def _texts(self, at: int) -> Texts:
        return self._inside(self._shape.item(at), self._tree)
