"""The nets of objects: after each member, what may come next.

There is one node for each set of members that may come, and the parts of all of them share two
tables, so that members may come in any order. In the order of the schema a member rules out those
of the places before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.part_tables import Alternative, table_of
from bpe_automata._automata.parts import FAR, Place, Table, length_of
from bpe_automata._automata.rounds import Follow, Node, Stack, places
from bpe_automata._sharing import cached
from bpe_automata.schemas._nets import END, MEMBER, Choice, Container, State
from bpe_automata.schemas._scalar_sets import ALL_STRINGS, finite, lower_bound, subtract
from bpe_automata.schemas._style import Piece, Style
from bpe_automata.schemas._values import ObjectShape, Values

_UNBOUNDED = 1 << 60  # names, that no object has
_DONE = 0  # the label of the last bracket; 1 + i is that of entry i


class Members(Container[ObjectShape]):
    """The objects of one shape.

    A state is a tuple:

        [0]     the places whose members may come no more, seen or not (bits)
        [1] [2] the least and the greatest number of distinct names so far, as far as they matter
        [3]     was one of the other names among them? (0 or 1)
    """

    begin = (0, 0, 0, 0)

    @cached
    def entries(self) -> Entries:
        """The members that may come, by number."""
        return Entries(self._shape, self._linker.style, self._linker.unique)

    # What may come next.

    def _options(self, state: State) -> dict[int, tuple[State, int]]:
        """By the number of an entry that may come next: the state after it, and `closing` of it."""
        behind = self._behind(state)
        found = dict[int, tuple[State, int]]()
        for number, after in self._following(state):
            length = behind(number, after)
            if max(length, self._linker.least(self.entries.all[number].values)) < FAR:
                found[number] = after, length
        return found

    def _following(self, state: State) -> Iterator[tuple[int, State]]:
        """The numbers of entries, and the states after them, of which some may have no end."""
        at, *counts = state
        entries, gone, order = self.entries, 0, self._linker.order
        is_in_order = order == "schema" or (order == "open" and not self._shape.rest)
        for place in range(_first_open(at), entries.n):
            own = 1 << place
            if at & own:
                continue
            yield place, self._then(place, at | gone | own, counts)
            if is_in_order:
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
        most = 0 if entries.most == _UNBOUNDED else 1 + entries.most
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

    # Lengths.

    def closing(self, state: State) -> int:
        """See `Container.closing`."""
        at, few, many, later = state
        entries = self.entries
        needed = entries.required & self._unseen(at)
        count = needed.bit_count()
        lengths = [self._length(place) for place in _places(needed)]
        missing = entries.fewest - few - count
        if missing > 0:  # the shortest of those that may come, and one of the other names
            free = [self._length(i) for i in _places(self._unseen(at) & ~needed)]
            others = range(entries.n, len(entries.all)) if not later else ()
            other = min((self._length(number) for number in others), default=FAR)
            lengths += sorted([*free, other])[:missing]
            count += missing
        is_possible = many + count <= entries.most and len(lengths) == count
        return min(self._last + sum(lengths), FAR) if is_possible else FAR

    def _behind(self, state: State) -> Callable[[int, State], int]:
        """Of an entry that may come next, and the state after it: `closing` of that."""
        at, few, many, _ = state
        entries = self.entries
        if few < entries.fewest:
            return lambda _, after: self.closing(after)
        whole = self.closing(state)
        needed = entries.required & self._unseen(at)
        is_full = many + needed.bit_count() >= entries.most  # but for those that are needed

        def behind(number: int, after: State) -> int:
            if number < entries.n and needed >> number & 1:
                return whole - self._length(number)
            return FAR if is_full else whole

        return behind

    def _length(self, number: int) -> int:
        """Of a member, with the text between it and another."""
        entry = self.entries.all[number]
        return min(entry.length + self._length_of(entry.values), FAR)

    # The parts share two tables, of the first member and of those behind a comma, with every entry:
    # so members may come in any order. What may not come in a state costs FAR, and so is not in its
    # part.

    def first(self, far: int) -> Node:
        """See `Container.first`."""
        find = partial(self._next, self.begin, may_end=False)
        return Choice(self._first_table, far, MEMBER, find)

    def _after(self, state: State, far: int) -> Node:
        """Behind a member. far: `closing` of the state."""
        if state not in self._nodes:
            find = partial(self._next, state, self.may_end(state))
            self._nodes[state] = Choice(self._next_table, far, MEMBER, find)
        return self._nodes[state]

    def _next(self, state: State, may_end: bool) -> tuple[dict[int, int], Follow]:
        """What may come in a state, see `Choice`."""
        options, every = self._options(state), self.entries.all
        costs = {
            1 + number: min(self._linker.least(every[number].values) + closing, FAR)
            for number, (_, closing) in options.items()
        }

        def follow(stack: Stack, label: int) -> list[Place]:
            if label == _DONE:
                return places([(END, stack)])
            value = self._rule(every[label - 1].values)
            return [value.before(self._after(*options[label - 1]), stack)]

        return costs | ({_DONE: 0} if may_end else {}), follow

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
        alternatives: list[Alternative] = [((self.brackets.last,), _DONE)] if before else []
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


# The members that objects of a shape may have, by their names as they are spelled.


@dataclass(frozen=True, eq=False)
class Entry:
    """Members with one name, or with one of a set of names."""

    find: Callable[[], Piece]
    values: Values

    @cached
    def key(self) -> Piece:
        """The spellings of the names, with all text between one and the value."""
        return self.find()

    @cached
    def length(self) -> int:
        """Of the shortest of these."""
        return length_of(self.key)


class Entries:
    """All entries of a shape in a style, of names that come once at most (`named`, in the order of
    the schema, `n` of them: the number of an entry is its place) and of those that may come again
    and again (`others`). all: both. unique: no name comes twice."""

    def __init__(self, shape: ObjectShape, style: Style, unique: bool) -> None:
        self._shape, self._style = shape, style
        self._bits = {name: 1 << i for i, name in enumerate(shape.named)}
        self.named = [
            Entry(partial(style.key, name), member.child.values)
            for name, member in shape.named.items()
        ]
        others = list(self._others())
        self.others = [] if unique else others
        self.named += others if unique else []
        self.n = len(self.named)
        self.all = [*self.named, *self.others]

    @cached
    def required(self) -> int:
        """Bits of the members that are required."""
        return sum(map(self._bits.__getitem__, self._shape.required))

    @cached
    def fewest(self) -> int:
        """Distinct names that an object has at least, 0 where the required ones are as many."""
        fewest = self._shape.fewest
        return 0 if fewest <= len(self._shape.required) else fewest

    @cached
    def most(self) -> int:
        """Names that an object has at most, `_UNBOUNDED` where it can have no more."""
        most = self._shape.most
        bounded = most is not None and (most < self.n or self.others)
        return most if bounded and most is not None else _UNBOUNDED

    def _others(self) -> Iterator[Entry]:
        """The names beyond, by set."""
        if self._shape.most == 0:
            return
        for names, child in self._shape.rest:
            find = partial(self._keys_but, lower_bound(names))
            if names is ALL_STRINGS or not find().is_empty:
                yield Entry(find, child.values)

    def _keys_but(self, names: ByteDFA) -> ByteDFA:
        """The spellings of all names but those that have places."""
        others = subtract(names, finite(frozenset(self._bits)))
        return others if others.is_empty else self._style.keys(others)
