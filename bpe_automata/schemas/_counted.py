"""Builds the network of arrays in which items are counted (`minContains`, `maxContains`).

An item is in some of the counted sets and not in the others. For each such choice the items are a
set of their own, and the choices are disjoint; so a state for each count (up to the bound that
matters) decides, besides the places of items that `_Array` tells apart.
"""

from __future__ import annotations

from collections.abc import Iterable

from bpe_automata._automata.assembly import Assembly
from bpe_automata._budget import check
from bpe_automata.errors import BudgetExceededError
from bpe_automata.schemas._boolean import difference, intersection
from bpe_automata.schemas._style import Brackets, NameOrder, SpellChild
from bpe_automata.schemas._values import ArrayShape, Child, Counted, Values, is_empty

MAX_STATES = 50_000
_MAX_KINDS = 256
_ADVICE = (
    "items of several kinds are counted, each count with states of its own: use smaller bounds"
)
Counts = tuple[int, ...]
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


def enough(counts: Counts, counted: tuple[Counted, ...]) -> bool:
    """Whether no count is too small."""
    return all(count >= one.fewest for count, one in zip(counts, counted, strict=True))


def added(counts: Counts, flags: tuple[bool, ...], counted: tuple[Counted, ...]) -> Counts | None:
    """The counts after one more item, as far as they matter; None if one is too large."""
    found = []
    for count, more, one in zip(counts, flags, counted, strict=True):
        if one.most is not None and count + more > one.most:
            return None
        found.append(min(count + more, one.fewest if one.most is None else one.most))
    return tuple(found)


class CountedArray:
    """The network of arrays of one shape: a state before each item, for each number of items and
    each number of those that are counted."""

    def __init__(
        self,
        shape: ArrayShape,
        brackets: Brackets,
        inside: SpellChild,
        tree: NameOrder | None,
        last: int,
    ) -> None:
        """last: the index of the last item, or of the one that may be repeated."""
        self.parts, self._brackets, self._shape = Assembly(), brackets, shape
        self._inside, self._tree, self._last = inside, tree, last
        none = (0,) * len(shape.counted)
        end, self.start = self.parts.state(), self.parts.state()
        self.parts.accept(end)
        self.ends = shape.fewest == 0 and enough(none, shape.counted)
        if self.ends:
            self.parts.put(self.start, brackets.empty, end)
        self._closing = self.parts.state()
        self.parts.put(self._closing, brackets.last, end)
        self._before: dict[tuple[int, Counts], int] = {}
        self._pending: list[tuple[int, Counts]] = []
        if shape.most != 0:
            self.parts.put(self.start, brackets.first, self._state(0, none))
        while self._pending:
            self._choose(*self._pending.pop())

    def _state(self, at: int, counts: Counts) -> int:
        key = (min(at, self._last), counts)
        if key not in self._before:
            if len(self._before) == MAX_STATES:
                raise BudgetExceededError("counts of items", MAX_STATES, _ADVICE)
            self._before[key] = self.parts.state()
            self._pending.append(key)
        return self._before[key]

    def _choose(self, at: int, counts: Counts) -> None:
        """Add the items that may follow."""
        check()
        shape = self._shape
        for values, flags in kinds(shape.item(at).values, shape.counted):
            after = added(counts, flags, shape.counted)
            spellings = self._inside(Child.of(values), self._tree)
            if after is None or spellings.is_empty:
                continue
            state = self.parts.state()
            spellings.put(self.parts, self._before[at, counts], state)
            if at + 1 >= shape.fewest and enough(after, shape.counted):
                self.parts.skip(state, self._closing)
                self.ends = True
            if at < self._last or shape.most is None:
                self.parts.put(state, self._brackets.between, self._state(at + 1, after))
