"""Nets of values in a linked automaton (see `_automata.rounds`): what objects and arrays share.

value      a rule: its net reads a scalar, or an object or array
container  the part of a net that reads the objects, or the arrays, of one shape. Its nodes are
           states, which say what matters of the members or items so far
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Generic, Literal, Protocol

from bpe_automata._automata.parts import BYTE, FAR, Part, Table, length_of
from bpe_automata._automata.rounds import Edge, Follow, Node, Repeat, length
from bpe_automata._sharing import cached
from bpe_automata.schemas._style import Brackets, Context, Piece, Style
from bpe_automata.schemas._values import ArrayShape, Shape, Values

Order = Literal["open", "schema", "any"]
LONGEST = 1 << 20
"""The most bytes that the shortest text of a set may have."""
LONGER = 2 * LONGEST * BYTE + 1
"""A length that is greater than that of any shortest text, and less than FAR."""
ITEM, VALUE, MEMBER = range(3)
"""Ranks of nodes: without a byte between, items lead to values, and values of YAML to members."""
State = tuple[Any, ...]
"""What matters of the members or items so far; each kind of container has its own."""


node = partial(Node, are_compared=False)
"""A node of the net of a value."""
END = node(tuple, True, 0, ITEM)
"""The end of a value."""
NOWHERE = node(tuple, False, LONGER, ITEM)
"""Where no text goes on."""


class Choice(Node):
    """A node whose part shares its table with those of others, and lacks the exits of which `find`,
    asked when it is first entered, gives no cost: (costs of labels, a stack and a label to what
    comes behind an exit)."""

    reads = True

    def __init__(
        self, table: Table, far: int, rank: int, find: Callable[[], tuple[dict[int, int], Follow]]
    ) -> None:
        super().__init__(tuple, False, far, rank, are_compared=False)
        self._table, self._choose = table, find

    @cached
    def part(self) -> Part:
        """See `Node.part`."""
        costs, follow = self._choose()
        known = frozenset(costs)
        return self.part_of(
            self._table, costs, lambda stack, label: follow(stack, label) if label in known else []
        )


class Linking(Protocol):
    """What containers ask the linker for, see `_linking.Linker`."""

    style: Style
    order: Order
    unique: bool

    def least(self, values: Values) -> int:
        """Length of the shortest text of a set, FAR where it has none."""

    def rule(self, values: Values, context: Context, depth: int | None) -> Repeat:
        """The texts of a set in a context of the style. depth: how many objects and arrays may
        begin there, one in another; None for no limit."""

    def scalars(self, values: Values, context: Context) -> list[tuple[Piece, ...]]:
        """Those that are neither arrays nor objects."""


class Container(ABC, Generic[Shape]):
    """The objects of one shape (`_members`), or the arrays of one (`_items`).

    begin: the state before the first member or item. depth: of its values, see `Linking.rule`."""

    begin: State = (0,)

    def __init__(
        self, shape: Shape, brackets: Brackets, linker: Linking, depth: int | None
    ) -> None:
        self.brackets, self._depth = brackets, depth
        self._shape: Shape = shape
        self._fewest, self._most, self._linker = shape.fewest, shape.most, linker
        self._last, self._between = length_of(brackets.last), length_of(brackets.between)
        self._nodes: dict[State, Node] = {}

    @abstractmethod
    def may_end(self, state: State) -> bool:
        """May the last bracket follow a member or an item?"""

    @cached
    def may_be_empty(self) -> bool:
        """Is {} or [] one of them?"""
        return self.may_end(self.begin)

    def _may_begin(self) -> bool:
        """May there be a member or an item, as far as that is seen without a look at its values?"""
        return self._most != 0

    @abstractmethod
    def closing(self, state: State) -> int:
        """Length of the shortest text from the end of a member or an item to that of all, FAR where
        there is none; at `begin`, with a comma before the first."""

    def shortest(self) -> int:
        """Length of the shortest text of all, FAR where there is none."""
        if self._most is not None and self._fewest > self._most:
            return FAR
        if self.may_be_empty:
            return length_of(self.brackets.empty)
        closing = self.closing(self.begin)
        return FAR if closing >= FAR else closing - self._between + length_of(self.brackets.first)

    def edges(self, is_deepest: bool) -> Iterator[Edge]:
        """The texts of empty ones, and the first bracket of others, where no text goes on if it is
        the deepest that may come. Where {} or [] is shorter than these, their length is not looked
        for: nobody needs more than LONGER."""
        if self.may_be_empty:
            yield self.brackets.empty, END
            far = LONGER if self._may_begin() else FAR
        else:
            closing = self.closing(self.begin)
            far = FAR if closing >= FAR else closing - self._between
        if far < FAR:
            yield self.brackets.first, NOWHERE if is_deepest else self.first(far)

    @abstractmethod
    def first(self, far: int) -> Node:
        """Behind the first bracket. far: length of the shortest text from there to the end."""

    def _rule(self, values: Values) -> Repeat:
        """The texts of a member or an item."""
        return self._linker.rule(values, self.brackets.inside, self._depth)

    def _length_of(self, values: Values) -> int:
        """Of a value, with the text between it and another."""
        return min(self._between + self._linker.least(values), FAR)


class Separated(Container[ArrayShape]):
    """Arrays, by the items that may come next."""

    def following(self, state: State) -> Iterable[tuple[Repeat, State]]:
        """The items that may come next, with the states behind them: what `item` leads to."""
        return ()

    def first(self, far: int) -> Node:
        """See `Container.first`."""
        return self.item(self.begin, far)

    def item(self, state: State, far: int | None = None) -> Node:
        """Before an item. far: its length with all behind it, if items need not be looked at."""
        edges = partial(self._edges, state)
        if far is None:
            far = min((length(item) + behind.far for item, behind in edges()), default=FAR)
        return node(edges, False, far, ITEM)

    def _edges(self, state: State) -> list[Edge]:
        every = [(item, self.behind(after)) for item, after in self.following(state)]
        return [edge for edge in every if edge[1].far < FAR]

    def behind(self, state: State) -> Node:
        """Behind an item."""
        if state not in self._nodes:
            ends = self.brackets.last == b"" and self.may_end(state)
            edges = partial(self._commas, state)
            self._nodes[state] = node(edges, ends, self.closing(state), ITEM)
        return self._nodes[state]

    def _commas(self, state: State) -> Iterator[Edge]:
        """The last bracket, and the comma before another item."""
        if self.brackets.last != b"" and self.may_end(state):
            yield self.brackets.last, END
        item = self.item(state)
        if item.far < FAR:
            yield self.brackets.between, item
