"""Arrays in a linked automaton whose items matter beyond their place: those of some sets are
counted, shapes are subtracted, or items must differ and are of several sets.

The values of an item are taken apart into kinds, by all that is asked of them. A state says what
matters of the items so far, and the states are a graph, which is searched for the shortest ends: so
it is finite, and too large a one is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from bpe_automata._automata.part_tables import Alternative, labelled
from bpe_automata._automata.parts import FAR, Part, Place, length_of
from bpe_automata._budget import check
from bpe_automata._sharing import cached
from bpe_automata.errors import BudgetExceededError
from bpe_automata.schemas._apart import Name, kinds, single_values
from bpe_automata.schemas._entries import refuting
from bpe_automata.schemas._frames import (
    DONE,
    LONGER,
    ROOT,
    Choice,
    Frame,
    Linking,
    State,
    after_value,
    covers,
    rest_outside,
)
from bpe_automata.schemas._style import Brackets
from bpe_automata.schemas._values import ArrayShape, Counted, Term, Values

_MOST_STEPS = 100_000  # between all states of one term
_ADVICE = "items of many kinds or values are told apart and counted: allow fewer items, or values"


@dataclass(frozen=True, eq=False)
class _Kind:
    """Values of an item. value: a bit of its own, where items must differ; refuted: the subtracted
    shapes that an array with it is not of (bits); counted: by which counts."""

    values: Values
    value: int
    refuted: int
    counted: tuple[bool, ...]


class ComparedItems:
    """The arrays of one term. Labels of its parts: 0 for the end, 1 for another item.

    A state is a tuple: the number of items, as far as it matters; the values that were seen, where
    items must differ (bits); the subtracted shapes that no item has refuted (bits); and the number
    of items that each count counts, as far as it matters.
    """

    def __init__(self, term: Term[ArrayShape], brackets: Brackets, linker: Linking) -> None:
        self.brackets, self._linker = brackets, linker
        self._shape, self._minus = term.shape, term.minus
        self._counts = [one for shape in (term.shape, *term.minus) for one in shape.counted]
        none = (0,) * len(self._counts)
        self.begin: State = (0, 0, (1 << len(term.minus)) - 1, *none)
        self.pointer = term.shape.pointer
        self._parts: dict[State, Part] = {}
        self._bits: dict[Name, int] = {}
        self._kinds_at: dict[int, list[_Kind]] = {}
        self._last, self._between = length_of(brackets.last), length_of(brackets.between)
        # From that many items on, one more makes no difference.
        shapes = (term.shape, *term.minus)
        self._cap = max(
            max(len(one.prefix), one.fewest, -1 if one.most is None else one.most) + 1
            for one in shapes
        )

    def _kinds(self, at: int) -> list[_Kind]:
        """Of item `at`."""
        found = self._kinds_at.get(at)
        if found is None:
            needs = [shape.item(at) for shape in self._minus]
            found = self._kinds_at[at] = [
                _Kind(one, bit, refuted, counted)
                for some, refuted in refuting(self._shape.item(at), needs)
                for part, counted in kinds(some, tuple(self._counts))
                for one, bit in self._apart(part)
            ]
        return found

    def _apart(self, values: Values) -> list[tuple[Values, int]]:
        """Each value and its bit, where items must differ."""
        if not self._shape.unique:
            return [(values, 0)]
        found = single_values(values)
        return [
            (one, 1 << self._bits.setdefault(name, len(self._bits))) for name, one in found.items()
        ]

    def _after(self, state: State, kind: _Kind) -> State:
        at, seen, left, *counts = state
        now = (
            min(n + more, one.fewest if one.most is None else one.most + 1)
            for n, more, one in zip(counts, kind.counted, self._counts, strict=True)
        )
        return (min(at + 1, self._cap), seen | kind.value, left & ~kind.refuted, *now)

    def may_end(self, state: State) -> bool:
        """See `Container.may_end`."""
        _, _, left, *counts = state
        n = len(self._shape.counted)
        if not _fits(self._shape, state[0], counts[:n]):
            return False
        for i, shape in enumerate(self._minus):
            of, n = counts[n : n + len(shape.counted)], n + len(shape.counted)
            if left >> i & 1 and _fits(shape, state[0], of):
                return False
        return True

    @cached
    def _steps(self) -> dict[State, list[tuple[_Kind, State]]]:
        """Of each state that some items lead to, the items that may follow."""
        found, waiting, n = dict[State, list[tuple[_Kind, State]]](), [self.begin], 0
        own = range(len(self._shape.counted))
        while waiting:
            check()
            state = waiting.pop()
            if state in found:
                continue
            found[state] = []
            if self._shape.most is not None and state[0] >= self._shape.most:
                continue
            for kind in self._kinds(state[0]):
                after = self._after(state, kind)
                over = any(_is_over(self._counts[i], after[3 + i]) for i in own)
                if not over and not state[1] & kind.value:
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

    def _length_of(self, values: Values, known: dict[int, int] | None) -> int:
        value = self._linker.least(values) if known is None else known[id(values)]
        return min(self._between + value, FAR)

    @cached
    def _nearest(self) -> dict[State, int]:
        return self._closings(None)

    def closing(self, state: State) -> int:
        """See `Container.closing`."""
        return self._nearest.get(state, FAR)

    def needed(self) -> list[Values]:
        """See `Container.needed`."""
        found = {id(kind.values): kind.values for of in self._steps.values() for kind, _ in of}
        return list(found.values())

    def measured(self, known: dict[int, int] | None) -> int:
        """See `Container.measured`."""
        if self.may_be_empty:
            return length_of(self.brackets.empty)
        nearest = self._nearest if known is None else self._closings(known)
        closing = nearest.get(self.begin, FAR)
        return FAR if closing >= FAR else closing - self._between + length_of(self.brackets.first)

    @property
    def may_be_empty(self) -> bool:
        """Is [] one of them?"""
        return self.may_end(self.begin)

    def opening(self) -> int:
        """See `Container.opening`."""
        if self.may_be_empty:
            return LONGER if self._steps[self.begin] else FAR
        closing = self.closing(self.begin)
        return FAR if closing >= FAR else closing - self._between

    def _following(self, state: State) -> Iterator[tuple[Values, State]]:
        """The items that may come next, and the states after them."""
        for kind, after in self._steps[state]:
            if self._linker.least(kind.values) < FAR and self.closing(after) < FAR:
                yield kind.values, after

    def choices(self, state: State) -> Iterator[Choice]:
        """See `Container.choices`."""
        return ((b"", values, after) for values, after in self._following(state))

    def covers(self, state: State, other: State) -> bool:
        """See `Container.covers`: one of which nothing is asked that is not asked of the other."""
        same = state[:2] == other[:2] and state[3:] == other[3:]
        return same and not state[2] & ~other[2]

    def entered(self, frame: Frame) -> Iterable[Place]:
        """What follows the first bracket."""
        return self._items(self.begin, frame)

    def _items(self, state: State, outside: Frame) -> Iterable[Place]:
        """The items that may come next."""
        for values, after in self._following(state):
            inside = self._linker.frame(self, after, outside)
            yield self._linker.part(values, self.brackets.inside), inside

    def after(self, state: State) -> Part:
        """What follows an item."""
        found = self._parts.get(state)
        if found is None:
            found = self._parts[state] = self._made(state)
        return found

    def _made(self, state: State) -> Part:
        alternatives: list[Alternative] = []
        costs = dict[int, int]()
        if self.may_end(state):
            alternatives.append(((self.brackets.last,), DONE))
            costs[DONE] = 0
        following = self._following(state)
        items = [self._linker.least(values) + self.closing(after) for values, after in following]
        if items:
            alternatives.append(((self.brackets.between,), 1))
            costs[1] = min(*items, FAR)

        def follow(frame: Frame, label: int) -> Iterable[Place]:
            outside = frame.parent or ROOT
            return after_value(outside) if label == DONE else self._items(state, outside)

        return labelled(alternatives, costs, follow, rest_outside, self, covers)


def _fits(shape: ArrayShape, items: int, counts: list[int]) -> bool:
    """Do the numbers of items fit?"""
    return (
        items >= shape.fewest
        and (shape.most is None or items <= shape.most)
        and not any(
            n < one.fewest or _is_over(one, n) for n, one in zip(counts, shape.counted, strict=True)
        )
    )


def _is_over(counted: Counted, n: int) -> bool:
    return counted.most is not None and n > counted.most
