"""Arrays in a linked automaton in which no value comes twice (`uniqueItems`), out of so many that
their sets cannot be written out as states.

A state holds the set of the values of the items so far, and the next item is one of

    items - { values of earlier items }

which is a set of values like any other. The automaton cannot know the value of an item that is
read, whoever reads the text can: see `_automata.comparing`. Whether an array can still have the
items that it needs is decided by the numbers of values that are left for them, and where these are
few, by a matching.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import Any, NamedTuple, NoReturn

import numpy as np

from bpe_automata._automata.comparing import ComparingDFA
from bpe_automata._automata.json_texts import Name
from bpe_automata._automata.linked import LinkedDFA
from bpe_automata._automata.parts import FAR, Part, Place
from bpe_automata._budget import Budget, check
from bpe_automata._sharing import Lock, cached
from bpe_automata.errors import BudgetExceededError
from bpe_automata.schemas._boolean import intersection
from bpe_automata.schemas._few_values import (
    MAX_VALUES,
    SingleArray,
    can_differ,
    few_values,
    single,
    without,
)
from bpe_automata.schemas._frames import (
    ROOT,
    Frame,
    Linking,
    Separated,
    State,
)
from bpe_automata.schemas._style import Brackets
from bpe_automata.schemas._values import ArrayShape, Term, Values, is_empty


class _Way(NamedTuple):
    """Values of which the next item may be: the `only` one, or all `but` some. after: the state
    behind it, as long as its value is not known."""

    only: Name | None
    but: tuple[Name, ...]
    after: State


class UniqueItems(Separated):
    """The arrays of one term, which subtracts none but single arrays.

    A state is a tuple:

        count      of the items, as far as it matters
        which      values were seen, as far as these are known (bits)
        unrefuted  the subtracted arrays that no item has refuted (bits)

    Items are of a slot each: the first ones of their own in the prefix, all others of the one
    behind it. Values are `seen` once an item has them; with `enough` of them for a slot, it makes
    no difference how many more there are.
    """

    def __init__(self, term: Term[ArrayShape], brackets: Brackets, linker: Linking) -> None:
        super().__init__(term.shape, (0, 0, (1 << len(term.minus)) - 1), brackets, linker)
        self._shape, self._minus = term.shape, term.minus
        self._names, self._bit = list[Name](), dict[Name, int]()  # of all items; 1 << the place
        self._values_of: dict[tuple[int, Name | None, tuple[Name, ...]], Values] = {}
        self._few: dict[tuple[int, int, str], frozenset[Name] | int | None] = {}
        self._ways_of: dict[State, list[_Way]] = {}
        # From that many items on, one more makes no difference.
        least = max(len(term.shape.prefix), self._fewest, *(len(n.prefix) for n in term.minus), 0)
        self._cap = None if self._most is not None else least

    @cached
    def _subtracted(self) -> list[tuple[Name, ...]]:
        """The arrays that are subtracted."""
        return [one.names for one in self._minus if isinstance(one, SingleArray)]

    def _next(self, count: int) -> int:
        return count + 1 if self._cap is None else min(count + 1, self._cap)

    # What may come.

    def _following(self, state: State) -> Iterator[tuple[Values, State]]:
        """See `Separated._following`."""
        for way in self._ways(state):
            yield self._values(state[0], way.only, way.but), way.after

    def choices(self, state: State) -> NoReturn:
        """Raises BudgetExceededError: a state that is written out does not know the values."""
        why = "items out of more are compared, not told apart by states: link the schema"
        raise BudgetExceededError("values", MAX_VALUES, why)

    def _ways(self, state: State) -> list[_Way]:
        """What may come next, without the automata of the values."""
        found = self._ways_of.get(state)
        if found is None:
            found = self._ways_of[state] = list(self._found_ways(*state))
        return found

    def _found_ways(self, count: int, which: int, unrefuted: int) -> Iterator[_Way]:
        if self._most is not None and count >= self._most:
            return
        seen, after = self._seen(which), self._next(count)
        asked = self._asked(count, unrefuted)
        for name, bits in asked.items():
            if self._may_be(count, name, seen) and self._can_end(after, seen | {name}, bits):
                yield _Way(name, (), (after, which, bits))
        others = seen | asked.keys()
        if self._has_values(count, frozenset(seen), others):
            vain = self._needed_later(after, others)
            vain = [name for name in vain if not self._can_end(after, seen | {name}, 0)]
            but = (*seen, *(asked.keys() - seen), *vain)
            yield _Way(None, but, (after, which, 0))

    def _asked(self, count: int, unrefuted: int) -> dict[Name, int]:
        """The next items of some subtracted arrays (bits), and which arrays each of them leaves."""
        found = dict[Name, int]()
        for i, array in enumerate(self._subtracted):
            if unrefuted >> i & 1 and len(array) > count:
                found[array[count]] = found.get(array[count], 0) | 1 << i
        return found

    def _may_be(self, count: int, name: Name, seen: Set[Name]) -> bool:
        """May an item be of a value, which the others are not of?"""
        return name not in seen and not is_empty(self._values(count, name, ()))

    def _values(self, count: int, only: Name | None, but: tuple[Name, ...]) -> Values:
        """The values of an item, if it is only one of them, or all but some."""
        slot = min(count, len(self._shape.prefix))
        found = self._values_of.get((slot, only, but))
        if found is None:
            every = self._shape.item(slot).values
            found = without(every, but) if only is None else intersection(every, single(only))
            self._values_of[slot, only, but] = found
        return found

    def may_end(self, state: State) -> bool:
        """See `Container.may_end`."""
        count, _, unrefuted = state
        return count >= self._fewest and not any(
            unrefuted >> i & 1 and len(array) == count for i, array in enumerate(self._subtracted)
        )

    def _may_begin(self) -> bool:
        return bool(self._ways(self.begin))

    def _seen(self, which: int) -> Set[Name]:
        """The values of some items, in order."""
        found = dict[Name, None]()
        while which:
            bit = which & -which
            found[self._names[bit.bit_length() - 1]] = None
            which ^= bit
        return found.keys()

    # What can still come to an end.

    def _can_end(
        self, count: int, seen: Set[Name], unrefuted: int, measuring: bool = False
    ) -> bool:
        """Is there an array that goes on like this behind some items? measuring: are lengths of
        texts not known yet?"""
        check()
        if self.may_end((count, 0, unrefuted)):
            return True
        if self._most is not None and count >= self._most:
            return False
        asked = self._asked(count, unrefuted)
        if self._has_values(count, seen, seen | asked.keys(), measuring):
            return True
        return any(
            self._may_be(count, name, seen)
            and self._can_end(self._next(count), seen | {name}, bits, measuring)
            for name, bits in asked.items()
        )

    def _has_values(
        self, count: int, seen: Set[Name], but: Set[Name], measuring: bool = False
    ) -> bool:
        """Are there values for the next item, out of all but some, and for the others that must
        follow, so that all differ from what was seen, and from each other?"""
        slots = self._slots(count + 1)
        enough = len(but) + 1 + sum(slots.values())
        first = self._few_at(count, enough)
        if first is None and not measuring:
            others = self._values(count, None, tuple(but))
            first = frozenset() if self._linker.least(others) >= FAR else enough + 1
        scarce = Counter[frozenset[Name]]()
        if isinstance(first, frozenset):
            scarce[frozenset(first - but)] += 1
        for slot, items in slots.items():
            values = self._few_at(slot, enough)
            if isinstance(values, frozenset):
                scarce[frozenset(values - seen)] += items
        return can_differ(scarce)

    def _needed_later(self, count: int, but: Set[Name]) -> list[Name]:
        """The values, but for some, that the items behind so many might lack if they came before:
        those of slots that have but a few."""
        found, slots = dict[Name, None](), self._slots(count)
        enough = len(but) + 1 + sum(slots.values())
        for slot in slots:
            values = self._few_at(slot, enough)
            if isinstance(values, frozenset):
                found |= dict.fromkeys(sorted(values - but, key=repr))
        return list(found)

    def _slots(self, count: int) -> dict[int, int]:
        """The slots of the items that must follow so many, and how many items are of each."""
        n = len(self._shape.prefix)
        found = dict.fromkeys(range(count, min(n, self._fewest)), 1)
        if self._fewest > max(count, n):
            found[n] = self._fewest - max(count, n)
        return found

    def _few_at(self, slot: int, enough: int, kind: str = "") -> frozenset[Name] | int | None:
        """See `few_values`. kind: "array" or "object", if only those count."""
        slot = min(slot, len(self._shape.prefix))
        enough = 1 << enough.bit_length()  # so that few different ones are asked for
        key = slot, enough, kind
        if key not in self._few:
            values = self._shape.item(slot).values
            if kind == "array":
                values = Values(arrays=values.arrays)
            elif kind:
                values = Values(objects=values.objects)
            self._few[key] = few_values(values, enough)
        return self._few[key]

    def earlier(self, state: State) -> Set[Name]:
        """The values of the items before one."""
        return self._seen(state[1])

    def has_room(self, state: State, more: int, kind: str) -> bool:
        """Are there values enough for all that must follow an item, and more? more: items that the
        state does not know; kind: "array" or "object", if those alone are counted."""
        count, which, unrefuted = state
        n = len(self._shape.prefix)
        enough = which.bit_count() + more + 2 + max(0, self._fewest - count)
        slots = range(min(count, n), n + 1)
        return not unrefuted and all(
            isinstance(self._few_at(slot, enough, kind), int) for slot in slots
        )

    # Lengths are bounds from below: the shortest value counts, even if an earlier item has it.

    def _closing(self, state: State, known: dict[int, int] | None) -> int:
        count, which, unrefuted = state
        if not self._can_end(count, self._seen(which), unrefuted, measuring=known is not None):
            return FAR
        length = self._last
        for slot, items in self._slots(count).items():
            length += items * self._length_of(self._shape.item(slot).values, known)
        return min(length, FAR)

    def needed(self) -> list[Values]:
        """See `Container.needed`."""
        return [self._shape.item(slot).values for slot in self._slots(0)]

    # What is behind an item.

    def _cost_of_next(self, state: State) -> int | None:
        """See `Separated._cost_of_next`; never FAR."""
        ways = self._ways(state)
        if not ways:
            return None
        least = self._linker.least(self._shape.item(state[0]).values)
        return min(FAR - 1, least + min(self.closing(way.after) for way in ways))

    def after_item(self, frame: Frame, name: Name) -> Place | None:
        """What follows an item of a value; None where an earlier one is equal to it."""
        count, which, unrefuted = frame.state
        if name not in self._bit:
            self._bit[name] = 1 << len(self._names)
            self._names.append(name)
        bit = self._bit[name]
        if which & bit:
            return None
        state = count, which | bit, unrefuted
        inside = self._linker.frame(self, state, frame.parent or ROOT)
        return self.after(state), inside


def comparing(
    begin: Sequence[Place],
    byte_class: np.ndarray,
    budget: Budget,
    lock: Lock,
    origin: tuple[Callable[..., LinkedDFA], tuple[Any, ...]],
) -> ComparingDFA:
    """The linked automaton of parts among which are those of `UniqueItems`."""
    given = begin, byte_class, budget
    return ComparingDFA(*given, holding=_HeldItems(), lock=lock, origin=origin)


class _HeldItems:
    """See `_automata.comparing.Holding`."""

    def compares(self, context: Any) -> bool:
        """Is it that of an item of `UniqueItems`?"""
        return any(True for _ in _of_unique(context))

    def earlier(self, context: Any) -> Set[Name]:
        """See `UniqueItems.earlier`."""
        return {name for one, at in _of_unique(context) for name in one.earlier(at)}

    def has_room(self, context: Any, more: int, kind: str = "") -> bool:
        """See `UniqueItems.has_room`."""
        return all(one.has_room(at, more, kind) for one, at in _of_unique(context))

    def held(self, part: Part, at: int, context: Any, name: Name) -> Iterable[Place]:
        """What follows the item."""
        container: UniqueItems | None = context.container  # None: of several, inside of an item
        if not container or part is not container.after(context.state) or at != part.table.start:
            return ()
        found = container.after_item(context, name)
        return () if found is None else (found,)


def _of_unique(context: Any) -> Iterator[tuple[UniqueItems, State]]:
    """The arrays of which an item has a context, and their states."""
    if isinstance(context, Frame):
        for one in context.several or (context,):
            if isinstance(one.container, UniqueItems):
                yield one.container, one.state
