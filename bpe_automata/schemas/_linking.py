"""Builds the linked automaton of all JSON texts of a set of values (see `_automata.linked`).

    value      its scalars, and the first brackets of its arrays and objects: one part
    object     after each member, what may come next: one part for each set of members that may
    array      after each item, a comma or the end: one part for each count that matters

A context says in which object or array a value stands, with which members or items before it, and
what surrounds that. So values may be nested without limit and counted without limit, and members
may come in any order: what no text has led to is not written down.

Sets that are differences of others, objects of a bounded number of members in which one needs
another, and arrays of items that must differ or are counted by kind are written as one part by
`_writing`, in the order of the schema and to a bounded depth.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any, Literal

import numpy as np

from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.parts import (
    BYTE,
    FAR,
    Alternative,
    Part,
    Place,
    Table,
    labelled,
    length_of,
    table_of,
)
from bpe_automata._budget import Budget, check
from bpe_automata._sharing import cached
from bpe_automata.errors import BudgetExceededError
from bpe_automata.schemas._containers import keys_but
from bpe_automata.schemas._ladders import Ladder, Rung, ladder
from bpe_automata.schemas._scalar_sets import Counted, lower_bound
from bpe_automata.schemas._style import Brackets, Context, Piece, Style
from bpe_automata.schemas._values import (
    NONE,
    ArrayShape,
    Child,
    ObjectShape,
    Term,
    Values,
    limit_recursion,
)
from bpe_automata.schemas._writing import Writer

Order = Literal["schema", "any"]
_LONGEST = 1 << 20  # bytes of a shortest text
_LONGER = 2 * _LONGEST * BYTE + 1  # than any that is known
_DONE = 0
"""The label of a value's end, and of a container's."""


@dataclass(frozen=True, eq=False)
class Frame:
    """The context of a value: the object or array that it is in, with the members or items up to
    it, and the frame of that; without a container, the whole text. rest: length of the shortest
    text from the end of the value to that of the whole."""

    container: Members | Items | None
    state: State
    parent: Frame | None
    rest: int


State = tuple[int, int, int, bool, int]
"""Of an object: which named members were seen (bits), or the number of the next one that may come
(in the order of the schema); the least and the greatest number of distinct names so far; was one of
the other names among them? which members were seen of those that need others, or are needed by
them? Of an array: the number of items, and nothing else."""
_BEGIN: State = (0, 0, 0, False, 0)
_ROOT = Frame(None, _BEGIN, None, 0)


class Linker:
    """Makes the parts of all sets of values of one schema, each when it is first entered."""

    def __init__(
        self, style: Style, budget: Budget, order: Order, unique_names: bool, rounds: int
    ) -> None:
        """rounds: how often a set that is written as one part may contain itself."""
        self.style, self.budget, self.order, self.unique = style, budget, order, unique_names
        self._rounds = rounds
        self._values: dict[tuple[int, Context], _Value] = {}
        self._least: dict[int, int] = {}
        self._frames: dict[tuple[int, State, int], Frame] = {}

    def begin(self, values: Values) -> list[Place]:
        """Where the texts of a set begin; nowhere, if it has none."""
        begin = self.value(values, self.style.root)
        return [(begin.part, _ROOT)] if self.least(values) < FAR else []

    def value(self, values: Values, context: Context) -> _Value:
        """The texts of a set in a context of the style."""
        key = id(values), context
        found = self._values.get(key)
        if found is None:
            found = self._values[key] = _Value(values, context, self)
        return found

    def frame(self, container: Members | Items, state: State, parent: Frame) -> Frame:
        """The context of a member or an item, always the same object."""
        key = id(container), state, id(parent)
        found = self._frames.get(key)
        if found is None:
            rest = min(container.closing(state) + parent.rest, FAR)
            found = self._frames[key] = Frame(container, state, parent, rest)
        return found

    def explicit(self, values: Values, context: Context) -> list[ByteDFA]:
        """The languages of the arrays and objects of a set, written out."""
        writer = Writer(self.style, self.budget, self.unique)
        return writer.compounds(limit_recursion(values, self._rounds), context)

    def least(self, values: Values) -> int:
        """Length of the shortest text of a set, the same in all contexts; FAR where it has none.
        Sets may contain themselves: each needs those that it must contain, and from FAR all fall to
        the least solution."""
        if id(values) not in self._least:
            pending, needed = [values], dict[int, _Value]()
            while pending:
                check()
                found = self.value(pending.pop(), self.style.root)
                if id(found.values) not in needed and id(found.values) not in self._least:
                    needed[id(found.values)] = found
                    pending += found.needed()
            known, changed = {**self._least, **dict.fromkeys(needed, FAR)}, True
            while changed:
                check()
                changed = False
                for key, found in needed.items():
                    nearer = found.measured(known)
                    changed |= nearer < known[key]
                    known[key] = nearer
            for key in needed:
                if _LONGEST * BYTE < known[key] < FAR:
                    raise BudgetExceededError("bytes", _LONGEST, "the shortest text is longer")
                self._least[key] = known[key]
        return self._least[id(values)]

    def least_of_others(self, value: _Value) -> dict[int, int]:
        """`least` by identity, at least of all that the shortest text of a set depends on."""
        self.least(value.values)
        return self._least


class _Value:
    """The texts of a set in a context: `values` stays alive, so that its id is its own."""

    def __init__(self, values: Values, context: Context, linker: Linker) -> None:
        self.values, self._context, self._linker = values, context, linker
        self._rungs: dict[int, Rung] = {}  # the first of long strings, by their frames

    @cached
    def _containers(self) -> list[Members | Items]:
        """One for each term that is followed step by step."""
        style, found = self._linker.style, list[Members | Items]()
        for term in self.values.objects:
            if not _is_explicit(term):
                brackets = style.objects(self._context)
                found.append(Members(term.shape, brackets, self._linker))
        for items in self.values.arrays:
            if not _is_explicit(items):
                found.append(Items(items.shape, style.arrays(self._context), self._linker))
        return found

    @cached
    def _whole(self) -> list[Piece]:
        """Scalars, and the arrays and objects that are written out."""
        style, values = self._linker.style, self.values
        pieces: list[Piece] = [style.null()] if values.null else []
        pieces += [style.boolean(value) for value in sorted(values.booleans)]
        if not values.numbers.is_empty:
            pieces.append(style.numbers(values.numbers, upper=False))
        strings = lower_bound(values.strings)
        if not strings.is_empty and self._ladder is None:
            pieces.append(style.strings(strings, self._context))
        arrays = tuple(term for term in values.arrays if _is_explicit(term))
        objects = tuple(term for term in values.objects if _is_explicit(term))
        if arrays or objects:
            some = replace(NONE, arrays=arrays, objects=objects, loops=values.loops, memo={})
            pieces += self._linker.explicit(some, self._context)
        return [piece for piece in pieces if isinstance(piece, bytes) or piece.start]

    @cached
    def _ladder(self) -> Ladder | None:
        """Of strings with many characters."""
        strings = self.values.strings
        if not isinstance(strings, Counted):
            return None
        style = self._linker.style
        spelled = style.strings(strings.base, self._context)
        most = strings.most
        return style.shared.once(("ladder", most), spelled, lambda: ladder(spelled, most))

    def needed(self) -> list[Values]:
        """The sets on which the length of the shortest text depends."""
        return [values for one in self._containers for values in one.needed()]

    def measured(self, known: dict[int, int]) -> int:
        """Length of the shortest text, by those of the sets that it depends on."""
        shortest = [length_of(piece) for piece in self._whole]
        shortest += [one.measured(known) for one in self._containers]
        shortest += [self._ladder.shortest] if self._ladder else []
        return min(shortest, default=FAR)

    @cached
    def part(self) -> Part:
        """Scalars, and the beginnings of arrays and objects."""
        alternatives: list[Alternative] = [((piece,), _DONE) for piece in self._whole]
        costs = {_DONE: 0}
        least = self._linker.least_of_others(self)
        for label, one in enumerate(self._containers, 1):
            if one.measured(least) >= FAR:
                continue
            if one.may_be_empty:
                alternatives.append(((one.brackets.empty,), _DONE))
            opening = one.opening()
            if opening < FAR:
                alternatives.append(((one.brackets.first,), label))
                costs[label] = opening
        if self._ladder:
            alternatives.append(((b'"',), 1 + len(self._containers)))
            costs[1 + len(self._containers)] = self._ladder.shortest - BYTE
        return labelled(alternatives, costs, self._follow, _rest)

    def _follow(self, frame: Frame, label: int) -> Iterable[Place]:
        if self._ladder and label == 1 + len(self._containers):
            rung = self._rungs.get(id(frame))
            if rung is None:
                rung = self._rungs[id(frame)] = Rung(0, frame, _after)
            return self._ladder.entered(rung)
        if label != _DONE:
            return self._containers[label - 1].entered(frame)
        if frame.container is None:
            return ((None, frame),)
        return ((frame.container.after(frame.state), frame),)


def _is_explicit(term: Term[ObjectShape] | Term[ArrayShape]) -> bool:
    shape = term.shape
    if isinstance(shape, ObjectShape):
        counts = shape.most is not None or shape.fewest > len(shape.required)
        return bool(term.minus or (shape.implied and counts))
    unique = shape.unique and (shape.most is None or shape.most > 1)
    return bool(term.minus or shape.counted or unique)


def _rest(frame: Frame) -> int:
    return frame.rest


def _rest_outside(frame: Frame) -> int:
    return frame.parent.rest if frame.parent else 0


@dataclass(frozen=True, eq=False)
class _Member:
    """Of a name, or of a set of names that come once at most. key: its spellings, with all text
    between it and the value."""

    key: Piece
    values: Values
    required: bool


class Members:
    """The objects of one shape. Labels of its parts: 0 for the end, 1 + i for member i."""

    def __init__(self, shape: ObjectShape, brackets: Brackets, linker: Linker) -> None:
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
        """See `_Value.needed`."""
        some = [self._named[i] for i in self._required]
        return [one.values for one in (some if not self._fewest else self._all)]

    def measured(self, known: dict[int, int]) -> int:
        """See `_Value.measured`."""
        if self._shape.most is not None and self._shape.fewest > self._shape.most:
            return FAR
        if self.may_be_empty:
            return length_of(self.brackets.empty)
        closing = self._closing(_BEGIN, known)
        if closing >= FAR or (self._fewest == 0 and not self._required):
            return FAR
        return closing - self._between + length_of(self.brackets.first)

    @property
    def may_be_empty(self) -> bool:
        """Is {} one of them?"""
        return not self._required and self._shape.fewest == 0

    def opening(self) -> int:
        """Length of the shortest text from the first bracket to the last, of an object that is not
        empty. Where {} is shorter it does not matter, and nobody looks at the members for it."""
        if self.may_be_empty:
            return _LONGER if self._shape.most != 0 else FAR
        found = [
            self._length_of(self._member(index), None) - self._between + self._closing(after)
            for index, after in self._options(_BEGIN)
        ]
        return min(found, default=FAR)

    # The parts. All of them share two tables, with every member in them: of the first one, and of
    # those behind a comma. What may not come in a state costs FAR, and so is not in its part.

    def entered(self, frame: Frame) -> Iterable[Place]:
        """What follows the first bracket."""
        return ((self._part(_BEGIN, is_first=True), self._linker.frame(self, _BEGIN, frame)),)

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
        alternatives: list[Alternative] = [((self.brackets.last,), _DONE)] if before else []
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
            costs[_DONE] = 0

        def follow(frame: Frame, label: int) -> Iterable[Place]:
            outside = frame.parent or _ROOT
            if label == _DONE:
                return _after(outside) if costs[_DONE] == 0 else ()
            if label not in after:
                return ()
            inside = self._linker.frame(self, after[label], outside)
            value = self._linker.value(members[label - 1].values, self.brackets.inside)
            return ((value.part, inside),)

        return Part(table, table.far(costs), follow, _rest_outside)


class Items:
    """The arrays of one shape. Labels of its parts: 0 for the end, 1 for another item."""

    def __init__(self, shape: ArrayShape, brackets: Brackets, linker: Linker) -> None:
        self.brackets, self._shape, self._linker = brackets, shape, linker
        self._parts: dict[int, Part] = {}
        self._last, self._between = length_of(brackets.last), length_of(brackets.between)
        # From that many items on, one more makes no difference.
        self._cap = None if shape.most is not None else max(len(shape.prefix), shape.fewest)

    def _after(self, count: int) -> State:
        return (count if self._cap is None else min(count, self._cap), 0, 0, False, 0)

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
        """See `_Value.needed`."""
        some = [child.values for child in self._shape.prefix[: self._shape.fewest]]
        return [*some, self._shape.rest.values] if self._shape.fewest > len(some) else some

    def measured(self, known: dict[int, int]) -> int:
        """See `_Value.measured`."""
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
        """See `Members.opening`."""
        if self.may_be_empty:
            return _LONGER if self._shape.most != 0 else FAR
        first = self._linker.least(self._shape.item(0).values)
        return min(first + self._closing(1, None), FAR)

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
        return self._linker.value(values, self.brackets.inside).part, inside

    def _made(self, count: int) -> Part:
        alternatives: list[Alternative] = []
        costs = dict[int, int]()
        if count >= self._shape.fewest:
            alternatives.append(((self.brackets.last,), _DONE))
            costs[_DONE] = 0
        if self._may_follow(count):
            alternatives.append(((self.brackets.between,), 1))
            item = self._linker.least(self._shape.item(count).values)
            costs[1] = min(item + self._closing(self._after(count + 1)[0], None), FAR)

        def follow(frame: Frame, label: int) -> Iterable[Place]:
            outside = frame.parent or _ROOT
            return _after(outside) if label == _DONE else (self._item(count, outside),)

        return labelled(alternatives, costs, follow, _rest_outside)


def _after(frame: Frame) -> Iterable[Place]:
    """What follows a value in its context."""
    if frame.container is None:
        return ((None, frame),)
    return ((frame.container.after(frame.state), frame),)


# The columns of the table. Most schemas tell no characters apart beyond ASCII; the bytes of UTF-8
# are alike then where they may stand in the same places.

_LEADING = (0x80, 0x90, 0xA0, 0xC0, 0xC2, 0xE0, 0xE1, 0xED, 0xEE, 0xF0, 0xF1, 0xF4, 0xF5)
_FIRST = (*range(0x20, 0x80), *_LEADING)  # of each column, that of controls left out
_BREAKS = (0x0A, 0x0B)  # the same, where lines may be broken
_APART = re.compile(
    r'"pattern|"\$(ref|dynamicRef)":"(?!#)|"format":"(?!(date|time|date-time|uri|email|ipv4|ipv6|uuid)")'
)


def columns(schema: Any, breaks: bool) -> np.ndarray:
    """uint8 [256]: the column of each byte, for all texts that are valid under a schema. breaks:
    may there be line feeds between tokens of JSON?"""
    # Decimals are what the numbers of a text are read as.
    spelled = json.dumps(schema, ensure_ascii=False, separators=(",", ":"), default=str)
    if spelled.isascii() and not _APART.search(spelled):
        first = np.array((*_BREAKS, *_FIRST) if breaks else _FIRST)
        return np.searchsorted(first, np.arange(256), "right").astype(np.uint8)
    return np.arange(256, dtype=np.uint8)
