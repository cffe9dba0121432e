"""Arrays in a linked automaton: after each item, a comma or the end.

There is one part for each count of items that matters; or, where items must differ and are out of a
few values, for each set of them: see `_linking`.
"""

from __future__ import annotations

from collections.abc import Iterable

from bpe_automata._automata.part_tables import Alternative, labelled, table_of
from bpe_automata._automata.parts import FAR, Part, Place, Table, length_of
from bpe_automata._sharing import cached
from bpe_automata.schemas._apart import single_values
from bpe_automata.schemas._frames import (
    DONE,
    LONGER,
    ROOT,
    Choice,
    Frame,
    Linking,
    State,
    Text,
    after_value,
    covers,
    rest_outside,
)
from bpe_automata.schemas._style import Brackets, Piece
from bpe_automata.schemas._values import ArrayShape, Child, Term, Values


class Items:
    """The arrays of one term. Labels of its parts: 0 for the end, 1 for another item."""

    def __init__(self, term: Term[ArrayShape], brackets: Brackets, linker: Linking) -> None:
        self.brackets, self._shape, self._linker = brackets, term.shape, linker
        self.begin: State = (0,)
        self.pointer = term.shape.pointer
        self._parts: dict[int, Part] = {}
        self._last, self._between = length_of(brackets.last), length_of(brackets.between)
        # From that many items on, one more makes no difference.
        least = max(len(term.shape.prefix), term.shape.fewest)
        self._cap = None if term.shape.most is not None else least

    def _after(self, count: int) -> State:
        return (count if self._cap is None else min(count, self._cap),)

    def _may_follow(self, count: int) -> bool:
        """May there be one more than so many items?"""
        most, child = self._shape.most, self._shape.item(count)
        return (most is None or count < most) and self._linker.least(child.values) < FAR

    def closing(self, state: State) -> int:
        """Length of the shortest text from the end of an item to that of the array."""
        return self._closing(state[0], None)

    def _closing(self, count: int, known: dict[int, int] | None) -> int:
        prefix = range(count, min(self._shape.fewest, len(self._shape.prefix)))
        length = self._last + sum(self._length_of(self._shape.prefix[i], known) for i in prefix)
        others = self._shape.fewest - max(count, len(self._shape.prefix))
        if others > 0:
            length += others * self._length_of(self._shape.rest, known)
        return min(length, FAR)

    def _length_of(self, child: Child, known: dict[int, int] | None) -> int:
        value = self._linker.least(child.values) if known is None else known[id(child.values)]
        return min(self._between + value, FAR)

    def needed(self) -> list[Values]:
        """See `Container.needed`."""
        some = [child.values for child in self._shape.prefix[: self._shape.fewest]]
        return [*some, self._shape.rest.values] if self._shape.fewest > len(some) else some

    def measured(self, known: dict[int, int] | None) -> int:
        """See `Container.measured`."""
        if self._shape.most is not None and self._shape.fewest > self._shape.most:
            return FAR
        if self.may_be_empty:
            return length_of(self.brackets.empty)
        closing = self._closing(0, known)
        if closing >= FAR:
            return FAR
        return closing - self._between + length_of(self.brackets.first)

    @property
    def may_be_empty(self) -> bool:
        """Is [] one of them?"""
        return self._shape.fewest == 0

    def opening(self) -> int:
        """See `Container.opening`."""
        if self.may_be_empty:
            return LONGER if self._shape.most != 0 else FAR
        first = self._linker.least(self._shape.item(0).values)
        return min(first + self._closing(1, None), FAR)

    def choices(self, state: State) -> Iterable[Choice]:
        """See `Container.choices`."""
        count = state[0]
        if self._may_follow(count):
            yield b"", self._shape.item(count).values, self._after(count + 1)

    def may_end(self, state: State) -> bool:
        """See `Container.may_end`."""
        return state[0] >= self._shape.fewest

    def covers(self, state: State, other: State) -> bool:
        """See `Container.covers`."""
        return state == other

    def entered(self, frame: Frame) -> Iterable[Place]:
        """What follows the first bracket."""
        return (self._item(0, frame),) if self._may_follow(0) else ()

    def after(self, state: State) -> Part:
        """What follows an item."""
        count = state[0]
        found = self._parts.get(count)
        if found is None:
            found = self._parts[count] = self._made(count)
        return found

    def _item(self, count: int, outside: Frame) -> Place:
        """The next item after so many, and its context."""
        inside = self._linker.frame(self, self._after(count + 1), outside)
        values = self._shape.item(count).values
        return self._linker.part(values, self.brackets.inside), inside

    def _made(self, count: int) -> Part:
        alternatives: list[Alternative] = []
        costs = dict[int, int]()
        if self.may_end((count,)):
            alternatives.append(((self.brackets.last,), DONE))
            costs[DONE] = 0
        if self._may_follow(count):
            alternatives.append(((self.brackets.between,), 1))
            item = self._linker.least(self._shape.item(count).values)
            costs[1] = min(item + self._closing(self._after(count + 1)[0], None), FAR)

        def follow(frame: Frame, label: int) -> Iterable[Place]:
            outside = frame.parent or ROOT
            return after_value(outside) if label == DONE else (self._item(count, outside),)

        return labelled(alternatives, costs, follow, rest_outside, self, covers)


