"""Linked automata: byte automata that are made of parts, and written down only where they are met.

    part       a small DFA whose accepting states are exits, with labels
    context    what surrounds a copy of a part: it says what follows each exit
    instance   a block of a part in a context: rows of the table, copied when it is first entered
    state      a row of an instance; or, where what was read so far may have left a part or not, a
               set of rows, which has a row of its own

Parts are made once and serve all contexts. Contexts may be infinitely many, such as those of a
schema that contains itself: what no text has led to takes no memory. Of a set of rows the next
states are sets of rows again (the subset construction, one state at a time), so the automaton is
deterministic although parts may overlap. Every row can be left towards acceptance: whoever makes
parts leaves out what cannot.

The table has room for three times `Budget.max_states` from the start, so it never moves (memory
that nobody writes to is not taken). A step that is not written down yet is a negative entry:
kernels follow it by `_kernels.links.followed`, everybody else by `LinkedDFA.step`.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bpe_automata._automata.assembly import reduced
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.parts import BYTE, FAR, ROWS, Block, Join, Part, Place, labelled
from bpe_automata._budget import Budget, check, out_of_memory, spending
from bpe_automata._kernels.distance import NEVER
from bpe_automata._kernels.links import register
from bpe_automata._limits import NUMBERS, untouched
from bpe_automata._sharing import Immutable, Lock, locked
from bpe_automata.errors import (
    BpeAutomataError,
    BudgetExceededError,
    EmptyLanguageError,
    UnsupportedFeatureError,
)

_DEFAULT = Budget()
_FEWER = "the texts read so far have used them up; make the automaton anew, or pass a larger Budget"
_STOP = 1 / 8  # chance that a sample ends in an accepting state that could go on
_ROOM = 3  # times as many rows as a budget has states: memory is taken by those that are written


@dataclass(frozen=True, eq=False)
class _Instance:
    """A block of a part in a context. base: the row of its first state, `first` of the part; step:
    the number of the first of its steps away."""

    base: int
    part: Part
    context: Any
    first: int
    step: int
    block: Block


class LinkedDFA(Immutable):
    """{ w in bytes* : start --w--> accepting }, with the dead state 0, written down as it is met.

    As of a `ByteDFA`, arrays over all states, of which `n_states` have room: trans int32 [n_states,
    n_classes], byte_class uint8 [256], accepting bool [n_states]; and far int32 [n_states], bytes
    to the nearest accepting state, NEVER of state 0; plain bool [n_states], is that by `PLAIN`
    bytes, as far as is known? All states but 0 lead to acceptance. Shared by any number of threads.
    `to_dfa` writes all of it down, where that ends.
    """

    is_empty = False

    def __init__(
        self,
        begin: Sequence[Place],
        byte_class: np.ndarray,
        budget: Budget = _DEFAULT,
        readable: np.ndarray | None = None,
        *,
        lock: Lock | None = None,
        origin: tuple[Callable[..., LinkedDFA], tuple[Any, ...]] | None = None,
    ) -> None:
        """begin: where texts begin. byte_class: uint8 [256], columns that tell apart whatever its
        parts do. budget: three times its states may be written down. readable: bool [256], the
        bytes by which each state must lead to acceptance, all by default: entering a part where
        that is not so raises UnsupportedFeatureError. lock: held while parts are made and entered.
        origin: a function and its arguments that make the automaton anew, in another process."""
        self.lock = lock or Lock()
        self._origin = origin
        self._readable = None if readable is None or readable.all() else readable
        self.budget, self.byte_class = budget, byte_class
        self._begin = tuple(begin)
        columns = int(byte_class.max()) + 1
        # So that each cell may be a step with a number of its own.
        room = min(_ROOM * budget.max_states, NUMBERS // (columns + 1))
        try:
            self.trans = untouched((room, columns), np.int32)
            self.accepting = untouched(room, np.bool_)
            self.far = untouched(room, np.int32)
            self.plain = untouched(room, np.bool_)
        except (OSError, MemoryError) as error:
            raise out_of_memory(budget) from error
        self.far[0] = NEVER
        self._count = 1
        self._bases: list[int] = []  # of instances, and the states that are sets
        self._instance_with: dict[int, _Instance] = {}
        self._instance_of: dict[tuple[int, int, int], _Instance] = {}
        # A step that is not written down: the rows that it leads to, and whether a text may end;
        # or, of a step away from a block, the instance and the number in `away`.
        self._steps: list[tuple[tuple[int, ...], bool] | tuple[_Instance, int]] = []
        self._state_after: dict[int, int] = {}
        self._step_of: dict[tuple[tuple[int, ...], bool], int] = {}
        self._held: dict[int, list[int]] = {}  # rows of sets, by the steps that they hold
        self._rows_of: dict[int, tuple[tuple[int, ...], bool]] = {}  # of states that are sets
        self._state_of: dict[tuple[tuple[int, ...], bool], int] = {}
        register(self)
        rows, ends = self._closed((), self._begin)
        self.start = self._state(rows, ends)

    def __reduce__(self) -> tuple[object, ...]:
        if self._origin is None:
            why = "its parts are functions of this process: give it an origin"
            raise UnsupportedFeatureError("pickling this linked automaton", why)
        return self._origin

    @property
    def n_states(self) -> int:
        """How many states there is room for."""
        return len(self.trans)

    @property
    def n_classes(self) -> int:
        """The number of columns."""
        return self.trans.shape[1]

    @property
    def n_written(self) -> int:
        """The number of states that are written down, the dead one included."""
        return self._count

    def step(self, state: int, byte: int) -> int:
        """The state after one byte. Raises BudgetExceededError."""
        entry = int(self.trans[state, self.byte_class[byte]])
        return entry if entry >= 0 else self.enter(entry)

    def walk(self, data: bytes, state: int | None = None) -> int:
        """The state after some bytes, from `state` (the start by default)."""
        state = self.start if state is None else state
        for byte in data:
            state = self.step(state, byte)
        return state

    def accepts(self, data: bytes) -> bool:
        """Whether `data` is in the language."""
        return bool(self.accepting[self.walk(data)])

    def live_bytes(self, state: int) -> np.ndarray:
        """int64: the bytes that keep an accepting state in reach, in order."""
        return np.flatnonzero(self.trans[state][self.byte_class])

    def shortest(self, state: int | None = None) -> bytes:
        """A shortest accepted string, from `state` (the start by default)."""
        found, state = bytearray(), self.start if state is None else state
        while not self.accepting[state]:
            check()
            byte = self._byte_home(state, self.live_bytes(state).tolist())
            found.append(byte)
            state = self.step(state, byte)
        return bytes(found)

    def sample(self, rng: random.Random, max_bytes: int = 64) -> bytes:
        """A random accepted string: a walk that turns home when `max_bytes` come near. Longer than
        that only if the shortest string is."""
        found, state = bytearray(), self.start
        while True:
            check()
            live = self.live_bytes(state).tolist()
            left = max_bytes - len(found)
            near = [byte for byte in live if self.far[self.step(state, byte)] < left]
            if self.accepting[state] and (not near or rng.random() < _STOP):
                return bytes(found)
            byte = near[rng.randrange(len(near))] if near else self._byte_home(state, live)
            found.append(byte)
            state = self.step(state, byte)

    def strings(self, limit: int) -> Iterator[bytes]:
        """All accepted strings in length-lexicographic order. Raises BudgetExceededError as soon as
        there must be more than `limit` of them; so always, for an infinite language."""
        yielded, level = 0, [(b"", self.start)]
        while level:
            if yielded + len(level) > limit:  # each can be completed, and to different strings
                raise BudgetExceededError("strings", limit, "the language holds more")
            after = []
            for prefix, state in level:
                check()
                if self.accepting[state]:
                    yielded += 1
                    yield prefix
                for byte in self.live_bytes(state).tolist():
                    after.append((prefix + bytes((byte,)), self.step(state, byte)))
            level = after

    def to_dfa(self, budget: Budget = _DEFAULT) -> ByteDFA:
        """All of it, built in full: minimal and trimmed. Raises BudgetExceededError where it has
        more states, before it is minimised, than the budget or than there is room for: so always
        where they are infinitely many."""
        with spending(budget):
            states, number = [0, self.start], {0: 0, self.start: 1}
            at = 1
            while at < len(states):
                check()
                row = self.trans[states[at]]
                for entry in np.unique(row).tolist():
                    after = entry if entry >= 0 else self.enter(entry)
                    if after not in number:
                        if len(states) > budget.max_states:
                            advice = "the automaton is larger, or has no end; pass a larger Budget"
                            raise BudgetExceededError("states", budget.max_states, advice)
                        number[after] = len(states)
                        states.append(after)
                at += 1
            numbers = np.zeros(self._count, np.int32)
            numbers[states] = np.arange(len(states), dtype=np.int32)
            trans = numbers[self.trans[states]]
            return reduced((trans, self.byte_class), self.accepting[states], 1, budget)

    def live_by(self, readable: np.ndarray) -> LinkedDFA:
        """The same automaton, of which every state leads to acceptance by some bytes (bool [256])
        alone: entering a part where that is not so raises UnsupportedFeatureError."""
        given = self._begin, self.byte_class, self.budget, readable
        return LinkedDFA(*given, lock=self.lock, origin=(LinkedDFA.live_by, (self, readable)))

    @locked
    def state_before(self, byte: int) -> int:
        """A copy of the start, from which `byte` leads to the start. Its `far` is a bound."""
        if (self.byte_class == self.byte_class[byte]).sum() != 1:
            raise BpeAutomataError(f"byte {byte} has no column of its own")
        found = self._set(bool(self.accepting[self.start]), self._length(self.start) + BYTE)
        self._hold(found, self.trans[self.start])
        self.trans[found, self.byte_class[byte]] = self.start
        return found

    def begun_with(self, data: bytes) -> LinkedDFA:
        """The automaton that reads `data` first."""
        if not data:
            return self
        rest = self._length(self.start)
        part = labelled([((data,), 0)], {0: 0}, lambda *_: self._begin, lambda _: rest)
        given = [(part, None)], _told_apart(self.byte_class, data), self.budget, self._readable
        return LinkedDFA(*given, lock=self.lock, origin=(LinkedDFA.begun_with, (self, data)))

    def _byte_home(self, state: int, live: list[int]) -> int:
        """The byte that leads to the state nearest to acceptance."""
        if not live:
            raise EmptyLanguageError("this state leads nowhere")
        return min(live, key=lambda byte: int(self.far[self.step(state, byte)]))

    # What is written down.

    @locked
    def enter(self, entry: int) -> int:
        """The state that a negative entry of the table stands for. Raises BudgetExceededError."""
        number = -1 - entry
        known = self._state_after.get(number)
        if known is not None:
            return known
        led, ends = self._led(number)
        rows, then = self._closed(led)
        state = self._state(rows, ends or then)
        if state in self._rows_of:
            self._rows_of[state] = led, ends  # so that contexts are joined with those of others
        self._state_after[number] = state
        self._replace(number, entry, state)
        return state

    def _led(self, number: int) -> tuple[tuple[int, ...], bool]:
        """The rows to which a step leads, without what follows them, and whether a text may end."""
        first, then = self._steps[number]
        if not isinstance(first, _Instance):
            return first, bool(then)
        return (self._row(first.part, first.context, first.block.away[then]),), False

    def _replace(self, number: int, entry: int, state: int) -> None:
        """Write the state in place of the entry, wherever that stands."""
        instance, _ = self._steps[number]
        if isinstance(instance, _Instance):
            table = self.trans[instance.base : instance.base + len(instance.block.table)]
            table[table == entry] = state
        for row in self._held.pop(number, ()):
            found = self.trans[row]
            found[found == entry] = state

    def _closed(
        self, rows: Iterable[int], places: Iterable[Place] = ()
    ) -> tuple[tuple[int, ...], bool]:
        """(rows, may a text end): those given, the beginnings of places, and whatever follows the
        exits among them; without rows that read nothing."""
        waiting, seen, ends = list(rows), set[int](), False
        joining: dict[int, tuple[int, Part, Join, list[Any]]] = {}  # rank first; by the part
        while True:
            for part, context in places:
                if part is None:
                    ends = True
                elif part.joined is None:
                    waiting.append(self._row(part, context, part.table.start))
                else:
                    found = joining.setdefault(id(part), (part.rank, part, part.joined, []))
                    found[-1].append(context)
            if not waiting and joining:
                _, part, joined, contexts = joining.pop(min(joining, key=lambda k: joining[k][0]))
                waiting.append(self._row(part, joined(contexts), part.table.start))
            if not waiting:
                return tuple(sorted(row for row in seen if self.trans[row].any())), ends
            places = self._behind(waiting.pop(), seen)

    def _behind(self, row: int, seen: set[int]) -> Iterator[Place]:
        """What follows a row, if it is an exit and was not seen before."""
        if row in seen:
            return
        seen.add(row)
        instance = self._instance_at(row)
        for label in instance.part.table.exits.get(row - instance.base + instance.first, ()):
            yield from instance.part.follow(instance.context, label)

    def _row(self, part: Part, context: Any, state: int) -> int:
        """The row of a state of a part in a context."""
        number, at = divmod(state, ROWS)
        key = id(part), id(context), number
        found = self._instance_of.get(key)
        if found is None:
            found = self._instance_of[key] = self._copied(part, context, number)
        return found.base + at

    def _copied(self, part: Part, context: Any, number: int) -> _Instance:
        block, first = part.table.block(number, self.byte_class), number * ROWS
        if self._readable is not None and not part.table.is_left_by(self._readable):
            raise UnsupportedFeatureError(
                "a linked automaton over this tokenizer",
                "it has no id for some byte that a text needs: use the automaton's `to_dfa`",
            )
        table, n = block.table, len(block.table)
        if part.dead is not None:
            table = _alive(block, part.dead, first)
        base, step = self._room(n), len(self._steps)
        self.trans[base : base + n] = np.where(
            table > 0, table + (base - 1), np.where(table < 0, table - step, 0)
        )
        far = part.far[first : first + n] + part.rest(context)
        self.far[base : base + n] = np.minimum(far, FAR) // BYTE
        self.plain[base : base + n] = far % BYTE == 0
        instance = _Instance(base, part, context, first, step, block)
        self._steps += [(instance, k) for k in range(len(block.away))]
        self._instance_with[base] = instance
        self._bases.append(base)
        return instance

    def _room(self, rows: int) -> int:
        """The first of so many new rows."""
        if self._count + rows > len(self.trans):
            raise BudgetExceededError("states", len(self.trans), _FEWER)
        self._count += rows
        return self._count - rows

    def _instance_at(self, row: int) -> _Instance:
        return self._instance_with[self._bases[bisect_right(self._bases, row) - 1]]

    def _state(self, rows: tuple[int, ...], ends: bool) -> int:
        """The state of a set of rows with all that follows them."""
        if not rows and not ends:
            return 0
        if len(rows) == 1 and not ends:
            instance = self._instance_at(rows[0])
            if rows[0] - instance.base + instance.first not in instance.part.table.exits:
                return rows[0]
        key = rows, ends
        found = self._state_of.get(key)
        if found is None:
            found = self._set(ends, 0 if ends else min(map(self._length, rows)))
            self._hold(found, self._merged(rows))
            self._rows_of[found] = key
            self._state_of[key] = found
        return found

    def _length(self, state: int) -> int:
        """Of the shortest text from a state to acceptance, or a little more."""
        return int(self.far[state]) * BYTE + (not self.plain[state])

    def _set(self, ends: bool, length: int) -> int:
        """A new state that is no row of an instance."""
        found = self._room(1)
        self._bases.append(found)
        self.accepting[found], self.far[found] = ends, length // BYTE
        self.plain[found] = length % BYTE == 0
        return found

    def _hold(self, state: int, row: np.ndarray) -> None:
        """Write a row that holds steps of others, which are written down there as well, later."""
        for entry in np.unique(row[row < 0]).tolist():
            self._held.setdefault(-1 - entry, []).append(state)
        self.trans[state] = row

    def _merged(self, rows: tuple[int, ...]) -> np.ndarray:
        """The row of a set of rows."""
        if not rows:
            return self.trans[0]
        table = self.trans[list(rows)]
        readers = (table != 0).sum(axis=0)
        merged: np.ndarray = np.where(readers == 1, table.sum(axis=0), 0)
        shared, known = np.flatnonzero(readers > 1), dict[tuple[int, ...], int]()
        for column, entries in zip(shared.tolist(), table[:, shared].T.tolist(), strict=True):
            key = tuple(entries)  # most bytes of a string lead alike
            if key not in known:
                distinct = sorted({entry for entry in entries if entry})
                known[key] = distinct[0] if len(distinct) == 1 else self._step_to(distinct)
            merged[column] = known[key]
        return merged

    def _step_to(self, entries: list[int]) -> int:
        """The entry of a step to several others at once."""
        found, ends = set[int](), False
        for entry in entries:
            if entry < 0:
                rows, then = self._led(-1 - entry)
            else:
                rows, then = self._rows_of.get(entry, ((entry,), False))
            found.update(rows)
            ends |= then
        key = tuple(sorted(found)), ends
        number = self._step_of.get(key)
        if number is None:
            number = len(self._steps)
            self._steps.append(key)
            self._step_of[key] = number
        known = self._state_after.get(number)
        return -1 - number if known is None else known


def _alive(block: Block, dead: np.ndarray, first: int) -> np.ndarray:
    """The table of a block without the states that are not in the part."""
    inside = np.append(True, dead[first : first + len(block.table)])  # by 1 + the row
    away = np.append(dead[block.away], True) if block.away else np.ones(1, np.bool_)
    table = block.table
    gone = np.where(table >= 0, inside[np.maximum(table, 0)], away[-1 - np.minimum(table, -1)])
    gone |= dead[first : first + len(table), None]
    return np.where(gone, 0, table)


ByteAutomaton = ByteDFA | LinkedDFA


def explicit(automaton: ByteAutomaton, feature: str) -> ByteDFA:
    """The automaton, for what looks at all of its states. feature: what that is. Raises
    UnsupportedFeatureError for a linked one."""
    if isinstance(automaton, LinkedDFA):
        why = "it looks at all states: give what `to_dfa` of the automaton returns"
        raise UnsupportedFeatureError(f"{feature} of a linked automaton", why)
    return automaton


def _told_apart(byte_class: np.ndarray, data: bytes) -> np.ndarray:
    """The columns, with those of some bytes apart."""
    alone = np.zeros(256, np.int64)
    alone[sorted(set(data))] = np.arange(1, 1 + len(set(data)))
    return np.unique(byte_class.astype(np.int64) * 257 + alone, return_inverse=True)[1].astype(
        np.uint8
    )
