"""Objects in a linked automaton: after each member, what may come next.

There is one part for each set of members that may come, and all of them share two tables, so that
members may come in any order: see `_linking`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import or_

from bpe_automata._automata.parts import FAR, Alternative, Part, Place, Table, length_of, table_of
from bpe_automata._sharing import cached
from bpe_automata.schemas._containers import keys_but
from bpe_automata.schemas._frames import (
    BEGIN,
    DONE,
    LONGER,
    ROOT,
    Frame,
    Linking,
    State,
    after_value,
    rest_outside,
)
from bpe_automata.schemas._scalar_sets import lower_bound
from bpe_automata.schemas._style import Brackets, Piece
from bpe_automata.schemas._values import ObjectShape, Values


@dataclass(frozen=True, eq=False)
class _Member:
    """Of a name, or of a set of names that come once at most. key: its spellings, with all text
    between it and the value."""

    key: Piece
    values: Values
    required: bool


class Members:
    """The objects of one shape. Labels of its parts: 0 for the end, 1 + i for member i."""

    def __init__(self, shape: ObjectShape, brackets: Brackets, linker: Linking) -> None:
        self.brackets, self._shape, self._linker = brackets, shape, linker
        self._parts: dict[object, Part] = {}
        self._last = length_of(brackets.last)
        self._between = length_of(brackets.between)
        self._is_any = linker.order == "any"

    @cached
    def _all(self) -> list[_Member]:
        return [*self._named, *self._others]

    @cached
    def _named(self) -> list[_Member]:
        """Those that may come once, in the order of the schema."""
        style, named = self._linker.style, self._shape.named
        found = [
            _Member(style.key(name), one.child.values, name in self._shape.required)
            for name, one in named.items()
        ]
        return [*found, *self._others_of(self._linker.unique)]

    @cached
    def _others(self) -> list[_Member]:
        """Those that may come again and again."""
        return list(self._others_of(not self._linker.unique))

    def _others_of(self, wanted: bool) -> Iterator[_Member]:
        if not wanted or self._shape.most == 0:
            return
        for names, child in self._shape.rest:
            keys = keys_but(lower_bound(names), tuple(self._shape.named), self._linker.style)
            if keys.start:
                yield _Member(keys, child.values, required=False)

    @cached
    def _required(self) -> tuple[int, ...]:
        return tuple(i for i, one in enumerate(self._named) if one.required)

    @cached
    def _fewest(self) -> int:
        """Distinct names, 0 where the required ones are as many."""
        fewest = self._shape.fewest
        return 0 if fewest <= len(self._required) else fewest

    @cached
    def _most(self) -> int | None:
        most = self._shape.most
        return None if most is None or (most >= len(self._named) and not self._others) else most

    def _member(self, index: int) -> _Member:
        n = len(self._named)
        return self._named[index] if index < n else self._others[index - n]

    # What may come next.

    def _options(self, state: State) -> Iterator[tuple[int, State]]:
        """(index of a member that may come next, the state after it)."""
        at, few, many, later, seen = state
        if self._is_any:
            for i, one in enumerate(self._named):
                if not at >> i & 1 and self._has_text(one):
                    now = seen | 1 << i & self._told
                    yield from self._then(i, (at | 1 << i, few + 1, many + 1, later, now))
        else:
            needed = self._needed(seen)
            for i in range(at, len(self._named)):
                if self._has_text(self._named[i]):
                    now = seen | 1 << i & self._told
                    yield from self._then(i, (i + 1, few + 1, many + 1, False, now))
                if needed >> i & 1:
                    return
        for i, one in enumerate(self._others, len(self._named)):
            if self._has_text(one):
                after = at if self._is_any else len(self._named)
                yield from self._then(i, (after, few + (not later), many + 1, True, seen))

    @cached
    def _implied(self) -> list[tuple[int, int]]:
        """Bits: one named member, and one that an object with it has too."""
        place = {name: 1 << i for i, name in enumerate(self._shape.named)}
        return [(place[one], place[needed]) for one, needed in self._shape.implied]

    @cached
    def _told(self) -> int:
        """Bits of the members that need another, or are needed."""
        return reduce(or_, (bit for pair in self._implied for bit in pair), 0)

    def _needed(self, seen: int) -> int:
        """Bits of the members that an object has in which some were seen."""
        found, before = sum(1 << i for i in self._required) | seen, -1
        while found != before:
            before = found
            for one, needed in self._implied:
                found |= needed if found & one else 0
        return found

    def _then(self, index: int, state: State) -> Iterator[tuple[int, State]]:
        """The state with what matters of its counts, unless no object goes on from there."""
        at, few, many, later, seen = state
        few = min(few, self._fewest)
        counts = self._fewest > 0 or self._most is not None
        state = at, few, many if self._most is not None else 0, later and counts, seen
        if self._closing(state) < FAR:
            yield index, state

    def _has_text(self, one: _Member) -> bool:
        return self._linker.least(one.values) < FAR

    def _left(self, state: State) -> tuple[list[int], list[int]]:
        """The required members that are still to come, and the others of the named ones."""
        at, needed = state[0], self._needed(state[-1])
        if self._is_any:
            left = [i for i in range(len(self._named)) if not at >> i & 1]
        else:
            left = list(range(at, len(self._named)))
        required = [i for i in left if needed >> i & 1]
        return required, [i for i in left if not needed >> i & 1]

    def closing(self, state: State) -> int:
        """Length of the shortest text from the end of a member to that of the object."""
        return self._closing(state)

    def _closing(self, state: State, known: dict[int, int] | None = None) -> int:
        if known is None and not self._fewest and self._most is None and not self._implied:
            return self._closings(state[0])
        at, few, many, later, seen = state
        missed = self._needed(seen) & ~seen & self._told
        if not self._is_any and missed & ((1 << at) - 1):  # what is needed may come no more
            return FAR
        required, optional = self._left(state)
        missing = max(0, self._fewest - few - len(required))
        if self._most is not None and many + len(required) + missing > self._most:
            return FAR
        length = self._last + sum(self._length_of(self._named[i], known) for i in required)
        if missing:
            spare = [self._length_of(self._named[i], known) for i in optional]
            if not later and self._others:
                spare.append(min(self._length_of(one, known) for one in self._others))
            spare = sorted(one for one in spare if one < FAR)
            length += sum(spare[:missing]) if len(spare) >= missing else FAR
        return min(length, FAR)

    def _closings(self, at: int) -> int:
        """`_closing` where nothing is counted."""
        if self._is_any:
            return min(self._last + sum(n for i, n in self._lengths if not at >> i & 1), FAR)
        return min(self._last + sum(n for i, n in self._lengths if i >= at), FAR)

    @cached
    def _lengths(self) -> list[tuple[int, int]]:
        """Of each required member, its index and `_length_of`."""
        return [(i, self._length_of(self._named[i], None)) for i in self._required]

    def _length_of(self, one: _Member, known: dict[int, int] | None) -> int:
        """With the text between it and another."""
        value = self._linker.least(one.values) if known is None else known[id(one.values)]
        return min(self._between + length_of(one.key) + value, FAR)

    # What is needed before that: is there a text at all?

    def needed(self) -> list[Values]:
        """See `Container.needed`."""
        some = [self._named[i] for i in self._required]
        return [one.values for one in (some if not self._fewest else self._all)]

    def measured(self, known: dict[int, int]) -> int:
        """See `Container.measured`."""
        if self._shape.most is not None and self._shape.fewest > self._shape.most:
            return FAR
        if self.may_be_empty:
            return length_of(self.brackets.empty)
        closing = self._closing(BEGIN, known)
        if closing >= FAR or (self._fewest == 0 and not self._required):
            return FAR
        return closing - self._between + length_of(self.brackets.first)

    @property
    def may_be_empty(self) -> bool:
        """Is {} one of them?"""
        return not self._required and self._shape.fewest == 0

    def opening(self) -> int:
        """See `Container.opening`: where {} is shorter, nobody looks at the members."""
        if self.may_be_empty:
            return LONGER if self._shape.most != 0 else FAR
        found = [
            self._length_of(self._member(index), None) - self._between + self._closing(after)
            for index, after in self._options(BEGIN)
        ]
        return min(found, default=FAR)

    # The parts. All of them share two tables, with every member in them: of the first one, and of
    # those behind a comma. What may not come in a state costs FAR, and so is not in its part.

    def entered(self, frame: Frame) -> Iterable[Place]:
        """What follows the first bracket."""
        return ((self._part(BEGIN, is_first=True), self._linker.frame(self, BEGIN, frame)),)

    def after(self, state: State) -> Part:
        """What follows a member."""
        return self._part(state, is_first=False)

    def _part(self, state: State, is_first: bool) -> Part:
        key = state, is_first
        found = self._parts.get(key)
        if found is None:
            found = self._parts[key] = self._made(state, is_first)
        return found

    def _may_end(self, state: State) -> bool:
        required, _ = self._left(state)
        return not required and state[1] >= self._fewest

    @cached
    def _first_table(self) -> Table:
        between = self.brackets.between
        if not isinstance(between, bytes) or between == b"":
            return self._table_behind(())
        return self._next_table.begun_after(between)

    @cached
    def _next_table(self) -> Table:
        return self._table_behind((self.brackets.between,))

    def _table_behind(self, before: tuple[Piece, ...]) -> Table:
        alternatives: list[Alternative] = [((self.brackets.last,), DONE)] if before else []
        alternatives += [((*before, one.key), label) for label, one in enumerate(self._all, 1)]
        return table_of(alternatives)

    def _made(self, state: State, is_first: bool) -> Part:
        table = self._first_table if is_first else self._next_table
        members = self._all
        costs = dict.fromkeys(range(1 + len(members)), FAR)
        after = dict[int, State]()
        for index, then in self._options(state):
            cost = self._linker.least(members[index].values) + self._closing(then)
            costs[1 + index] = min(cost, FAR)
            after[1 + index] = then
        if not is_first and self._may_end(state):
            costs[DONE] = 0

        def follow(frame: Frame, label: int) -> Iterable[Place]:
            outside = frame.parent or ROOT
            if label == DONE:
                return after_value(outside) if costs[DONE] == 0 else ()
            if label not in after:
                return ()
            inside = self._linker.frame(self, after[label], outside)
            value = self._linker.part(members[label - 1].values, self.brackets.inside)
            return ((value, inside),)

        return Part(table, table.far(costs), follow, rest_outside)
