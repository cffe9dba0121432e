"""What the nets of arrays and of objects have in common.

A value is read by a net: nodes, joined by edges that read a text or another value (see
`automata.rounds`). A `Container` makes the nodes that read the arrays, or the objects, of one
shape. The net of arrays with one or two integers is

    node --[--> item 0 --integer--> behind 1 --,--> item 1 --integer--> behind 2 --]--> END
                                       |                                              ^
                                       +-----------------------]----------------------+

The nodes inside are before an item, or behind one. Each has a `State`, which is what matters of
the items so far: here, how many there were. Nodes are made only when a text leads to them, so the
number of states is not limited.

No text may be begun that has no end (but for a limit of depth, see `Linker`). So each node must
know its *length*, that of the shortest text from there to the end, or FAR if there is no text; all
lengths here are those of shortest texts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Generic, Literal, Protocol

from bpe_automata._sharing import cached
from bpe_automata.automata.parts import BYTE, FAR, Part, Table
from bpe_automata.automata.rounds import Edge, Follow, Node, Repeat, length
from bpe_automata.schemas._style import Context, Layout, Piece, Style
from bpe_automata.schemas._values import ArrayShape, Shape, Values

Order = Literal["open", "schema", "any"]
LONGEST = 1 << 20
"""The most bytes that the shortest text of a set may have."""
LONGER = 2 * LONGEST * BYTE + 1
"""A length that is greater than that of any set, and less than FAR."""
ITEM, VALUE, MEMBER = range(3)
"""Ranks of nodes, see `Part.rank`: an item begins where its value begins, and in YAML an object
begins where its first member does. Nodes of lower ranks are entered first."""
State = tuple[Any, ...]
"""What matters of the members or items so far; each kind of container has its own."""

node = partial(Node, are_compared=False)
"""A node of the net of a value: edges, may the value end here, length, rank."""
END = node(tuple, True, 0, ITEM)
"""The end of a value. (`tuple` makes its edges: there are none.)"""
NOWHERE = node(tuple, False, LONGER, ITEM)
"""A node from which no text leads on."""


class Choice(Node):
    """A node that reads one entry of a table. The table has all entries of a container, so all
    nodes of the container share it; each node allows some of the entries.

    choose() is called when the node is first entered. It returns the labels in the table of the
    allowed entries, each with the length from behind its key; and a function from a stack and one
    of these labels to what comes behind the key."""

    reads = True

    def __init__(
        self, table: Table, far: int, rank: int, choose: Callable[[], tuple[dict[int, int], Follow]]
    ) -> None:
        super().__init__(tuple, False, far, rank, are_compared=False)
        self._table, self._choose = table, choose

    @cached
    def part(self) -> Part:
        """See `Node.part`."""
        lengths, follow = self._choose()
        allowed = frozenset(lengths)
        return self.part_of(
            self._table,
            lengths,
            lambda stack, label: follow(stack, label) if label in allowed else [],
        )


class Linking(Protocol):
    """What containers need of the linker, see `_linking.Linker`."""

    style: Style
    order: Order
    unique: bool

    def length(self, values: Values) -> int:
        """The length of the shortest text of the values of a set."""

    def rule(self, values: Values, context: Context, depth: int | None) -> Repeat:
        """The rule that reads the values of a set in a context of the style. depth: to how many
        levels objects and arrays may be nested in it; None for no limit."""

    def scalars(self, values: Values, context: Context) -> list[tuple[Piece, ...]]:
        """The texts of the values that are neither arrays nor objects."""


class Container(ABC, Generic[Shape]):
    """What reads the arrays of one shape (`_items`), or the objects of one (`_members`)."""

    begin: State = (0,)
    """The state before the first member or item."""

    def __init__(self, shape: Shape, layout: Layout, linker: Linking, depth: int | None) -> None:
        """depth: that of the values inside, see `Linking.rule`."""
        self.layout, self._depth = layout, depth
        self._shape: Shape = shape
        self._fewest, self._most, self._linker = shape.fewest, shape.most, linker
        self._last, self._between = length(layout.last), length(layout.between)
        self._nodes: dict[State, Node] = {}

    @abstractmethod
    def may_end(self, state: State) -> bool:
        """May the last bracket come now? At `begin`: is {} or [] one of the texts?"""

    @abstractmethod
    def may_begin(self) -> bool:
        """May there be a member or an item? Asked only where {} or [] is one of the texts."""

    @abstractmethod
    def length_behind(self, state: State) -> int:
        """The length from behind a member or an item to the end; at `begin` it counts a comma that
        is not there."""

    def length(self) -> int:
        """The length of the shortest array or object of the shape."""
        if self._most is not None and self._fewest > self._most:
            return FAR
        if self.may_end(self.begin):
            return length(self.layout.empty)
        found = self.length_behind(self.begin)
        return FAR if found >= FAR else found - self._between + length(self.layout.first)

    def edges(self, is_deepest: bool) -> Iterator[Edge]:
        """One edge reads {} or [], another the first bracket of all other texts; the latter leads
        to NOWHERE if nothing may be nested here. Where {} or [] is one of the texts, the length
        behind that bracket makes no difference and is not computed: LONGER stands for it."""
        if self.may_end(self.begin):
            yield self.layout.empty, END
            far = LONGER if self.may_begin() else FAR
        else:
            found = self.length_behind(self.begin)
            far = FAR if found >= FAR else found - self._between
        if far < FAR:
            yield self.layout.first, NOWHERE if is_deepest else self.first(far)

    @abstractmethod
    def first(self, far: int) -> Node:
        """The node behind the first bracket. far: its length."""

    def _rule(self, values: Values) -> Repeat:
        """The rule that reads a value inside."""
        return self._linker.rule(values, self.layout.inside, self._depth)

    def _length_with_comma(self, values: Values) -> int:
        """The length of a value inside, and of the comma before it."""
        return min(self._between + self._linker.length(values), FAR)


class Arrays(Container[ArrayShape]):
    """What all containers of arrays have in common."""

    def following(self, state: State) -> Iterable[tuple[Repeat, State]]:
        """The items that may come in a state, each with the state behind it."""
        return ()

    def may_begin(self) -> bool:
        """See `Container.may_begin`."""
        return any(True for _ in self.following(self.begin))

    def first(self, far: int) -> Node:
        """See `Container.first`."""
        return self.item(self.begin, far)

    def item(self, state: State, far: int | None = None) -> Node:
        """The node before an item. far: its length, computed here if it is not given."""
        edges = partial(self._edges_of_item, state)
        if far is None:
            far = min((length(item) + behind.far for item, behind in edges()), default=FAR)
        return node(edges, False, far, ITEM)

    def _edges_of_item(self, state: State) -> list[Edge]:
        every = [(item, self.behind(after)) for item, after in self.following(state)]
        return [edge for edge in every if edge[1].far < FAR]

    def behind(self, state: State) -> Node:
        """The node behind an item."""
        if state not in self._nodes:
            ends = self.layout.last == b"" and self.may_end(state)
            edges = partial(self._edges_behind, state)
            self._nodes[state] = node(edges, ends, self.length_behind(state), ITEM)
        return self._nodes[state]

    def _edges_behind(self, state: State) -> Iterator[Edge]:
        """One edge reads the last bracket, another the comma before one more item."""
        if self.layout.last != b"" and self.may_end(state):
            yield self.layout.last, END
        item = self.item(state)
        if item.far < FAR:
            yield self.layout.between, item
