"""Linked automata: byte automata that are made of parts, and written down only where they are met.

    part       a small DFA whose accepting states are exits, with labels
    context    what surrounds a copy of a part: it says what follows each exit
    instance   a block of a part in a context: states, numbered when it is first entered
    state      one of an instance; or, where what was read so far may have left a part or not, a set
               of such states

Parts are made once and serve all contexts: the rows of a block are written once, and say of each
step how far it leads within the instance, or that it leads away. Contexts may be infinitely many,
such as those of a schema that contains itself: what no text has led to takes no memory. Of a set
the next states are sets again (the subset construction, one state at a time), so the automaton is
deterministic although parts may overlap. From every state acceptance can be reached: whoever makes
parts leaves out what cannot.

The arrays have room for `_ROOM` times `Budget.max_states` states from the start and never move;
pages that nobody writes to take no memory. A state is "written down" when it is added to them, and
a "step away" leaves its instance. Kernels follow a step that is not written down yet by
`_kernels.links.step`, everybody else by `LinkedDFA.step`.
"""

from __future__ import annotations

import random
import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from bpe_automata._automata.assembly import reduced
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.part_tables import labelled
from bpe_automata._automata.parts import BYTE, ROWS, Block, Covers, Join, Part, Place, Table
from bpe_automata._budget import Budget, check, out_of_memory, spending
from bpe_automata._kernels.distance import NEVER
from bpe_automata._kernels.links import HERE, Steps, register
from bpe_automata._kernels.references import packed
from bpe_automata._kernels.written import (
    APART,
    cut,
    merge,
    write_cut,
    write_instance,
    write_row,
    write_rows,
)
from bpe_automata._limits import untouched
from bpe_automata._sharing import Immutable, Lock, locked
from bpe_automata.errors import (
    BpeAutomataError,
    BudgetExceededError,
    EmptyLanguageError,
    UnsupportedFeatureError,
)

if TYPE_CHECKING:
    from bpe_automata.viz import Picture

_DEFAULT = Budget()
_FEWER = "the texts read so far have used them up; make the automaton anew, or pass a larger Budget"
_STOP = 1 / 8  # chance that a sample ends in an accepting state that could go on
_ROOM = 6  # times as many states as a budget has: memory is taken by those that are written
_STEPS = 2  # times as many steps away
_AHEAD = 1024  # states that are counted at once, see `count_into`
_ROWS, _MORE_ROWS = 3, 1000  # rows of the table; more, so that a small budget has some for a block


@dataclass(frozen=True, eq=False)
class _Instance:
    """A block of a part in a context. base: its first state, which is state `first` of the
    part."""

    base: int
    part: Part
    context: Any
    first: int
    block: Block


