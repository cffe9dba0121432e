"""How short an object can still be made, whichever of its members come next.

    closing(S) = min { length of the rest : the rest completes an object with the members S }

Each member that may still come is in a rest or not. This is decided place by place, and of what was
decided only this matters: the marks (members that need others or are needed, subtracted shapes that
nothing has refuted) and how many members were added. Decisions that agree in both are merged. A
table from the front has the least length of what leads to some marks at a place, and one from the
back the least length of what leads on from there. Their sum around a member is the length of the
shortest rest once that member is added: two tables serve all members.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bpe_automata._automata.parts import FAR
from bpe_automata._budget import check, check_bytes
from bpe_automata._sharing import cached
from bpe_automata.errors import BudgetExceededError
from bpe_automata.schemas._entries import Entries, holds

Marks = tuple[int, int]
"""[4] and [5] of a state of `Members`, without the members of which nothing more is asked."""
Step = tuple[Marks, int, Marks]
"""Marks, the number of an entry or `_ABSENT`, and the marks behind it."""
Lengths = Any
"""An int; where members are counted, int64 [n], by how many were added."""
_ABSENT = -1
_MOST_WAYS = 20_000  # different marks at one place
_STEP_BYTES = 400  # of a step and the marks behind it


class _Uncounted:
    """Lengths, where the number of members makes no difference."""

    size, numbers, nothing = 1, 0, 0
    shorter = staticmethod(min)

    def with_one(self, lengths: int, length: int) -> int:
        """After one member more, of this length."""
        return lengths + length

    def before_one(self, lengths: int, length: int) -> int:
        """Before one member more, of this length."""
        return lengths + length

    def least(self, lengths: int) -> int:
        """By any number of members."""
        return min(lengths, FAR)

    def of(self, lengths: int, number: int) -> int:
        """By one number of members."""
        return min(lengths, FAR)

    def where(self, possible: bool, length: int) -> int:
        """By the numbers for which it is possible."""
        return length if possible else FAR


class _Counted:
    """Lengths by the number of members that were added; more than `most` make no difference."""

    shorter = staticmethod(np.minimum)

    def __init__(self, most: int) -> None:
        self.size, self.numbers = 1 + most, np.arange(1 + most)
        self._one_more = np.append(self.numbers[1:], most)
        self.nothing = np.where(self.numbers == 0, 0, FAR)

    def with_one(self, lengths: np.ndarray, length: int) -> np.ndarray:
        """After one member more, of this length."""
        found = np.empty_like(lengths)
        found[0], found[1:] = FAR, lengths[:-1]
        found[-1] = min(lengths[-2:])
        return np.minimum(found + length, FAR)

    def before_one(self, lengths: np.ndarray, length: int) -> np.ndarray:
        """Before one member more, of this length."""
        found: np.ndarray = np.minimum(lengths[self._one_more] + length, FAR)
        return found

    def least(self, lengths: np.ndarray) -> int:
        """By any number of members."""
        return min(int(lengths.min()), FAR)

    def of(self, lengths: np.ndarray, number: int) -> int:
        """By one number of members."""
        return int(lengths[min(number, self.size - 1)])

    def where(self, possible: np.ndarray, length: int) -> np.ndarray:
        """By the numbers for which it is possible."""
        return np.where(possible, length, FAR)


class Completions:
    """All rests of objects with some members; those that may still come are the ones at `places`,
    in order, and the others, which have no place."""

    def __init__(
        self,
        entries: Entries,
        lengths: list[int],
        last: int,
        places: Iterable[int],
        counts: Sequence[int],
    ) -> None:
        """lengths: of each entry, with its value and what is between two members; last: of what
        ends an object; counts: of the members so far, [1] to [5] of a state. Raises
        BudgetExceededError."""
        self._entries, self._lengths, self._last = entries, lengths, last
        few, many, later, seen, left = counts
        self._before = few, many, later
        self._places, self._free = list[int](), list[int]()
        for place in places:
            (self._places if entries.matters[place] else self._free).append(place)
        more = max(entries.caps[0] - few, entries.caps[1] - many, 0)
        more = min(more, len(self._places))
        self._kind: Any = _Counted(more) if more else _Uncounted()
        self._index_pairs()
        self._begin = seen & self._kept[0], left
        self._ends = [self._begin]
        self._steps = list[list[Step]]()
        for level in range(len(self._places)):
            self._steps.append(self._steps_from(self._ends, level))
            self._ends = list(dict.fromkeys(after for _, _, after in self._steps[-1]))
            if len(self._ends) > _MOST_WAYS:
                why = "members are counted and compared in too many ways: name or compare fewer"
                raise BudgetExceededError("ways to go on", _MOST_WAYS, why)
            steps = sum(map(len, self._steps))
            check_bytes(steps * (_STEP_BYTES + 16 * self._kind.size), "the ways to go on")

    def _index_pairs(self) -> None:
        """_pairs: of members of which one needs the other, [0] if none may still come, [1 + i] if
        the last that may is at _places[i]. _kept: [i] bits of the members in _pairs[1 + i :], or
        asked for at the end."""
        self._pairs: list[list[Marks]] = [[] for _ in range(1 + len(self._places))]
        unseen = sum(1 << place for place in self._places)
        for one, needed in self._entries.implied:
            behind = ((one | needed) & unseen).bit_length()
            self._pairs[bisect_left(self._places, behind)].append((one, needed))
        self._kept = [self._entries.always]
        for pairs in reversed(self._pairs[1:]):
            kept = self._kept[0]
            for one, needed in pairs:
                kept |= one | needed
            self._kept.insert(0, kept)

    def _steps_from(self, ways: list[Marks], level: int) -> list[Step]:
        """All that may be decided at a place."""
        check()
        entries, place = self._entries, self._places[level]
        pairs, kept = self._pairs[1 + level], self._kept[1 + level]
        kinds = [
            (number, entries.told & 1 << place, ~entries.all[number].refuted)
            for number in entries.numbers[place]
            if self._lengths[number] < FAR
        ]
        if not entries.required >> place & 1:
            kinds.append((_ABSENT, 0, ~entries.asking[place]))
        return [
            (way, number, ((way[0] | bit) & kept, way[1] & unrefuted))
            for number, bit, unrefuted in kinds
            for way in ways
            if not pairs or holds(pairs, way[0] | bit)
        ]

    @cached
    def _front(self) -> list[dict[Marks, Lengths]]:
        """By marks before each place, and behind the last: the least lengths of what leads there
        (of members that matter)."""
        kind, found = self._kind, [{self._begin: self._kind.nothing}]
        for steps in self._steps:
            check()
            before, after = found[-1], dict[Marks, Lengths]()
            for way, number, then in steps:
                new = before[way]
                if number != _ABSENT:
                    new = kind.with_one(new, self._lengths[number])
                after[then] = kind.shorter(after[then], new) if then in after else new
            found.append(after)
        return found

    @cached
    def _back(self) -> list[dict[Marks, Lengths]]:
        """By the same marks: the least lengths of what leads from there to the end."""
        kind, found = self._kind, [{way: self._tail(way, *self._before) for way in self._ends}]
        for steps in reversed(self._steps):
            check()
            after, before = found[-1], dict[Marks, Lengths]()
            for way, number, then in steps:
                if then in after:
                    new = after[then]
                    if number != _ABSENT:
                        new = kind.before_one(new, self._lengths[number])
                    before[way] = kind.shorter(before[way], new) if way in before else new
            found.append(before)
        return found[::-1]

    def _tail(self, way: Marks, few: int, many: int, later: int) -> Lengths:
        """The least lengths to the end, once all that has a place is decided. few, many, later:
        [1] to [3] of the state before the members that were added."""
        entries, kind, (seen, left) = self._entries, self._kind, way
        ways = {(left, 0): self._last}  # shapes that nothing has refuted, number of others
        for number, one in enumerate(entries.others, len(entries.named)):
            if (one.refuted or entries.caps != (0, 0)) and self._lengths[number] < FAR:
                for (some, n), length in list(ways.items()):
                    more, key = length + self._lengths[number], (some & ~one.refuted, n + 1)
                    ways[key] = min(more, ways.get(key, FAR))
        found = kind.where(kind.numbers < 0, FAR)
        for (some, n), length in ways.items():
            least, greatest = few + (n > 0 and not later), many + n
            ends = entries.ends(least + kind.numbers, greatest + kind.numbers, seen, some)
            found = kind.shorter(found, kind.where(ends, length))
        return found

    def closing(self, seen: int, left: int, at: int = 0, count: int = 0) -> int:
        """Of the members so far and `count` more, where none may come but those at places from `at`
        on and the others; FAR if nothing completes them. seen, left: [4] and [5] of a state that
        lacks nothing from before."""
        level = bisect_left(self._places, at)
        lengths = self._back[level].get((seen & self._kept[level], left))
        return FAR if lengths is None else self._kind.of(lengths, count)

    def behind(self) -> list[int]:
        """Of each entry, `closing` of the members with that one more."""
        entries, kind, found = self._entries, self._kind, [FAR] * len(self._lengths)
        for steps, before, after in zip(self._steps, self._front, self._back[1:], strict=False):
            check()
            for way, number, then in steps:
                if number != _ABSENT and then in after:
                    new = kind.least(before[way] + kind.before_one(after[then], 0))
                    found[number] = min(found[number], new)
        whole = self.closing(*self._begin)
        for place in self._free:
            for number in entries.numbers[place]:
                found[number] = whole
        few, many, later = self._before
        for number, one in enumerate(entries.others, len(entries.named)):
            for (seen, left), lengths in self._front[-1].items():
                way = seen, left & ~one.refuted
                new = lengths + self._tail(way, few + (not later), many + 1, later=1)
                found[number] = min(found[number], kind.least(new))
        return found
