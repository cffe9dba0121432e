"""Objects in a linked automaton: after each member, what may come next.

There is one part for each set of members that may come, and all of them share two tables, so that
members may come in any order: see `_linking`. Where a term subtracts shapes, a state says which of
them no member has refuted so far; an object may end where the names that it lacks refute the rest
(see `_entries`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from operator import or_

from bpe_automata._automata.parts import FAR, Alternative, Part, Place, Table, length_of, table_of
from bpe_automata._budget import check
from bpe_automata._sharing import cached
from bpe_automata.errors import BudgetExceededError
from bpe_automata.schemas._entries import Entries, Entry, holds
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
from bpe_automata.schemas._style import Brackets, Piece
from bpe_automata.schemas._values import ObjectShape, Term, Values

Counts = tuple[int, ...]
"""A state without [0]."""
Pair = tuple[int, int]
_MOST_WAYS = 20_000  # different `Counts` at one place, while the least length is searched


class Members:
    """The objects of one term. Labels of its parts: 0 for the end, 1 + i for entry i.

    A state is a tuple:

        [0]     the named members that were seen (bits); in the order of the schema, the next place
        [1] [2] the least and the greatest number of distinct names so far, as far as they matter
        [3]     was one of the other names among them? (0 or 1)
        [4]     the members that were seen, of those that need others or are needed (bits)
        [5]     the subtracted shapes that nothing has refuted (bits)
    """

    def __init__(self, term: Term[ObjectShape], brackets: Brackets, linker: Linking) -> None:
        self.brackets, self._term, self._shape, self._linker = brackets, term, term.shape, linker
        self.pointer = term.shape.pointer
        self.begin: State = (0, 0, 0, 0, 0, (1 << len(term.minus)) - 1)
        self._parts: dict[object, Part] = {}
        self._last = length_of(brackets.last)
        self._between = length_of(brackets.between)
        self._is_any = linker.order == "any"

    @cached
    def _entries(self) -> Entries:
        return Entries(self._term, self._linker.style, self._linker.unique)

    @cached
    def _all(self) -> list[Entry]:
        return [*self._entries.named, *self._entries.others]

    @cached
    def _other_numbers(self) -> range:
        return range(len(self._entries.named), len(self._all))

    @cached
    def _numbers(self) -> list[list[int]]:
        """The entries at each place."""
        found: list[list[int]] = [[] for _ in range(self._entries.n)]
        for number, one in enumerate(self._entries.named):
            found[one.place].append(number)
        return found

    @cached
    def _required(self) -> int:
        """Bits of the members that are required."""
        return self._entries.bits(self._shape.required)

    @cached
    def _fewest(self) -> int:
        """Distinct names, 0 where the required ones are as many."""
        fewest = self._shape.fewest
        return 0 if fewest <= len(self._shape.required) else fewest

    @cached
    def _most(self) -> int | None:
        most = self._shape.most
        bounded = most is not None and (most < self._entries.n or self._entries.others)
        return most if bounded else None

    @cached
    def _caps(self) -> tuple[int, int]:
        """From which on greater numbers of names make no difference: least ones, greatest ones."""
        some = self._entries.subtracted
        few = [self._fewest, *(one.most + 1 for one in some if one.most is not None)]
        most = 0 if self._most is None else self._most + 1
        return max(few), max(most, *(one.fewest for one in some), 0)

    @cached
    def _implied(self) -> tuple[tuple[int, int], ...]:
        return self._entries.implied(self._shape)

    def _needed(self, seen: int) -> int:
        """Bits of the members that an object has in which some were seen."""
        found, before = self._required | seen, -1
        while found != before:
            before = found
            for one, needed in self._implied:
                found |= needed if found & one else 0
        return found

    # What may come next.

    def _options(self, state: State) -> Iterator[tuple[int, State]]:
        """(the number of an entry that may come next, the state after it)."""
        at, counts = state[0], state[1:]
        if self._is_any:
            for place, numbers in enumerate(self._numbers):
                if not at >> place & 1:
                    yield from self._then(numbers, at | 1 << place, counts)
            yield from self._then(self._other_numbers, at, counts)
            return
        needed = self._needed(counts[3])
        for place in range(at, self._entries.n):
            yield from self._then(self._numbers[place], place + 1, counts)
            if needed >> place & 1:
                return
            counts = self._without(counts, place)
        yield from self._then(self._other_numbers, self._entries.n, counts)

    def choices(self, state: State) -> Iterator[Choice]:
        """See `Container.choices`."""
        at, counts = state[0], state[1:]
        n = self._entries.n
        for number, after in self._then(
            self._numbers[at] if at < n else self._other_numbers, min(at + 1, n), counts
        ):
            yield self._all[number].key, self._all[number].values, after
        if at < n and not self._needed(counts[3]) >> at & 1:
            without = (at + 1, *self._without(counts, at))
            if self._closing(without) < FAR:
                yield b"", None, self._settled(without)

    def _settled(self, state: State) -> State:
        """A state that has an end, without what no longer matters of the members that were seen, as
        those that they need or are needed by can come no more."""
        at, few, many, later, seen, left = state
        return (
            state
            if self._is_any
            else (at, few, many, later, seen & self._entries.mattering[at], left)
        )

    def _then(self, numbers: Iterable[int], at: int, counts: Counts) -> Iterator[tuple[int, State]]:
        """Those of some entries behind which an object goes on."""
        for number in numbers:
            entry = self._all[number]
            if self._linker.least(entry.values) < FAR:
                state = (at, *self._with(counts, entry))
                if self._closing(state) < FAR:
                    yield number, self._settled(state)

    def _with(self, counts: Counts, entry: Entry) -> Counts:
        """What is known of an object with one member more."""
        few, many, later, seen, left = counts
        most_few, most_many = self._caps
        is_other = entry.place == self._entries.n
        few = min(few + (not (is_other and later)), most_few)
        later = int(bool(later or is_other) and most_few + most_many > 0)
        seen |= 1 << entry.place & self._entries.told
        return few, min(many + 1, most_many), later, seen, left & ~entry.refuted

    def _without(self, counts: Counts, place: int) -> Counts:
        """What is known of an object without the member at a place."""
        *others, left = counts
        return *others, left & ~self._entries.asking[place]

    def _unseen(self, at: int) -> list[int]:
        """The places whose members may still come."""
        n = self._entries.n
        return [i for i in range(n) if not at >> i & 1] if self._is_any else list(range(at, n))

    def may_end(self, state: State) -> bool:
        """See `Container.may_end`."""
        at, counts = state[0], state[1:]
        unseen = self._unseen(at)
        if any(self._required >> place & 1 for place in unseen):
            return False
        for place in unseen if self._term.minus else ():
            counts = self._without(counts, place)
        return self._ends(counts)

    def _ends(self, counts: Counts, implied: Iterable[Pair] | None = None) -> bool:
        """May an object end that has all that is required? implied: what is still to be looked at,
        all by default."""
        few, many, _, seen, left = counts
        return (
            few >= self._fewest
            and (self._most is None or many <= self._most)
            and holds(self._implied if implied is None else implied, seen)
            and not any(
                left & one.bit and not one.is_refuted(few, many, seen)
                for one in self._entries.subtracted
            )
        )

    # Lengths, by those of the values where these are not known yet.

    def closing(self, state: State) -> int:
        """Length of the shortest text from the end of a member to that of the object."""
        return self._closing(state)

    def _closing(self, state: State, known: dict[int, int] | None = None) -> int:
        if self._compares:
            return self._searched(state, known)
        if known is None and not self._implied and self._caps == (0, 0):
            return self._closings(state[0])
        at, few, many, later, seen, _ = state
        needed = self._needed(seen)
        missed = needed & ~seen & ~self._required & self._entries.told
        if not self._is_any and missed & ((1 << at) - 1):
            return FAR  # what is needed may come no more
        left = self._unseen(at)
        required = [place for place in left if needed >> place & 1]
        missing = max(0, self._fewest - few - len(required))
        if self._most is not None and many + len(required) + missing > self._most:
            return FAR
        length = self._last + sum(self._length_at(place, known) for place in required)
        if missing:
            spare = [self._length_at(place, known) for place in left if not needed >> place & 1]
            if not later and self._entries.others:
                spare.append(min(self._length_of(one, known) for one in self._entries.others))
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
        """Of each required member, its place and its length."""
        some = range(self._entries.n)
        return [(i, self._length_at(i, None)) for i in some if self._required >> i & 1]

    def _length_at(self, place: int, known: dict[int, int] | None) -> int:
        """Of a member, where nothing is subtracted."""
        return self._length_of(self._all[self._numbers[place][0]], known)

    def _length_of(self, one: Entry, known: dict[int, int] | None) -> int:
        """With the text between it and another."""
        value = self._linker.least(one.values) if known is None else known[id(one.values)]
        return min(self._between + length_of(one.key) + value, FAR)

    @cached
    def _compares(self) -> bool:
        """Do the members that come depend on one another in more than one way?"""
        return bool(self._term.minus) or (bool(self._implied) and self._caps != (0, 0))

    def _searched(self, state: State, known: dict[int, int] | None) -> int:
        """`_closing`, by all ways to have or not to have the members that may still come, in the
        order of their places. Raises BudgetExceededError."""
        at, counts = state[0], state[1:]
        unseen = self._unseen(at)
        due = self._due(unseen)
        ways = _decided({counts: self._last}, due.pop(-1, []), due, self._entries.always)
        for place in unseen:
            if not self._matters[place]:
                continue
            some = [self._all[number] for number in self._numbers[place]]
            absent = not self._required >> place & 1
            before = [(self._without(way, place), n) for way, n in ways.items()] if absent else []
            ways = self._ways(before, ways, some, known)
            ways = _decided(ways, due.pop(place, []), due, self._entries.always)
        for one in self._entries.others:
            if one.refuted or self._caps != (0, 0):
                ways = self._ways(ways.items(), ways, [one], known)
        ends = (length for way, length in ways.items() if self._ends(way, implied=()))
        return min(ends, default=FAR)

    def _due(self, unseen: list[int]) -> dict[int, list[Pair]]:
        """The pairs of members of which one needs the other, by the place where it is decided
        whether it is there: the last of theirs that may still come, -1 if none may."""
        found: dict[int, list[Pair]] = {}
        for one, needed in self._implied:
            last = max((place for place in unseen if (one | needed) >> place & 1), default=-1)
            found.setdefault(last, []).append((one, needed))
        return found

    def _ways(
        self,
        without: Iterable[tuple[Counts, int]],
        ways: dict[Counts, int],
        entries: list[Entry],
        known: dict[int, int] | None,
    ) -> dict[Counts, int]:
        """The least length of each way, after one of some entries or none of them."""
        check()
        found: dict[Counts, int] = {}
        for way, length in without:
            found[way] = min(length, found.get(way, FAR))
        for one in entries:
            more = self._length_of(one, known)
            for way, length in ways.items() if more < FAR else ():
                after = self._with(way, one)
                found[after] = min(length + more, found.get(after, FAR))
        if len(found) > _MOST_WAYS:
            why = "members are counted and compared in too many ways: name or compare fewer"
            raise BudgetExceededError("ways to go on", _MOST_WAYS, why)
        return found

    @cached
    def _matters(self) -> list[bool]:
        """Of each place, may it make a difference whether its member is there?"""
        told = self._entries.told | self._required
        return [
            self._caps != (0, 0)
            or bool(told >> place & 1 or self._entries.asking[place])
            or any(self._all[number].refuted for number in self._numbers[place])
            for place in range(self._entries.n)
        ]

    # What is needed before that: is there a text at all?

    def needed(self) -> list[Values]:
        """See `Container.needed`."""
        if self._compares or self._fewest:
            return [one.values for one in self._all]
        some = (i for i in range(self._entries.n) if self._required >> i & 1)
        return [self._all[number].values for i in some for number in self._numbers[i]]

    def measured(self, known: dict[int, int] | None) -> int:
        """See `Container.measured`."""
        if self._shape.most is not None and self._shape.fewest > self._shape.most:
            return FAR
        if self.may_be_empty:
            return length_of(self.brackets.empty)
        closing = self._closing(self.begin, known)
        return FAR if closing >= FAR else closing - self._between + length_of(self.brackets.first)

    @cached
    def may_be_empty(self) -> bool:
        """Is {} one of them?"""
        return self.may_end(self.begin)

    def opening(self) -> int:
        """See `Container.opening`: where {} is shorter, nobody looks at the members."""
        closing = self._closing(self.begin)  # if that takes too much, no member may be read
        if self.may_be_empty:
            return LONGER if self._shape.most != 0 else FAR
        return FAR if closing >= FAR else closing - self._between

    # The parts. All of them share two tables, with every entry in them: of the first member, and of
    # those behind a comma. What may not come in a state costs FAR, and so is not in its part.

    def covers(self, state: State, other: State) -> bool:
        """See `Container.covers`: one of which nothing is asked that is not asked of the other."""
        return state[:-1] == other[:-1] and not state[-1] & ~other[-1]

    def entered(self, frame: Frame) -> Iterable[Place]:
        """What follows the first bracket."""
        begin = self.begin
        return ((self._part(begin, is_first=True), self._linker.frame(self, begin, frame)),)

    def after(self, state: State) -> Part:
        """What follows a member."""
        return self._part(state, is_first=False)

    def _part(self, state: State, is_first: bool) -> Part:
        key = state, is_first
        found = self._parts.get(key)
        if found is None:
            found = self._parts[key] = self._made(state, is_first)
        return found

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
        entries = self._all
        costs = dict.fromkeys(range(1 + len(entries)), FAR)
        after = dict[int, State]()
        for number, then in self._options(state):
            cost = self._linker.least(entries[number].values) + self._closing(then)
            costs[1 + number] = min(cost, FAR)
            after[1 + number] = then
        if not is_first and self.may_end(state):
            costs[DONE] = 0

        def follow(frame: Frame, label: int) -> Iterable[Place]:
            outside = frame.parent or ROOT
            if label == DONE:
                return after_value(outside) if costs[DONE] == 0 else ()
            if label not in after:
                return ()
            inside = self._linker.frame(self, after[label], outside)
            value = self._linker.part(entries[label - 1].values, self.brackets.inside)
            return ((value, inside),)

        return Part(table, table.far(costs), follow, rest_outside, family=self, covers=covers)


def _decided(
    ways: dict[Counts, int], pairs: list[Pair], due: dict[int, list[Pair]], always: int
) -> dict[Counts, int]:
    """The ways in which some pairs hold, without the members of which nothing more is asked. due:
    the pairs that are left; always: bits of the members that are asked for at the end."""
    kept = reduce(or_, (one | needed for left in due.values() for one, needed in left), always)
    found: dict[Counts, int] = {}
    for (few, many, later, seen, left), length in ways.items():
        if holds(pairs, seen):
            way = few, many, later, seen & kept, left
            found[way] = min(length, found.get(way, FAR))
    return found
