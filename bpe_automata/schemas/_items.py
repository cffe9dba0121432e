"""The nets of arrays: after each item, a comma or the end.

    Items           plain: a state is the count of items, as far as it matters
    DistinctItems   unique, out of a few values or a list of strings: a state is the set of those
                    seen so far
    ComparedItems   counted, by the sets that they are in: a state has the count of each set

Where items of some sets are counted, the values of an item are split into kinds, by the sets that
they are in. All states are visited to find the shortest ends, so their graph must be finite, and
one that is too large is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from operator import itemgetter, le

from bpe_automata._budget import check
from bpe_automata._sharing import cached
from bpe_automata.automata.part_tables import table_of
from bpe_automata.automata.parts import FAR, Continuation, Table
from bpe_automata.automata.rounds import Follow, Node, Repeat, Stack, continuations, length
from bpe_automata.errors import BudgetExceededError
from bpe_automata.schemas._nets import ITEM, Arrays, Choice, State
from bpe_automata.schemas._regularity import Kind, single_values, split_by
from bpe_automata.schemas._style import Piece
from bpe_automata.schemas._values import Values


class Items(Arrays):
    """The arrays of one shape."""

    @cached
    def _cap(self) -> int | None:
        """The count from which on one more item makes no difference; None if there is none."""
        least = max(len(self._shape.prefix), self._fewest)
        return least if self._most is None else None

    def following(self, state: State) -> Iterator[tuple[Repeat, State]]:
        """See `Arrays.following`."""
        (count,) = state
        if self._most is None or count < self._most:
            values = self._shape.item(count).values
            if self._linker.length(values) < FAR:
                after = count + 1 if self._cap is None else min(count + 1, self._cap)
                yield self._rule(values), (after,)

    def length_behind(self, state: State) -> int:
        """See `Container.length_behind`."""
        (count,), prefix = state, self._shape.prefix
        some = prefix[count : self._fewest]
        found = self._last + sum(self._length_with_comma(child.values) for child in some)
        others = self._fewest - max(count, len(prefix))
        if others > 0:
            found += others * self._length_with_comma(self._shape.rest.values)
        return min(found, FAR)

    def may_end(self, state: State) -> bool:
        """See `Container.may_end`."""
        return bool(state[0] >= self._fewest)


class DistinctItems(Arrays):
    """The arrays of one shape in which no value comes twice, and all are out of a few, or out of a
    list of strings. A state is the set of the values seen so far, as bits."""

    @cached
    def _values(self) -> list[tuple[int, list[tuple[Piece, ...]]]]:
        """(length, all texts) of each value that has a text, the shortest first."""
        single = single_values(self._shape) or []
        every = (self._linker.scalars(one, self.layout.inside) for one in single)
        found = ((min(map(length, texts), default=FAR), texts) for texts in every)
        return sorted((one for one in found if one[0] < FAR), key=itemgetter(0))

    def _remaining(self, state: State) -> Iterator[int]:
        """The numbers of the values that may come next, the shortest first."""
        (seen,) = state
        if self._most is None or seen.bit_count() < self._most:
            yield from (i for i in range(len(self._values)) if not seen >> i & 1)

    def item(self, state: State, far: int | None = None) -> Node:
        """See `Arrays.item`. All nodes share a table of all values."""
        far = self._shortest(state, max(1, self._missing(state))) if far is None else far
        return Choice(self._table, far, ITEM, partial(self._next, state))

    @cached
    def _table(self) -> Table:
        return table_of([(text, i) for i, (_, texts) in enumerate(self._values) for text in texts])

    def _next(self, state: State) -> tuple[dict[int, int], Follow]:
        """What may come in a state, see `Choice`."""
        after = {i: (state[0] | 1 << i,) for i in self._remaining(state)}
        far = {i: self.length_behind(one) for i, one in after.items()}

        def follow(stack: Stack, i: int) -> list[Continuation]:
            return continuations([(self.behind(after[i]), stack)])

        return {i: length for i, length in far.items() if length < FAR}, follow

    def may_end(self, state: State) -> bool:
        """See `Container.may_end`."""
        return bool(state[0].bit_count() >= self._fewest)

    def may_begin(self) -> bool:
        """See `Container.may_begin`."""
        return any(True for _ in self._remaining(self.begin))

    def length_behind(self, state: State) -> int:
        """See `Container.length_behind`."""
        missing = self._missing(state)
        return min(self._shortest(state, missing) + (self._between if missing else 0), FAR)

    def _missing(self, state: State) -> int:
        """How many items must still come."""
        return max(0, self._fewest - state[0].bit_count())

    def _shortest(self, state: State, items: int) -> int:
        """The length of the shortest text of so many more items and the end, without a comma before
        them."""
        some = [self._values[i][0] for i in islice(self._remaining(state), items)]
        between = self._between * max(0, items - 1)
        return self._last + sum(some) + between if len(some) == items else FAR


_MOST_STEPS = 100_000  # between all states of one shape
_ADVICE = "items of many kinds are counted: allow fewer items, or count fewer kinds"


class ComparedItems(Arrays):
    """The arrays of one shape. A state is a tuple: the number of items, then for each count the
    number of items that it counts, all as far as they matter."""

    @cached
    def begin(self) -> State:
        """See `Container`."""
        return (0,) * (1 + len(self._shape.counted))

    def may_end(self, state: State) -> bool:
        """See `Container.may_end`."""
        counts = zip(state[1:], self._shape.counted, strict=True)
        return self._fewest <= state[0] and all(one.fewest <= n for n, one in counts)

    def _kinds(self, at: int) -> list[Kind]:
        """The kinds of item `at`. Where no count has an upper bound, any value may go uncounted,
        since for some of their spellings it is undecided whether they count."""
        values, counts = self._shape.item(at).values, self._shape.counted
        parts = split_by(values, [one.wanted.values for one in counts])
        if all(one.most is None for one in counts):
            none = (False,) * len(counts)
            parts = [(values, none), *(part for part in parts if part[1] != none)]
        return parts

    @cached
    def _steps(self) -> dict[State, list[tuple[Values, State]]]:
        """For each reachable state, the items that may follow and the states behind them."""
        shape, counts = self._shape, self._shape.counted
        cap = 1 + max(len(shape.prefix), shape.fewest, -1 if shape.most is None else shape.most)
        kinds = [self._kinds(at) for at in range(1 + len(shape.prefix))]
        found, waiting, n = dict[State, list[tuple[Values, State]]](), [self.begin], 0
        for state in waiting:
            check()
            if state in found:
                continue
            found[state] = []
            if self._most is not None and state[0] >= self._most:
                continue
            for values, counted in kinds[min(state[0], len(shape.prefix))]:
                now = [
                    n + more if one.most is not None else min(n + more, one.fewest)
                    for n, more, one in zip(state[1:], counted, counts, strict=True)
                ]
                bounds = [one.fewest if one.most is None else one.most for one in counts]
                if all(map(le, now, bounds)):
                    found[state].append((values, (min(state[0] + 1, cap), *now)))
            waiting += [after for _, after in found[state]]
            n += len(found[state])
            if n > _MOST_STEPS:
                raise BudgetExceededError("counts of items", _MOST_STEPS, _ADVICE)
        return found

    def length_behind(self, state: State) -> int:
        """See `Container.length_behind`. That of `begin` is needed while the lengths of values
        still change, so it is computed anew each time; the others are cached."""
        return (self._all_lengths() if state == self.begin else self._lengths_behind)[state]

    def _all_lengths(self) -> dict[State, int]:
        """The length behind each state. Counts never fall, so each successor of a state is a
        greater tuple, or the same."""
        found: dict[State, int] = {}
        for state in sorted(self._steps, reverse=True):
            steps = self._steps[state]
            ways = [self._length_with_comma(v) + found[to] for v, to in steps if to != state]
            found[state] = self._last if self.may_end(state) else min(ways, default=FAR)
        return {state: min(length, FAR) for state, length in found.items()}

    @cached
    def _lengths_behind(self) -> dict[State, int]:
        return self._all_lengths()

    def following(self, state: State) -> Iterator[tuple[Repeat, State]]:
        """See `Arrays.following`."""
        for values, after in self._steps[state]:
            if self._linker.length(values) < FAR and self.length_behind(after) < FAR:
                yield self._rule(values), after
