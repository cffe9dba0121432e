"""Objects in a linked automaton: after each member, what may come next.

There is one part for each set of members that may come, and all of them share two tables, so that
members may come in any order: see `_linking`. In the order of the schema a member rules out those
of the places before it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator

from bpe_automata._automata.part_tables import Alternative, table_of
from bpe_automata._automata.parts import FAR, Part, Place, Table, length_of
from bpe_automata._sharing import cached
from bpe_automata.schemas._entries import UNBOUNDED, Entries
from bpe_automata.schemas._frames import (
    DONE,
    ROOT,
    Container,
    Frame,
    Linking,
    State,
    after_value,
    covers,
    rest_outside,
)
from bpe_automata.schemas._style import Brackets, Piece
from bpe_automata.schemas._values import ObjectShape, Values


class Members(Container):
    """The objects of one shape.

    A state is a tuple:

        [0]     the places whose members may come no more, seen or not (bits)
        [1] [2] the least and the greatest number of distinct names so far, as far as they matter
        [3]     was one of the other names among them? (0 or 1)
    """

    def __init__(self, shape: ObjectShape, brackets: Brackets, linker: Linking) -> None:
        super().__init__(shape, (0, 0, 0, 0), brackets, linker)
        self._is_in_order = linker.order == "schema" or (linker.order == "open" and not shape.rest)
        self._shape = shape
        self._known: dict[State, int] = {}  # `closing` of states that were entered
        self._lengths: dict[int, int] = {}  # of members, by number

    @cached
    def entries(self) -> Entries:
        return Entries(self._shape, self._linker.style, self._linker.unique)

    @cached
    def _values(self) -> list[Values]:
        return [one.values for one in self.entries.all]

    # What may come next.

    def options(self, state: State) -> tuple[dict[int, int], Callable[[int, int], State]]:
        """(by the number of an entry that may come next, `closing` of the state after it; that
        state, asked for with both when it is entered)."""
        behind = self._behind(state)
        closings = dict[int, int]()
        for number, after in self._following(state):
            if self._linker.least(self._values[number]) < FAR:
                length = behind(number, after)
                if length < FAR:
                    closings[number] = length

        def entered(number: int, closing: int) -> State:  # most never are
            after = next(after for one, after in self._following(state) if one == number)
            self._known[after] = closing
            return after

        return closings, entered

    def _following(self, state: State) -> Iterator[tuple[int, State]]:
        """The numbers of entries, and the states after them, of which some may have no end."""
        at, *counts = state
        entries, gone = self.entries, 0
        for place in range(_first_open(at), entries.n):
            own = 1 << place
            if at & own:
                continue
            yield place, self._then(place, at | gone | own, counts)
            if self._is_in_order:
                if entries.required & own:
                    return
                gone |= own
        for number in range(entries.n, len(entries.all)):
            yield number, self._then(number, at | gone, counts)

    def _then(self, number: int, at: int, counts: list[int]) -> State:
        """The state after an entry."""
        few, many, later = counts
        entries = self.entries
        is_other = number >= entries.n
        most = 0 if entries.most == UNBOUNDED else 1 + entries.most
        return (
            at,
            min(few + (not (is_other and later)), entries.fewest),
            min(many + 1, most),
            int(bool(later or is_other) and entries.fewest > 0),
        )

    def _unseen(self, at: int) -> int:
        """Bits of the places whose members may still come."""
        return ((1 << self.entries.n) - 1) & ~at

    def may_end(self, state: State) -> bool:
        """See `Container.may_end`."""
        at, few, many, _ = state
        entries = self.entries
        is_whole = not entries.required & self._unseen(at)
        return is_whole and entries.fewest <= few and many <= entries.most

    # Lengths, by those of the values where these are not known yet.

    def closing(self, state: State) -> int:
        """See `Container.closing`."""
        found = self._known.get(state)
        return self._closing(state, None) if found is None else found

    def _closing(self, state: State, known: dict[int, int] | None) -> int:
        at, few, many, later = state
        entries = self.entries
        needed = entries.required & self._unseen(at)
        count = needed.bit_count()
        lengths = [self._length(place, known) for place in _places(needed)]
        missing = entries.fewest - few - count
        if missing > 0:  # the shortest of those that may come, and one of the other names
            free = [self._length(i, known) for i in _places(self._unseen(at) & ~needed)]
            others = range(entries.n, len(entries.all)) if not later else ()
            other = min((self._length(number, known) for number in others), default=FAR)
            lengths += sorted([*free, other, *[FAR] * missing])[:missing]
            count += missing
        return FAR if many + count > entries.most else min(self._last + sum(lengths), FAR)

    def _behind(self, state: State) -> Callable[[int, State], int]:
        """Of an entry that may come next, and the state after it: `closing` of that."""
        at, few, many, _ = state
        entries = self.entries
        if few < entries.fewest:
            return lambda _, after: self._closing(after, None)
        whole = self.closing(state)
        needed = entries.required & self._unseen(at)
        is_full = many + needed.bit_count() >= entries.most  # but for those that are needed

        def behind(number: int, after: State) -> int:
            if number < entries.n and needed >> number & 1:
                return whole - self._length(number, None)
            return FAR if is_full else whole

        return behind

    def _length(self, number: int, known: dict[int, int] | None) -> int:
        """Of a member, with the text between it and another."""
        found = self._lengths.get(number) if known is None else None
        if found is None:
            one = self.entries.all[number]
            found = min(length_of(one.key) + self._length_of(one.values, known), FAR)
            if known is None:
                self._lengths[number] = found
        return found

    # What is needed before that: is there a text at all?

    def needed(self) -> list[Values]:
        """See `Container.needed`."""
        if self.entries.fewest:
            return self._values
        return [self._values[place] for place in _places(self.entries.required)]

    # The parts share two tables, of the first member and of those behind a comma, with every entry:
    # so members may come in any order. What may not come in a state costs FAR, and so is not in its
    # part. Labels: 0 for the end, 1 + i for entry i.

    def entered(self, frame: Frame) -> Iterable[Place]:
        """What follows the first bracket."""
        return ((self.first, self._linker.frame(self, self.begin, frame)),)

    @cached
    def first(self) -> Part:
        """What follows the first bracket."""
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
        numbers, lengths = array("q", closings), array("q", closings.values())  # thousands are kept

        def follow(frame: Frame, label: int) -> Iterable[Place]:
            outside = frame.parent or ROOT
            if label == DONE:
                return after_value(outside) if may_end else ()
            if label - 1 not in numbers:
                return ()
            then = after(label - 1, lengths[numbers.index(label - 1)])
            inside = self._linker.frame(self, then, outside)
            return ((self.part(label - 1), inside),)

        given = table, table.far(costs), follow, rest_outside, self._linker.joined
        return Part(*given, family=self, covers=covers)

    def least(self, number: int) -> int:
        """Length of the shortest value of an entry."""
        return self._linker.least(self._values[number])

    def part(self, number: int) -> Part:
        """The values of an entry."""
        return self._linker.part(self._values[number], self.brackets.inside)

    @cached
    def _next_table(self) -> Table:
        return self._table_behind((self.brackets.between,))

    @cached
    def _first_table(self) -> Table:
        between = self.brackets.between
        if not isinstance(between, bytes) or between == b"":
            return self._table_behind(())
        return self._next_table.begun_after(between)

    def _table_behind(self, before: tuple[Piece, ...]) -> Table:
        alternatives: list[Alternative] = [((self.brackets.last,), DONE)] if before else []
        named = enumerate(self.entries.all, 1)
        return table_of([*alternatives, *(((*before, one.key), label) for label, one in named)])


def _first_open(at: int) -> int:
    """The first place whose member may still come."""
    return (~at & (at + 1)).bit_length() - 1


def _places(bits: int) -> list[int]:
    """In order."""
    found = list[int]()
    while bits:
        found.append((bits & -bits).bit_length() - 1)
        bits &= bits - 1
    return found