class DistinctItems:
    """The arrays of one term in which no value comes twice, out of a few. Their states are sets of
    the values that were seen, as bits. Labels of its parts: 0 for the end, 1 + i for value i."""

    def __init__(self, term: Term[ArrayShape], brackets: Brackets, linker: Linking) -> None:
        self.brackets, self._shape, self._linker = brackets, term.shape, linker
        self.begin: State = (0,)
        self.pointer = term.shape.pointer
        self._parts: dict[tuple[int, bool], Part] = {}
        self._last, self._between = length_of(brackets.last), length_of(brackets.between)

    @cached
    def _items(self) -> list[Values]:
        """A set for each value."""
        return list(single_values(self._shape.rest.values).values())

    @cached
    def _texts(self) -> list[list[Text]]:
        """Of each value; none of an array or an object, which is a part of its own."""
        return [self._linker.scalars(one, self.brackets.inside) for one in self._items]

    @cached
    def _lengths(self) -> list[int]:
        return [self._linker.least(one) for one in self._items]

    @cached
    def _most(self) -> int:
        n, most = sum(length < FAR for length in self._lengths), self._shape.most
        return n if most is None else min(n, most)

    def closing(self, state: State) -> int:
        """Length of the shortest text from the end of an item to that of the array."""
        return self._closing(state[0])

    def _closing(self, seen: int) -> int:
        missing = self._shape.fewest - seen.bit_count()
        if missing <= 0:
            return self._last
        if self._shape.fewest > self._most:
            return FAR
        left = sorted(length for i, length in enumerate(self._lengths) if not seen >> i & 1)
        return min(self._last + sum(left[:missing]) + missing * self._between, FAR)

    def needed(self) -> list[Values]:
        """See `Container.needed`: the lengths of single values depend on no other set."""
        return []

    def measured(self, known: dict[int, int] | None) -> int:
        """See `Container.measured`."""
        if self.may_be_empty:
            return length_of(self.brackets.empty)
        opening = self._shortest_opening()
        return FAR if opening >= FAR else opening + length_of(self.brackets.first)

    @property
    def may_be_empty(self) -> bool:
        """Is [] one of them?"""
        return self._shape.fewest == 0

    def opening(self) -> int:
        """See `Container.opening`."""
        if not self._most:
            return FAR
        return LONGER if self.may_be_empty else self._shortest_opening()

    def _shortest_opening(self) -> int:
        closing = self._closing(0)
        return FAR if closing >= FAR else closing - self._between

    def choices(self, state: State) -> Iterable[Choice]:
        """See `Container.choices`."""
        seen = state[0]
        for i, one in enumerate(self._items if seen.bit_count() < self._most else ()):
            if not seen >> i & 1 and self._lengths[i] < FAR:
                yield b"", one, (seen | 1 << i,)

    def may_end(self, state: State) -> bool:
        """See `Container.may_end`."""
        return state[0].bit_count() >= self._shape.fewest

    def covers(self, state: State, other: State) -> bool:
        """See `Container.covers`."""
        return state == other

    def entered(self, frame: Frame) -> Iterable[Place]:
        """What follows the first bracket."""
        return ((self._part(0, is_first=True), self._linker.frame(self, self.begin, frame)),)

    def after(self, state: State) -> Part:
        """What follows an item."""
        return self._part(state[0], is_first=False)

    def _part(self, seen: int, is_first: bool) -> Part:
        key = seen, is_first
        found = self._parts.get(key)
        if found is None:
            found = self._parts[key] = self._made(seen, is_first)
        return found

    @cached
    def _first_table(self) -> Table:
        return self._table_behind(())

    @cached
    def _next_table(self) -> Table:
        return self._table_behind((self.brackets.between,))

    def _table_behind(self, before: tuple[Piece, ...]) -> Table:
        alternatives: list[Alternative] = [((self.brackets.last,), DONE)] if before else []
        for label, texts in enumerate(self._texts, 1):
            alternatives += [((*before, *text), label) for text in texts] or [(before, label)]
        return table_of(alternatives)

    def _made(self, seen: int, is_first: bool) -> Part:
        costs = dict.fromkeys(range(1 + len(self._items)), FAR)
        if seen.bit_count() < self._most:
            for i in range(len(self._items)):
                if not seen >> i & 1 and self._lengths[i] < FAR:
                    own = 0 if self._texts[i] else self._lengths[i]  # of what follows the exit
                    costs[1 + i] = min(own + self._closing(seen | 1 << i), FAR)
        if not is_first and self.may_end((seen,)):
            costs[DONE] = 0

        def follow(frame: Frame, label: int) -> Iterable[Place]:
            if costs[label] >= FAR:
                return ()
            outside = frame.parent or ROOT
            if label == DONE:
                return after_value(outside)
            state = (seen | 1 << (label - 1),)
            inside = self._linker.frame(self, state, outside)
            if self._texts[label - 1]:
                return ((self.after(state), inside),)
            value = self._items[label - 1]
            return ((self._linker.part(value, self.brackets.inside), inside),)

        table = self._first_table if is_first else self._next_table
        return Part(table, table.far(costs), follow, rest_outside, family=self, covers=covers)
