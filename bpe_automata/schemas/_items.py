"""The nets of arrays: after each item, a comma or the end.

    Items           plain: a state is the count of items, as far as it matters
    DistinctItems   unique, out of a few values or a list of strings: the set of those seen
    ComparedItems   counted, by the sets that they are in: the count of each

Where items of some sets are counted, values of an item are taken apart into kinds, by the sets that
they are in. The states are a graph, which is searched for the shortest ends: so it is finite, and
too large a one is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import islice
from operator import itemgetter

from bpe_automata._automata.part_tables import table_of
from bpe_automata._automata.parts import FAR, Place, Table
from bpe_automata._automata.rounds import Follow, Node, Repeat, Stack, length, places
from bpe_automata._budget import check
from bpe_automata._sharing import cached
from bpe_automata.errors import BudgetExceededError
from bpe_automata.schemas._few_values import apart, single_values
from bpe_automata.schemas._nets import ITEM, Choice, Linking, Separated, State
from bpe_automata.schemas._style import Brackets, Piece
from bpe_automata.schemas._values import ArrayShape, Counted, Values


class Items(Separated):
    """The arrays of one shape."""

    def __init__(
        self, shape: ArrayShape, brackets: Brackets, linker: Linking, depth: int | None
    ) -> None:
        super().__init__(shape, (0,), brackets, linker, depth)
        self._shape = shape
        # From that many items on, one more makes no difference.
        least = max(len(shape.prefix), shape.fewest)
        self._cap = None if shape.most is not None else least

    def following(self, state: State) -> Iterator[tuple[Repeat, State]]:
        """See `Separated.following`."""
        (count,) = state
        if self._most is None or count < self._most:
            values = self._shape.item(count).values
            if self._linker.least(values) < FAR:
                after = count + 1 if self._cap is None else min(count + 1, self._cap)
                yield self._rule(values), (after,)

    def closing(self, state: State) -> int:
        """See `Container.closing`."""
        (count,), prefix = state, self._shape.prefix
        some = prefix[count : self._fewest]
        found = self._last + sum(self._length_of(child.values) for child in some)
        others = self._fewest - max(count, len(prefix))
        if others > 0:
            found += others * self._length_of(self._shape.rest.values)
        return min(found, FAR)

    def may_end(self, state: State) -> bool:
        """See `Container.may_end`."""
        return bool(state[0] >= self._fewest)


class DistinctItems(Separated):
    """The arrays of one shape in which no value comes twice, out of a few, or out of a list of
    strings. Their states are sets of the values that were seen, as bits."""

    def __init__(
        self, shape: ArrayShape, brackets: Brackets, linker: Linking, depth: int | None
    ) -> None:
        super().__init__(shape, (0,), brackets, linker, depth)
        self._shape = shape

    @cached
    def _values(self) -> list[tuple[int, list[tuple[Piece, ...]]]]:
        """(length of the shortest text, all texts) of each value that has a text, the shortest
        first."""
        single = single_values(self._shape) or []
        every = (self._linker.scalars(one, self.brackets.inside) for one in single)
        found = ((min(map(length, texts), default=FAR), texts) for texts in every)
        return sorted((one for one in found if one[0] < FAR), key=itemgetter(0))

    def _left(self, state: State) -> Iterator[int]:
        """The numbers of the values that may come next, the shortest first."""
        (seen,) = state
        if self._most is None or seen.bit_count() < self._most:
            yield from (i for i in range(len(self._values)) if not seen >> i & 1)

    def item(self, state: State, far: int | None = None) -> Node:
        """See `Separated.item`: the parts share a table of all values."""
        far = self._shortest(state, max(1, self._missing(state))) if far is None else far
        return Choice(self._table, far, ITEM, partial(self._next, state))

    @cached
    def _table(self) -> Table:
        return table_of([(text, i) for i, (_, texts) in enumerate(self._values) for text in texts])

    def _next(self, state: State) -> tuple[dict[int, int], Follow]:
        """What may come in a state, see `Choice`."""
        after = {i: (state[0] | 1 << i,) for i in self._left(state)}
        far = {i: self.closing(one) for i, one in after.items()}

        def follow(stack: Stack, i: int) -> list[Place]:
            return places([(self.behind(after[i]), stack)])

        return {i: length for i, length in far.items() if length < FAR}, follow

    def may_end(self, state: State) -> bool:
        """See `Container.may_end`."""
        return bool(state[0].bit_count() >= self._fewest)

    def _may_begin(self) -> bool:
        return next(self._left(self.begin), None) is not None

    def closing(self, state: State) -> int:
        """See `Container.closing`."""
        missing = self._missing(state)
        return min(self._shortest(state, missing) + (self._between if missing else 0), FAR)

    def _missing(self, state: State) -> int:
        """How many items must still come."""
        return max(0, self._fewest - state[0].bit_count())

    def _shortest(self, state: State, items: int) -> int:
        """Length of so many more items, without a comma before them, and the end."""
        some = [self._values[i][0] for i in islice(self._left(state), items)]
        between = self._between * max(0, items - 1)
        return self._last + sum(some) + between if len(some) == items else FAR


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

    def __init__(
        self, shape: ArrayShape, brackets: Brackets, linker: Linking, depth: int | None
    ) -> None:
        self._shape, self._counts = shape, shape.counted
        super().__init__(shape, (0,) * (1 + len(shape.counted)), brackets, linker, depth)
        self._kinds_at: dict[int, list[_Kind]] = {}
        self._found: tuple[tuple[int, ...], dict[State, int]] = (), {}
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

    def _nearest(self) -> dict[State, int]:
        """Length of the shortest text from the end of an item to that of the array, of each state
        from which there is one."""
        of = {id(kind): self._length_of(kind.values) for kind in self._all_kinds}
        lengths = tuple(of.values())  # which fall, while those of recursive schemas are found
        if self._found[0] == lengths:
            return self._found[1]
        before: dict[State, list[tuple[int, State]]] = {}
        for state, steps in self._steps.items():
            for kind, after in steps:
                before.setdefault(after, []).append((of[id(kind)], state))
        nearest = [(self._last, state) for state in self._steps if self.may_end(state)]
        heapify(nearest)
        found: dict[State, int] = {}
        while nearest:
            far, state = heappop(nearest)
            if state not in found:
                found[state] = far
                for more, earlier in before.get(state, ()):
                    if more < FAR and earlier not in found:
                        heappush(nearest, (min(far + more, FAR), earlier))
        self._found = lengths, found
        return found

    @cached
    def _all_kinds(self) -> list[_Kind]:
        kinds = {id(kind): kind for steps in self._steps.values() for kind, _ in steps}
        return list(kinds.values())

    def closing(self, state: State) -> int:
        """See `Container.closing`."""
        return self._nearest().get(state, FAR)

    def _may_begin(self) -> bool:
        return bool(self._steps[self.begin])

    def following(self, state: State) -> Iterator[tuple[Repeat, State]]:
        """See `Separated.following`."""
        for kind, after in self._steps[state]:
            if self._linker.least(kind.values) < FAR and self.closing(after) < FAR:
                yield self._rule(kind.values), after


def _is_over(counted: Counted, n: int) -> bool:
    return counted.most is not None and n > counted.most
