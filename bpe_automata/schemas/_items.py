"""Arrays in a linked automaton: after each item, a comma or the end.

There is one part for each count of items that matters; or, where items must differ and are out of a
few values, for each set of them: see `_linking`. Where those of some sets are counted, values of an
item are taken apart into kinds, by the sets that they are in. A state says what matters of the
items so far, and the states are a graph, which is searched for the shortest ends: so it is finite,
and too large a one is refused.

    Items           plain
    DistinctItems   unique, out of a few values or a list of strings
    ComparedItems   counted, by the sets that they are in
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import islice

import numpy as np

from bpe_automata._automata.part_tables import table_of
from bpe_automata._automata.parts import FAR, Part, Place, Table
from bpe_automata._budget import check
from bpe_automata._sharing import cached
from bpe_automata.errors import BudgetExceededError
from bpe_automata.schemas._few_values import apart, single_values
from bpe_automata.schemas._frames import (
    ROOT,
    Frame,
    Linking,
    Separated,
    State,
    Text,
    after_value,
    covers,
    rest_outside,
)
from bpe_automata.schemas._style import Brackets
from bpe_automata.schemas._values import ArrayShape, Counted, Values


class Items(Separated):
    """The arrays of one shape."""

    def __init__(self, shape: ArrayShape, brackets: Brackets, linker: Linking) -> None:
        super().__init__(shape, (0,), brackets, linker)
        self._shape = shape
        # From that many items on, one more makes no difference.
        least = max(len(shape.prefix), shape.fewest)
        self._cap = None if shape.most is not None else least

    def _after(self, count: int) -> State:
        return (count if self._cap is None else min(count, self._cap),)

    def _following(self, state: State) -> Iterator[tuple[Values, State]]:
        """See `Separated._following`."""
        count = state[0]
        if self._most is None or count < self._most:
            values = self._shape.item(count).values
            if self._linker.least(values) < FAR:
                yield values, self._after(count + 1)

    def _closing(self, state: State, known: dict[int, int] | None) -> int:
        prefix, count = self._shape.prefix, state[0]
        some = prefix[count : self._fewest]
        length = self._last + sum(self._length_of(child.values, known) for child in some)
        others = self._fewest - max(count, len(prefix))
        if others > 0:
            length += others * self._length_of(self._shape.rest.values, known)
        return min(length, FAR)

    def needed(self) -> list[Values]:
        """See `Container.needed`."""
        some = [child.values for child in self._shape.prefix[: self._fewest]]
        return [*some, self._shape.rest.values] if self._fewest > len(some) else some

    def may_end(self, state: State) -> bool:
        """See `Container.may_end`."""
        return state[0] >= self._fewest


class DistinctItems(Separated):
    """The arrays of one shape in which no value comes twice, out of a few, or out of a list of
    strings. Their states are sets of the values that were seen, as bits. All items share one table,
    with an exit for each value, of which the number is the label."""

    def __init__(self, shape: ArrayShape, brackets: Brackets, linker: Linking) -> None:
        super().__init__(shape, (0,), brackets, linker)
        self._rest = shape.rest.values
        self._part_at: dict[State, Part] = {}

    @cached
    def _values(self) -> list[Values]:
        """A set for each value."""
        return single_values(self._rest)

    @cached
    def _texts(self) -> list[list[Text]]:
        """Of each value."""
        return [self._linker.scalars(one, self.brackets.inside) for one in self._values]

    @cached
    def _lengths(self) -> list[int]:
        return [self._linker.least(one) for one in self._values]

    @cached
    def _shortest_first(self) -> list[int]:
        """The numbers of the values that have a text."""
        some = (i for i, length in enumerate(self._lengths) if length < FAR)
        return sorted(some, key=self._lengths.__getitem__)

    @cached
    def _most_values(self) -> int:
        n = len(self._shortest_first)
        return n if self._most is None else min(n, self._most)

    def _left(self, state: State) -> Iterator[int]:
        """The numbers of the values that may come next, the shortest first."""
        seen = state[0]
        if seen.bit_count() < self._most_values:
            yield from (i for i in self._shortest_first if not seen >> i & 1)

    def _following(self, state: State) -> Iterator[tuple[Values, State]]:
        """See `Separated._following`."""
        return ((self._values[i], (state[0] | 1 << i,)) for i in self._left(state))

    def may_end(self, state: State) -> bool:
        """See `Container.may_end`."""
        return state[0].bit_count() >= self._fewest

    def _may_begin(self) -> bool:
        return self._most_values > 0

    def _shortest(self, state: State, items: int) -> int:
        """Length of so many more items, without a comma before them, and the end."""
        if self._fewest > self._most_values:
            return FAR
        lengths = sum(self._lengths[i] for i in islice(self._left(state), items))
        return min(self._last + lengths + max(0, items - 1) * self._between, FAR)

    def _closing(self, state: State, known: dict[int, int] | None) -> int:
        missing = max(0, self._fewest - state[0].bit_count())
        return min(self._shortest(state, missing) + (self._between if missing else 0), FAR)

    def _cost_of_next(self, state: State) -> int | None:
        """See `Separated._cost_of_next`."""
        missing = max(1, self._fewest - state[0].bit_count())
        return None if next(self._left(state), None) is None else self._shortest(state, missing)

    def needed(self) -> list[Values]:
        """See `Container.needed`: the lengths of single values depend on no other set."""
        return []

    def _items(self, state: State, outside: Frame) -> Iterable[Place]:
        """See `Separated._items`."""
        if state not in self._part_at:
            self._part_at[state] = self._item_part(state)
        return ((self._part_at[state], self._linker.frame(self, state, outside)),)

    @cached
    def _table(self) -> Table:
        texts = enumerate(self._texts)
        return table_of([(text, i) for i, some in texts for text in some])

    def _item_part(self, state: State) -> Part:
        seen, left = state[0], list(self._left(state))
        later = max(0, self._fewest - seen.bit_count() - 1)  # items that must come behind it
        rest = self._shortest(state, later + 1)
        longest = self._lengths[left[min(later, len(left) - 1)]]  # of those that `rest` counts
        costs = np.full(len(self._values), FAR)
        for i in left:
            # `rest` counts the shortest values: this one's length is taken out if it is one of
            # them, else that of the longest, which it replaces. Texts are in the table themselves.
            costs[i] = rest - min(self._lengths[i], longest)

        def follow(frame: Frame, label: int) -> Iterable[Place]:
            if costs[label] >= FAR:
                return ()
            return after_value(self._linker.frame(self, (seen | 1 << label,), frame.parent or ROOT))

        given = self._table, self._table.far(costs), follow, rest_outside, self._linker.joined
        return Part(*given, family=self, covers=covers)


_MOST_STEPS = 100_000  # between all states of one shape
_ADVICE = "items of many kinds are counted: allow fewer items, or count fewer kinds"


@dataclass(frozen=True, eq=False)
class _Kind:
    """Values of an item. counted: by which counts."""

    values: Values
    counted: tuple[bool, ...]


class ComparedItems(Separated):
    """The arrays of one shape. A state is a tuple: the number of items, then the number of those
    that each count counts, all as far as they matter."""

    def __init__(self, shape: ArrayShape, brackets: Brackets, linker: Linking) -> None:
        self._shape, self._counts = shape, shape.counted
        super().__init__(shape, (0,) * (1 + len(shape.counted)), brackets, linker)
        self._kinds_at: dict[int, list[_Kind]] = {}
        # From that many items on, one more makes no difference.
        most = -1 if shape.most is None else shape.most
        self._cap = max(len(shape.prefix), shape.fewest, most) + 1

    def _kinds(self, at: int) -> list[_Kind]:
        """Of item `at`. Where no count has a bound above, all values may go uncounted, for some of
        their spellings it is not decided whether they are."""
        found = self._kinds_at.get(at)
        if found is None:
            values, none = self._shape.item(at).values, (False,) * len(self._counts)
            parts = apart(values, [one.wanted.values for one in self._counts])
            if all(one.most is None for one in self._counts):
                parts = [(values, none), *(part for part in parts if part[1] != none)]
            found = self._kinds_at[at] = [_Kind(part, counted) for part, counted in parts]
        return found

    def _after(self, state: State, kind: _Kind) -> State:
        at, *counts = state
        now = (
            min(n + more, one.fewest if one.most is None else one.most + 1)
            for n, more, one in zip(counts, kind.counted, self._counts, strict=True)
        )
        return (min(at + 1, self._cap), *now)

    def may_end(self, state: State) -> bool:
        """See `Container.may_end`."""
        items, *counts = state
        return (
            items >= self._fewest
            and (self._most is None or items <= self._most)
            and not any(
                n < one.fewest or _is_over(one, n)
                for n, one in zip(counts, self._counts, strict=True)
            )
        )

    @cached
    def _steps(self) -> dict[State, list[tuple[_Kind, State]]]:
        """Of each state that some items lead to, the items that may follow."""
        found, waiting, n = dict[State, list[tuple[_Kind, State]]](), [self.begin], 0
        while waiting:
            check()
            state = waiting.pop()
            if state in found:
                continue
            found[state] = []
            if self._most is not None and state[0] >= self._most:
                continue
            for kind in self._kinds(state[0]):
                after = self._after(state, kind)
                over = any(map(_is_over, self._counts, after[1:]))
                if not over:
                    found[state].append((kind, after))
                    waiting.append(after)
            n += len(found[state])
            if n > _MOST_STEPS:
                raise BudgetExceededError("counts of items", _MOST_STEPS, _ADVICE)
        return found

    def _closings(self, known: dict[int, int] | None) -> dict[State, int]:
        """Length of the shortest text from the end of an item to that of the array, of each state
        from which there is one, by the lengths of values where these are not known yet."""
        before: dict[State, list[tuple[int, State]]] = {}
        for state, steps in self._steps.items():
            for kind, after in steps:
                before.setdefault(after, []).append((self._length_of(kind.values, known), state))
        nearest = [(self._last, state) for state in self._steps if self.may_end(state)]
        heapify(nearest)
        found: dict[State, int] = {}
        while nearest:
            length, state = heappop(nearest)
            if state not in found:
                found[state] = length
                for more, earlier in before.get(state, ()):
                    if more < FAR and earlier not in found:
                        heappush(nearest, (min(length + more, FAR), earlier))
        return found

    @cached
    def _nearest(self) -> dict[State, int]:
        return self._closings(None)

    def _closing(self, state: State, known: dict[int, int] | None) -> int:
        nearest = self._nearest if known is None else self._closings(known)
        return nearest.get(state, FAR)

    def needed(self) -> list[Values]:
        """See `Container.needed`."""
        found = {id(kind.values): kind.values for of in self._steps.values() for kind, _ in of}
        return list(found.values())

    def _may_begin(self) -> bool:
        return bool(self._steps[self.begin])

    def _following(self, state: State) -> Iterator[tuple[Values, State]]:
        """See `Separated._following`."""
        for kind, after in self._steps[state]:
            if self._linker.least(kind.values) < FAR and self.closing(after) < FAR:
                yield kind.values, after


def _is_over(counted: Counted, n: int) -> bool:
    return counted.most is not None and n > counted.most
