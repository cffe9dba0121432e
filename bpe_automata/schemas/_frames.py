"""Contexts of values in a linked automaton: where in which objects and arrays a value stands; what
all kinds of objects and arrays have in common, and all kinds of arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from bpe_automata._automata.part_tables import Alternative, labelled
from bpe_automata._automata.parts import BYTE, FAR, Part, Place, length_of
from bpe_automata._sharing import cached
from bpe_automata.schemas._style import Brackets, Context, Piece, Style
from bpe_automata.schemas._values import ArrayShape, ObjectShape, Values

Order = Literal["open", "schema", "any"]
LONGEST = 1 << 20
"""The most bytes that the shortest text of a set may have."""
LONGER = 2 * LONGEST * BYTE + 1
"""A length that is greater than that of any shortest text, and less than FAR."""
DONE = 0
"""The label of a value's end, and of a container's."""


class Linking(Protocol):
    """What containers ask the linker for, see `_linking.Linker`."""

    style: Style
    order: Order
    unique: bool

    def least(self, values: Values) -> int:
        """Length of the shortest text of a set, FAR where it has none."""

    def part(self, values: Values, context: Context) -> Part:
        """The texts of a set in a context of the style."""

    def scalars(self, values: Values, context: Context) -> list[Text]:
        """Those that are neither arrays nor objects."""

    def frame(self, container: Container, state: State, parent: Frame) -> Frame:
        """The context of a member or an item, always the same object."""

    def joined(self, frames: Sequence[Frame]) -> Frame:
        """The one that stands for some, always the same object."""


class Container(ABC):
    """The objects of one shape (`_members`), or the arrays of one (`Separated`).

    begin: the state before the first member or item; pointer: of the schema, for messages."""

    def __init__(
        self, shape: ObjectShape | ArrayShape, begin: State, brackets: Brackets, linker: Linking
    ) -> None:
        self.brackets, self.begin, self.pointer = brackets, begin, shape.pointer
        self._fewest, self._most, self._linker = shape.fewest, shape.most, linker
        self._last, self._between = length_of(brackets.last), length_of(brackets.between)
        self._parts: dict[State, Part] = {}

    # What may come.

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

    # Lengths of shortest texts. known: those of the sets that are `needed`, while they are found.

    @abstractmethod
    def needed(self) -> list[Values]:
        """The sets on which the length of the shortest text depends."""

    def measured(self, known: dict[int, int] | None) -> int:
        """Length of the shortest text, by those of the sets that it depends on; FAR: none."""
        if self._most is not None and self._fewest > self._most:
            return FAR
        if self.may_be_empty:
            return length_of(self.brackets.empty)
        closing = self._closing(self.begin, known)
        return FAR if closing >= FAR else closing - self._between + length_of(self.brackets.first)

    def opening(self) -> int:
        """Length of the shortest text from the first bracket to the last, of one that is not empty;
        FAR if there is none. Where {} or [] is shorter, LONGER will do: nobody needs more."""
        if self.may_be_empty:
            return LONGER if self._may_begin() else FAR
        closing = self.closing(self.begin)
        return FAR if closing >= FAR else closing - self._between

    def closing(self, state: State) -> int:
        """Length of the shortest text from the end of a member or an item to that of all."""
        return self._closing(state, None)

    @abstractmethod
    def _closing(self, state: State, known: dict[int, int] | None) -> int:
        """The same; at `begin`, with a comma before the first."""

    def _length_of(self, values: Values, known: dict[int, int] | None) -> int:
        """Of a value, with the text between it and another."""
        value = self._linker.least(values) if known is None else known[id(values)]
        return min(self._between + value, FAR)

    # Parts.

    @abstractmethod
    def entered(self, frame: Frame) -> Iterable[Place]:
        """What follows the first bracket."""

    def after(self, state: State) -> Part:
        """What follows a member or an item."""
        found = self._parts.get(state)
        if found is None:
            found = self._parts[state] = self._made(state)
        return found

    @abstractmethod
    def _made(self, state: State) -> Part:
        """What follows a member or an item, made anew."""


@dataclass(frozen=True, eq=False)
class Frame:
    """The context of a value. container: the object or array that it is in, None for the root;
    state: which members or items there are, the value itself included; parent: the frame of the
    container. rest: length of the shortest text from the end of the value to that of the root;
    level: how many objects and arrays are around the value. several: those that it stands for,
    where one text leads to a value in several of them, which differ in container or state; it has
    none of these itself."""

    container: Container | None
    state: State
    parent: Frame | None
    rest: int
    level: int
    several: tuple[Frame, ...] = ()


State = tuple[Any, ...]
"""What matters of the members or items so far; each kind of container has its own."""
Text = tuple[Piece, ...]
"""Texts and languages, one after another."""
ROOT = Frame(None, (), None, 0, 0)


def after_value(frame: Frame) -> Iterable[Place]:
    """What follows a value in its context."""
    if frame.several:
        return [place for one in frame.several for place in after_value(one)]
    if frame.container is None:
        return ((None, frame),)
    return ((frame.container.after(frame.state), frame),)


def rest_inside(frame: Frame) -> int:
    """Length behind a member or an item."""
    return frame.rest


def rest_outside(frame: Frame) -> int:
    """Length behind the end of the object or array that a value is in."""
    return frame.parent.rest if frame.parent else 0


def covers(one: Frame, other: Frame) -> bool:
    """Is what may follow a value in the other context known to be among what may follow it in this
    one?"""
    while one is not other:
        if one.several:
            return {id(frame) for frame in one.several} >= {
                id(f) for f in other.several or (other,)
            }
        if one.container is None or one.container is not other.container:
            return False
        if one.state != other.state:
            return False
        if one.parent is None or other.parent is None:
            return one.parent is other.parent
        one, other = one.parent, other.parent
    return True


class Separated(Container):
    """Parts that read a comma or the last bracket; the items are parts of their own. Labels: 0 for
    the end, 1 for another item."""

    @abstractmethod
    def _following(self, state: State) -> Iterable[tuple[Values, State]]:
        """The items that may come next, and the states after them."""

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
