"""The nets of objects: after each member, which members may come next.

An *entry* stands for the members with one name, or with one of a set of names that the schema does
not list. Of each name that it lists, an object has one member at most: so the node behind a member
must know which of them may still come, and there is one node for each such set. If a schema lists
`a` and `b`, requires `b` and allows no other names, the nodes are these, by what may come there:

    a or b --"a":..--> b --"b":..--> }
    a or b --"b":..--> a or } --"a":..--> }

For n names there may be 2 ** n nodes, so a node is made only when a text leads to it. They all
share one table of all entries, each behind a comma (the first member has a table without commas),
and a node allows those that may come: see `Choice`. Where members come in the order of the schema,
a member also rules out the entries before its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from bpe_automata._sharing import cached
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.part_tables import Alternative, table_of
from bpe_automata.automata.parts import FAR, Continuation, Table
from bpe_automata.automata.rounds import Follow, Node, Stack, continuations, length
from bpe_automata.schemas._nets import END, MEMBER, Choice, Container, State
from bpe_automata.schemas._scalar_sets import ALL_STRINGS, finite, lower_bound, subtract
from bpe_automata.schemas._style import Layout, Piece, Style
from bpe_automata.schemas._values import ObjectShape, Values

_UNBOUNDED = 1 << 60  # more members than any object has
_END = 0  # the label of the last bracket; 1 + i is that of entry i


class Objects(Container[ObjectShape]):
    """The net that reads the objects of one shape. A state is a tuple:

    [0]     the entries in `once` whose members may not come any more, as bits
    [1] [2] the least and the greatest number of distinct names so far, as far as they matter:
            a name that is not listed may be one that came before
    [3]     1 if `fewest` matters and a name came that is not listed, else 0
    """

    begin = (0, 0, 0, 0)

    @cached
    def entries(self) -> Entries:
        """The members that may come, by number."""
        return Entries(self._shape, self._linker.style, self.layout, self._linker.unique)

    # What may come next.

    def _options(self, state: State) -> Iterator[tuple[int, tuple[State, int]]]:
        """(number, (state behind it, the length there)) of each entry that may come next."""
        length_after = self._lengths_after(state)
        for number, after in self._following(state):
            far = length_after(number, after)
            if max(far, self._linker.length(self.entries.all[number].values)) < FAR:
                yield number, (after, far)

    def may_begin(self) -> bool:
        """See `Container.may_begin`."""
        return any(True for _ in self._options(self.begin))

    def _following(self, state: State) -> Iterator[tuple[int, State]]:
        """(number, state behind it) of each entry that may come next; some states have no end."""
        at, *counts = state
        entries, gone, order = self.entries, 0, self._linker.order
        is_in_order = order == "schema" or (order == "open" and not self._shape.rest)
        for i in _indices(self._unseen(at)):
            own = 1 << i
            yield i, self._state_behind(i, at | gone | own, counts)
            if is_in_order:
                if entries.required & own:
                    return
                gone |= own
        for number in range(entries.n, len(entries.all)):
            yield number, self._state_behind(number, at | gone, counts)

    def _state_behind(self, number: int, at: int, counts: list[int]) -> State:
        """The state behind an entry. at: the bits [0] of that state."""
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
        """Bits of the entries in `once` whose members may still come."""
        return ((1 << self.entries.n) - 1) & ~at

    def may_end(self, state: State) -> bool:
        """See `Container.may_end`."""
        at, few, many, _ = state
        entries = self.entries
        is_whole = not entries.required & self._unseen(at)
        return is_whole and entries.fewest <= few and many <= entries.most

    # Lengths.

    def length_behind(self, state: State) -> int:
        """See `Container.length_behind`."""
        at, few, many, later = state
        entries = self.entries
        needed = entries.required & self._unseen(at)
        count = needed.bit_count()
        lengths = [self._length_of(i) for i in _indices(needed)]
        missing = entries.fewest - few - count
        if missing > 0:  # the shortest of those that may come, and one of the other names
            free = [self._length_of(i) for i in _indices(self._unseen(at) & ~needed)]
            others = range(entries.n, len(entries.all)) if not later else ()
            other = min((self._length_of(number) for number in others), default=FAR)
            lengths += sorted([*free, other])[:missing]
            count += missing
        is_possible = many + count <= entries.most and len(lengths) == count
        return min(self._last + sum(lengths), FAR) if is_possible else FAR

    def _lengths_after(self, state: State) -> Callable[[int, State], int]:
        """A function from an entry that may come next, and the state behind it, to the length of
        that state. It is computed from the length of `state` where that is possible."""
        at, few, many, _ = state
        entries = self.entries
        if few < entries.fewest:
            return lambda _, after: self.length_behind(after)
        whole = self.length_behind(state)
        needed = entries.required & self._unseen(at)
        is_full = many + needed.bit_count() >= entries.most  # only the needed ones have room

        def length_after(number: int, after: State) -> int:
            if number < entries.n and needed >> number & 1:
                return whole - self._length_of(number)
            return FAR if is_full else whole

        return length_after

    def _length_of(self, number: int) -> int:
        """The length of a member of an entry, and of the comma before it."""
        entry = self.entries.all[number]
        return min(entry.length + self._length_with_comma(entry.values), FAR)

    # Nodes.

    def first(self, far: int) -> Node:
        """See `Container.first`."""
        find = partial(self._next, self.begin, may_end=False)
        return Choice(self._first_table, far, MEMBER, find)

    def _behind(self, state: State, far: int) -> Node:
        """The node behind a member. far: its length."""
        if state not in self._nodes:
            find = partial(self._next, state, self.may_end(state))
            self._nodes[state] = Choice(self._next_table, far, MEMBER, find)
        return self._nodes[state]

    def _next(self, state: State, may_end: bool) -> tuple[dict[int, int], Follow]:
        """What may come in a state, see `Choice`."""
        options, every = dict(self._options(state)), self.entries.all
        lengths = {
            1 + number: min(self._linker.length(every[number].values) + far, FAR)
            for number, (_, far) in options.items()
        }

        def follow(stack: Stack, label: int) -> list[Continuation]:
            if label == _END:
                return continuations([(END, stack)])
            value = self._rule(every[label - 1].values)
            return [value.before(self._behind(*options[label - 1]), stack)]

        return lengths | ({_END: 0} if may_end else {}), follow

    @cached
    def _next_table(self) -> Table:
        return self._table_behind((self.layout.between,))

    @cached
    def _first_table(self) -> Table:
        between = self.layout.between
        if not isinstance(between, bytes) or between == b"":
            return self._table_behind(())
        return self._next_table.begun_after(between)

    def _table_behind(self, before: tuple[Piece, ...]) -> Table:
        """All entries, each after `before`. If two have one spelling, the first, of a listed name,
        counts."""
        alternatives: list[Alternative] = [((self.layout.last,), _END)] if before else []
        for label, one in enumerate(self.entries.all, 1):
            alternatives.append(((*before, one.in_table()), label))
        found = table_of(alternatives)
        exits = {at: labels[:1] for at, labels in found.exits.items()}
        return Table(found.trans, found.byte_class, found.start, exits)


def _indices(bits: int) -> Iterator[int]:
    """The indices of the bits that are set, ascending."""
    while bits:
        yield (bits & -bits).bit_length() - 1
        bits &= bits - 1


# The entries of a shape.


@dataclass(frozen=True, eq=False)
class Entry:
    """Members with one name, or with one of a set of names. keys: the spellings of the names, with
    all text up to the value. in_table: the same, perhaps with spellings of listed names."""

    keys: Callable[[], Piece]
    values: Values
    in_table: Callable[[], Piece]

    @cached
    def length(self) -> int:
        """The length of `keys`."""
        return length(self.keys())


class Entries:
    """All entries of a shape in a style. `once` has the `n` whose members come at most once, in the
    order of the schema; `again` has those whose members may be repeated; an entry's number is its
    index in `all`, which has both. unique: no name comes twice, so each set of other names allows
    one member at most."""

    def __init__(self, shape: ObjectShape, style: Style, layout: Layout, unique: bool) -> None:
        self._shape, self._style, self._layout = shape, style, layout
        self._bits = {name: 1 << i for i, name in enumerate(shape.named)}
        self.once = list[Entry]()
        for name, member in shape.named.items():
            key = partial(style.key, name, layout)
            self.once.append(Entry(key, member.child.values, key))
        others = list(self._others())
        unique = unique or layout.unique
        self.again = [] if unique else others
        self.once += others if unique else []
        self.n = len(self.once)
        self.all = [*self.once, *self.again]

    @cached
    def required(self) -> int:
        """Bits of the entries whose members are required."""
        return sum(map(self._bits.__getitem__, self._shape.required))

    @cached
    def fewest(self) -> int:
        """The least number of distinct names of an object; 0 where the required ones suffice."""
        fewest = self._shape.fewest
        return 0 if fewest <= len(self._shape.required) else fewest

    @cached
    def most(self) -> int:
        """The greatest number of names of an object; `_UNBOUNDED` where no object can have more."""
        most = self._shape.most
        bounded = most is not None and (most < self.n or self.again)
        return most if bounded and most is not None else _UNBOUNDED

    def _others(self) -> Iterator[Entry]:
        """An entry for each set of names that are not listed."""
        if self._shape.most == 0:
            return
        for names, child in self._shape.rest:
            keys = partial(self._keys_but, lower_bound(names))
            if names is ALL_STRINGS:  # all shapes share the spellings of all names, which take time
                yield Entry(keys, child.values, partial(self._style.keys, names, self._layout))
            elif not keys().is_empty:
                yield Entry(keys, child.values, keys)

    def _keys_but(self, names: ByteDFA) -> ByteDFA:
        """The spellings of those names that are not listed."""
        others = subtract(names, finite(frozenset(self._bits)))
        return others if others.is_empty else self._style.keys(others, self._layout)