class LinkedDFA(Immutable):
    """{ w in bytes* : start --w--> accepting }, with the dead state 0, written down as it is met.

    byte_class uint8 [256], as of a `ByteDFA`. Over all states, of which `n_states` have room:
    accepting bool; far int32, bytes to the nearest accepting state or a few less, NEVER of state 0;
    plain bool, is that by `PLAIN` bytes, as far as is known? All states but 0 lead to acceptance.
    Shared by any number of threads. `to_dfa` writes all of it down, where that ends.
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
        parts do. budget: six times its states may be written down. readable: bool [256], the
        bytes by which each state must lead to acceptance, all by default: entering a part where
        that is not so raises UnsupportedFeatureError. lock: held while parts are made and entered.
        origin: a function and its arguments that make the automaton anew, in another process."""
        self.lock = lock or Lock()
        self._origin = origin
        self._readable = None if readable is None or readable.all() else readable
        self.budget, self.byte_class = budget, byte_class
        self._begin = tuple(begin)
        room = min(_ROOM * budget.max_states, HERE - 1)
        n_rows = min(_ROWS * budget.max_states + _MORE_ROWS, HERE)
        try:
            row, away, behind = (untouched(k * room, np.int32) for k in (1, 1, _STEPS))
            trans = untouched((n_rows, int(byte_class.max()) + 1), np.int32)
            self.accepting = untouched(room, np.bool_)
            self.far = untouched(room, np.int32)
            self.plain = untouched(room, np.bool_)
        except (OSError, MemoryError) as error:
            raise out_of_memory(budget) from error
        self.steps = Steps(trans, byte_class, row, away, behind)
        self.far[0] = NEVER
        self._count, self._n_counted, self._n_rows = 1, 1, 1
        self._counted: list[weakref.ref[np.ndarray]] = []
        self._bases: list[int] = []  # of instances, and the states that are sets
        self._instance_with: dict[int, _Instance] = {}
        self._instance_of: dict[tuple[int, int, int], _Instance] = {}
        # Blocks with their rows, by table or part.
        self._rows_of: dict[tuple[int, int], tuple[Block, np.ndarray, Part | Table]] = {}
        # Steps away: the first number of those of an instance, or that of one to a set of states,
        # with whether a text may end.
        self._n_steps = 0
        self._first_steps: list[int] = []
        self._leading: dict[int, _Instance | tuple[tuple[int, ...], bool]] = {}
        self._number_of: dict[tuple[tuple[int, ...], bool], int] = {}
        self._members: dict[int, tuple[tuple[int, ...], bool]] = {}  # of states that are sets
        self._state_of: dict[tuple[tuple[int, ...], bool], int] = {}
        register(self)
        states, ends = self._closed((), self._begin)
        self.start = self._state(states, ends)

    def __reduce__(self) -> tuple[object, ...]:
        if self._origin is None:
            why = "its parts are functions of this process: give it an origin"
            raise UnsupportedFeatureError("pickling this linked automaton", why)
        return self._origin

    @property
    def n_states(self) -> int:
        """How many states there is room for."""
        return len(self.accepting)

    @property
    def n_classes(self) -> int:
        """The number of columns."""
        return self.steps.trans.shape[1]

    @property
    def n_written(self) -> int:
        """The number of states that are written down, the dead one included."""
        return self._count

    def step(self, state: int, byte: int) -> int:
        """The state after one byte. Raises BudgetExceededError."""
        cell = int(self.steps.trans[self.steps.row[state], self.byte_class[byte]])
        if cell >= 0:
            return state + cell - HERE if cell else 0
        number = int(self.steps.away[state]) - 1 - cell
        return int(self.steps.behind[number]) or self.enter(number)

    def after(self, states: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """int32: the state after a byte of a column from each of many states, int32. Raises
        BudgetExceededError."""
        found = self._leads(states, columns)
        for entry in np.unique(found[found < 0]).tolist():
            found[found == entry] = self.enter(-1 - entry)
        return found.astype(np.int32)

    def _leads(self, states: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """int64: the states that columns lead to; -1 - the number of a step that is not written
        down."""
        _, _, row, away, behind = self.steps
        cells = self.steps.trans[row[states], columns].astype(np.int64)
        found = np.where(cells > 0, states + cells - HERE, 0)
        left = cells < 0
        numbers = np.broadcast_to(away[states], cells.shape)[left] - 1 - cells[left]
        found[left] = np.where(behind[numbers] > 0, behind[numbers], -1 - numbers)
        return found

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
        return np.flatnonzero(self.steps.trans[self.steps.row[state]][self.byte_class])

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

    def equivalent(self, other: ByteAutomaton, budget: Budget = _DEFAULT) -> bytes | None:
        """None if the languages are equal; else the first text, in length-lexicographic order, that
        is in one only. Raises BudgetExceededError for more pairs of states than the budget has
        states: so it may be where there are infinitely many."""
        with spending(budget):
            return self._first_difference(other, budget.max_states)

    def _first_difference(self, other: ByteAutomaton, most: int) -> bytes | None:
        both = self.byte_class.astype(np.int64) * 256 + other.byte_class
        some = sorted(np.unique(both, return_index=True)[1].tolist())
        pairs = [(self.start, other.start)]
        before: list[tuple[int, int]] = [(-1, 0)]  # the number of a pair, and the byte behind it
        known = set(pairs)
        for k, (one, two) in enumerate(pairs):
            check()
            if self.accepting[one] != other.accepting[two]:
                found = bytearray()
                while k > 0:
                    k, byte = before[k]
                    found.append(byte)
                return bytes(reversed(found))
            for byte in some:
                pair = self.step(one, byte), other.step(two, byte)
                if pair not in known:
                    if len(pairs) > most:
                        advice = "the automata are larger, or have no end; pass a larger Budget"
                        raise BudgetExceededError("pairs of states", most, advice)
                    known.add(pair)
                    pairs.append(pair)
                    before.append((k, byte))
        return None

    def picture(self, path: bytes | str | None = None) -> Picture:
        """The parts near a text (its first 100 bytes; the shortest one by default) as boxes, at
        most 40 of them, with the bytes that lead from one to another; the way of `path` is
        highlighted."""
        from bpe_automata._automata.linked_pictures import picture

        return picture(self, path)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return self.picture()._repr_mimebundle_()

    def box(self, state: int) -> tuple[int, ...]:
        """The first states of the instances that a state is of: a box of pictures."""
        of = self._members[state][0] if state in self._members else (state,)
        return tuple(sorted({self._instance_at(one).base for one in of}))

    def box_size(self, first: int) -> int:
        """How many states the instance with this first one has."""
        return self._instance_with[first].block.n_rows

    def to_dfa(self, budget: Budget = _DEFAULT) -> ByteDFA:
        """All of it, built in full: minimal and trimmed. Raises BudgetExceededError where it has
        more states, before it is minimised, than the budget or than there is room for: so always
        where they are infinitely many."""
        with spending(budget):
            states, number = [0, self.start], {0: 0, self.start: 1}
            rows = [np.zeros(self.n_classes, np.int32)]
            at = 1
            while at < len(states):
                check()
                rows.append(self._numbered(states[at], number, states, budget))
                at += 1
            return reduced((np.array(rows), self.byte_class), self.accepting[states], 1, budget)

    def _numbered(
        self, state: int, number: dict[int, int], states: list[int], budget: Budget
    ) -> np.ndarray:
        """int32: the row of a state, by numbers in the order in which states are met."""
        row, column = np.unique(self._merged((state,)), return_inverse=True)
        for k, entry in enumerate(row.tolist()):
            after = entry if entry >= 0 else self.enter(-1 - entry)
            if after not in number:
                if len(states) > budget.max_states:
                    advice = "the automaton is larger, or has no end; pass a larger Budget"
                    raise BudgetExceededError("states", budget.max_states, advice)
                number[after] = len(states)
                states.append(after)
            row[k] = number[after]
        return row[column.reshape(-1)].astype(np.int32)

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
        row = self._merged((self.start,))
        row[self.byte_class[byte]] = self.start
        self._hold(found, row)
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
    def enter(self, number: int) -> int:
        """The state that a step away leads to, by its number. Raises BudgetExceededError."""
        known = int(self.steps.behind[number])
        if known:
            return known
        first = self._first_steps[bisect_right(self._first_steps, number) - 1]
        led, ends = self._led(number, first)
        if len(led) == 1 and not ends and not self._is_exit(led[0]):
            return self._led_to(led[0], number, first)
        states, then = self._closed(led)
        state = self._state(states, ends or then)
        if state in self._members:
            self._members[state] = led, ends  # so that contexts are joined with those of others
        self.steps.behind[number] = state
        return state

    def _led(self, number: int, first: int | None = None) -> tuple[tuple[int, ...], bool]:
        """The states to which a step leads, without what follows them, and whether a text may
        end. first: the first step of the same instance."""
        if first is None:
            first = self._first_steps[bisect_right(self._first_steps, number) - 1]
        one = self._leading[first]
        if not isinstance(one, _Instance):
            return one
        after = int(one.block.away[number - first])
        return (self._entered(one.part, one.context, after),), False

    def _led_to(self, state: int, number: int, first: int) -> int:
        """`state`, to which a step leads alone. Where it is in another block of the same instance,
        all steps into that block are written down."""
        one, base = self._leading[first], self._instance_at(state)
        if isinstance(one, _Instance):
            which, rows = one.block.into(base.first // ROWS)
            self.steps.behind[first + which] = base.base + rows
        else:
            self.steps.behind[number] = state
        return state

    def _closed(
        self, states: Iterable[int], places: Iterable[Place] = ()
    ) -> tuple[tuple[int, ...], bool]:
        """(states, may a text end): those given, the beginnings of places, and whatever follows the
        exits among them; without states that read nothing."""
        waiting, seen, ends = list(states), dict[int, bool](), False
        joining: dict[int, tuple[int, Part, Join, list[Any]]] = {}  # rank first; by the part
        while True:
            for part, context in places:
                if part is None:
                    ends = True
                elif part.joined is None:
                    waiting.append(self._entered(part, context, part.table.start))
                else:
                    found = joining.setdefault(id(part), (part.rank, part, part.joined, []))
                    found[-1].append(context)
            if not waiting and joining:
                _, part, joined, contexts = joining.pop(min(joining, key=lambda k: joining[k][0]))
                waiting.append(self._entered(part, joined(contexts), part.table.start))
            if not waiting:
                reading = sorted(state for state, reads in seen.items() if reads)
                return tuple(self._uncovered(reading) if len(reading) > 1 else reading), ends
            places = self._behind(waiting.pop(), seen)

    def _uncovered(self, states: list[int]) -> list[int]:
        """Some states without those of contexts that another one covers."""
        alike: dict[tuple[int, ...], list[tuple[int, Any, Covers]]] = {}
        for state in states:
            instance = self._instance_at(state)
            part, at = instance.part, state - instance.base + instance.first
            if part.covers:
                key = id(part.family), id(part.table), at
                alike.setdefault(key, []).append((state, instance.context, part.covers))
        covered = set[int]()
        for group in alike.values():
            for (state, context, _), (other, wider, covers) in permutations(group, 2):
                if other not in covered and covers(wider, context):
                    covered.add(state)
        return [state for state in states if state not in covered] if covered else states

    def _behind(self, state: int, seen: dict[int, bool]) -> Iterable[Place]:
        """What follows a state, if it is an exit and was not seen before. seen: does it read?"""
        if state in seen:
            return ()
        instance = self._instance_at(state)
        at, part = state - instance.base + instance.first, instance.part
        seen[state] = part.reads(at)
        labels = part.table.exits.get(at, ())
        return [place for label in labels for place in part.follow(instance.context, label)]

    def _entered(self, part: Part, context: Any, at: int) -> int:
        """State `at` of a part in a context."""
        number, local = divmod(at, ROWS)
        key = id(part), id(context), number
        found = self._instance_of.get(key)
        if found is None:
            found = self._instance_of[key] = self._instance(part, context, number)
        return found.base + local

    def _instance(self, part: Part, context: Any, number: int) -> _Instance:
        block, rows = self._block(part, number)
        first = number * ROWS
        lengths = part.far[first : first + ROWS]
        step, base = self._room_for_steps(len(block.away)), self._room(len(rows))
        given = base, rows, step, lengths, part.rest(context), self.far, self.plain
        write_instance(*given, packed(self.steps))
        instance = _Instance(base, part, context, first, block)
        if len(block.away):
            self._leading[step] = instance
            self._first_steps.append(step)
        self._instance_with[base] = instance
        self._bases.append(base)
        return instance

    def _block(self, part: Part, number: int) -> tuple[Block, np.ndarray]:
        """A block, and int32, the row of each of its states. Parts that lack states of their table
        have rows of their own where that makes a difference."""
        dead = part.dead
        if dead is None:
            return self._block_of_table(part.table, number)
        found = self._rows_of.get((id(part), number))
        if found is None:
            block, rows = self._block_of_table(part.table, number)
            gone = dead[number * ROWS :], dead[block.away]
            other = cut(block.cells, *gone, len(rows))
            if len(other):
                first, shared = self._room_for_rows(len(other)), rows
                write_cut(first, shared[other], other, block.cells, *gone, packed(self.steps))
                rows = rows.copy()
                rows[other] = np.arange(first, first + len(other))
            found = self._rows_of[id(part), number] = block, rows, part
        return found[:2]

    def _block_of_table(self, table: Table, number: int) -> tuple[Block, np.ndarray]:
        """The same for parts that lack no state."""
        found = self._rows_of.get((id(table), number))
        if found is None:
            if self._readable is not None and not table.is_left_by(self._readable):
                raise UnsupportedFeatureError(
                    "a linked automaton over this tokenizer",
                    "it has no id for some byte that a text needs: use the automaton's `to_dfa`",
                )
            block = table.block(number, self.byte_class)
            row = self._room_for_rows(block.n_rows)
            write_rows(block.cells, row, packed(self.steps))
            rows = np.arange(row, row + block.n_rows, dtype=np.int32)
            found = self._rows_of[id(table), number] = block, rows, table
        return found[:2]

    def _room_for_rows(self, rows: int) -> int:
        """The first of so many new rows."""
        if self._n_rows + rows > len(self.steps.trans):
            raise BudgetExceededError("rows", len(self.steps.trans), _FEWER)
        self._n_rows += rows
        return self._n_rows - rows

    def _room(self, states: int) -> int:
        """The first of so many new states."""
        if self._count + states > self.n_states:
            raise BudgetExceededError("states", self.n_states, _FEWER)
        first, end = self._count, self._count + states
        if end > self._n_counted:
            ahead = min(end + _AHEAD, self.n_states)
            for counted in self._counted:
                if (numbers := counted()) is not None:
                    numbers[self._n_counted : ahead] = np.arange(self._n_counted, ahead)
            self._n_counted = ahead
        self._count = end
        return first

    def _room_for_steps(self, steps: int) -> int:
        """The number of the first of so many new steps away."""
        if self._n_steps + steps > len(self.steps.behind):
            raise BudgetExceededError("steps", len(self.steps.behind), _FEWER)
        self._n_steps += steps
        return self._n_steps - steps

    @locked
    def count_into(self, numbers: np.ndarray) -> None:
        """From now on numbers[s], int32, is s for each state s that is written down. (All of them
        at once would take pages of memory that most automata have no use for.)"""
        numbers[: self._n_counted] = np.arange(self._n_counted)
        self._counted = [one for one in self._counted if one() is not None]
        self._counted.append(weakref.ref(numbers))

    @property
    def is_nearly_full(self) -> bool:
        """Is more than half of the room for states, rows or steps used up?"""
        used = (self._count, self.n_states), (self._n_rows, len(self.steps.trans))
        return any(2 * n > room for n, room in (*used, (self._n_steps, len(self.steps.behind))))

    def _instance_at(self, state: int) -> _Instance:
        return self._instance_with[self._bases[bisect_right(self._bases, state) - 1]]

    def _is_exit(self, state: int) -> bool:
        """Is a state of an instance one of the exits of its part?"""
        instance = self._instance_at(state)
        return state - instance.base + instance.first in instance.part.table.exits

    def _state(self, states: tuple[int, ...], ends: bool) -> int:
        """The state for some states with all that follows them."""
        if not states and not ends:
            return 0
        if len(states) == 1 and not ends and not self._is_exit(states[0]):
            return states[0]
        key = states, ends
        found = self._state_of.get(key)
        if found is None:
            row = self._merged(states)
            found = self._set(ends, 0 if ends else min(map(self._length, states)))
            self._hold(found, row)
            self._members[found] = key
            self._state_of[key] = found
        return found

    def _length(self, state: int) -> int:
        """Of the shortest text from a state to acceptance, or a little more."""
        return int(self.far[state]) * BYTE + (not self.plain[state])

    def _set(self, ends: bool, length: int) -> int:
        """A new state that is none of an instance."""
        found = self._room(1)
        self._bases.append(found)
        self.accepting[found], self.far[found] = ends, length // BYTE
        self.plain[found] = length % BYTE == 0
        return found

    def _hold(self, state: int, row: np.ndarray) -> None:
        """Write a row of its own for a state that is none of an instance, from what `_leads`
        says."""
        write_row(state, self._room_for_rows(1), row, packed(self.steps))

    def _merged(self, states: tuple[int, ...]) -> np.ndarray:
        """The row of a set, as of `_leads`."""
        row, several = np.empty(self.n_classes, np.int64), np.array(states, np.int64)
        if merge(several, row, packed(self.steps)):
            apart, known = np.flatnonzero(row == APART), dict[tuple[int, ...], int]()
            table = self._leads(several[:, None], apart)
            for column, entries in zip(apart.tolist(), table.T.tolist(), strict=True):
                key = tuple(entries)  # most bytes of a string lead alike
                if key not in known:
                    known[key] = self._step_to(sorted({entry for entry in entries if entry}))
                row[column] = known[key]
        return row

    def _step_to(self, entries: list[int]) -> int:
        """The entry of a step to several others at once."""
        found, ends = set[int](), False
        for entry in entries:
            if entry < 0:
                states, then = self._led(-1 - entry)
            else:
                states, then = self._members.get(entry, ((entry,), False))
            found.update(states)
            ends |= then
        key = tuple(sorted(found)), ends
        number = self._number_of.get(key)
        if number is None:
            number = self._number_of[key] = self._room_for_steps(1)
            self._leading[number] = key
            self._first_steps.append(number)
        return int(self.steps.behind[number]) or -1 - number


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
