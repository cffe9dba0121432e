"""The two ways in which a linked automaton reads the members or items of one term."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence

from bpe_automata._automata.part_tables import Alternative, labelled
from bpe_automata._automata.parts import FAR, Part, Place, Table
from bpe_automata._sharing import cached
from bpe_automata.schemas._frames import (
    DONE,
    ROOT,
    Choice,
    Container,
    Frame,
    State,
    after_value,
    covers,
    rest_outside,
)
from bpe_automata.schemas._style import Piece
from bpe_automata.schemas._values import Values


class Separated(Container):
    """Parts that read a comma or the last bracket; the items are parts of their own. Labels: 0 for
    the end, 1 for another item."""

    @abstractmethod
    def _following(self, state: State) -> Iterable[tuple[Values, State]]:
        """The items that may come next, and the states after them."""

    def choices(self, state: State) -> Iterable[Choice]:
        """See `Container.choices`."""
        return ((b"", values, after) for values, after in self._following(state))

    def entered(self, frame: Frame) -> Iterable[Place]:
        """What follows the first bracket."""
        return self._items(self.begin, frame)

    def _items(self, state: State, outside: Frame) -> Iterable[Place]:
        for values, after in self._following(state):
            inside = self._linker.frame(self, after, outside)
            yield self._linker.part(values, self.brackets.inside), inside

    def _cost_of_next(self, state: State) -> int | None:
        """Length from another item to the end, FAR where it has none; None where none may come."""
        following = self._following(state)
        items = [self._linker.least(values) + self.closing(after) for values, after in following]
        return min(*items, FAR) if items else None

    def _made(self, state: State) -> Part:
        alternatives: list[Alternative] = []
        costs = dict[int, int]()
        if self.may_end(state):
            alternatives.append(((self.brackets.last,), DONE))
            costs[DONE] = 0
        next_costs = self._cost_of_next(state)
        if next_costs is not None:
            alternatives.append(((self.brackets.between,), 1))
            costs[1] = next_costs

        def follow(frame: Frame, label: int) -> Iterable[Place]:
            outside = frame.parent or ROOT
            return after_value(outside) if label == DONE else self._items(state, outside)

        joined = self._linker.joined
        return labelled(alternatives, costs, follow, rest_outside, joined, self, covers)


class Tabled(Container):
    """Parts that share two tables, of the first member or item and of those behind a comma, with
    all that may come anywhere: so they may come in any order. What may not come in a state costs
    FAR, and so is not in its part. Labels: 0 for the end, 1 + i for what has the number i."""

    @property
    @abstractmethod
    def _values(self) -> Sequence[Values]:
        """By number."""

    @abstractmethod
    def options(self, state: State) -> tuple[dict[int, int], Callable[[int], State]]:
        """(by the number of what may come next, `closing` of the state after it; that state, asked
        for when it is entered)."""

    @abstractmethod
    def _table_behind(self, before: tuple[Piece, ...]) -> Table:
        """All that may come behind a text, and the last bracket where there is a text."""

    @cached
    def _first_table(self) -> Table:
        return self._table_behind(())

    @cached
    def _next_table(self) -> Table:
        return self._table_behind((self.brackets.between,))

    def entered(self, frame: Frame) -> Iterable[Place]:
        """What follows the first bracket."""
        return ((self.first, self._linker.frame(self, self.begin, frame)),)

    @cached
    def first(self) -> Part:
        return self._of_table(self._first_table, self.begin, may_end=False)

    def _made(self, state: State) -> Part:
        return self._of_table(self._next_table, state, self.may_end(state))

    def _of_table(self, table: Table, state: State, may_end: bool) -> Part:
        costs = dict.fromkeys(range(1 + len(self._values)), FAR)
        closings, after = self.options(state)
        for number, closing in closings.items():
            costs[1 + number] = min(self.least(number) + closing, FAR)
        if may_end:
            costs[DONE] = 0

        def follow(frame: Frame, label: int) -> Iterable[Place]:
            if costs[label] >= FAR:
                return ()
            outside = frame.parent or ROOT
            if label == DONE:
                return after_value(outside)
            then = after(label - 1)
            inside = self._linker.frame(self, then, outside)
            return ((self.part(label - 1, then), inside),)

        given = table, table.far(costs), follow, rest_outside, self._linker.joined
        return Part(*given, family=self, covers=covers)

    def least(self, number: int) -> int:
        """Length of the shortest text between an exit of the table and the state after it."""
        return self._linker.least(self._values[number])

    def part(self, number: int, after: State) -> Part:
        """What follows an exit of the table, and leads to the state after it."""
        return self._linker.part(self._values[number], self.brackets.inside)
