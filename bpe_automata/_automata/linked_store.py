"""What of a linked automaton is written down (see `linked`): its arrays, and the blocks in them."""

from __future__ import annotations

import weakref
from array import array
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bpe_automata._automata.parts import BYTE, ROWS, Block, Part, Table
from bpe_automata._budget import Budget, out_of_memory
from bpe_automata._kernels.distance import NEVER
from bpe_automata._kernels.links import HERE, Steps
from bpe_automata._kernels.written import cut, write_cut, write_instance, write_row, write_rows
from bpe_automata._limits import NUMBERS, untouched
from bpe_automata.errors import BudgetExceededError, UnsupportedFeatureError

_FEWER = (
    "the texts that are being read have used them up; read fewer at once, or pass a larger Budget"
)
_ROOM = 6  # times as many states as a budget has: memory is taken by those that are written
_STEPS = 2  # times as many steps away
_AHEAD = 1024  # states that are counted at once, see `count_into`
_ROWS, _MORE_ROWS = 3, 1000  # rows of the table; more, so that a small budget has some for a block

Members = tuple[tuple[int, ...], bool]
"""States, in order, and whether a text may end where they are: a set."""


def packed_set(states: Iterable[int], ends: bool) -> bytes:
    """A set as it is kept: there are thousands, and integers take eight times as much."""
    return array("i", (*states, ends)).tobytes()


def members_of(kept: bytes) -> Members:
    """The set again."""
    *states, ends = array("i", kept)
    return tuple(states), bool(ends)


@dataclass(frozen=True, eq=False, slots=True)
class Instance:
    """A block of a part in a context. base: its first state, which is state `first` of the
    part."""

    base: int
    part: Part
    context: Any
    first: int
    block: Block


class Written:
    """Arrays with room for all states, rows and steps, which never move.

    steps: see `_kernels.links`; over all states accepting bool, far int32, plain bool: see
    `linked.LinkedDFA`. Only one thread may write at a time: all methods but those that ask.
    """

    def __init__(self, byte_class: np.ndarray, budget: Budget, readable: np.ndarray | None) -> None:
        """byte_class: uint8 [256]. readable: bool [256], or None for all bytes, as of a
        `LinkedDFA`. Raises BudgetExceededError."""
        self._readable = readable
        self.room = min(_ROOM * budget.max_states, NUMBERS // _STEPS)
        self._most_rows = n_rows = min(_ROWS * budget.max_states + _MORE_ROWS, NUMBERS)
        try:
            shape, n = (n_rows, int(byte_class.max()) + 1), self.room
            rows = (shape, np.int32), (shape, np.int16)
            steps = (n, np.int32), (n, np.int32), (_STEPS * n, np.int32)
            states = (n, np.int32), (n, np.bool_), (n, np.bool_)
            found = iter(untouched(*rows, *steps, *states))
            trans, cells, row, away, behind, self.far, self.accepting, self.plain = found
        except (OSError, MemoryError) as error:
            raise out_of_memory(budget) from error
        self.steps = Steps(trans, byte_class, cells, row, away, behind)
        self.far[0] = NEVER
        self.count, self._n_counted, self._n_steps = 1, 1, 0
        self._n_rows, self._n_own_rows = 1, 0  # of `cells`, of `trans`
        self._counted: list[weakref.ref[np.ndarray]] = []
        self._bases: list[int] = []  # of instances, and the states that are sets
        self._instance_with: dict[int, Instance] = {}
        self._instance_of: dict[int, Instance] = {}
        # Blocks with their rows, by the `trans` that tables that begin elsewhere share, and what of
        # it parts lack.
        self._rows_of: dict[tuple[Any, ...], tuple[Block, np.ndarray, Table]] = {}
        # Steps away: the first number of those of an instance, or that of one to a set.
        self._first_steps: list[int] = []
        self._leading: dict[int, Instance | bytes] = {}

    # What is asked.

    def instance_at(self, state: int) -> Instance:
        """The instance that a state is one of."""
        return self._instance_with[self._bases[bisect_right(self._bases, state) - 1]]

    def row_of(self, state: int) -> np.ndarray:
        """The row of a state, of `Steps.cells` or `Steps.trans`: 0 where it leads nowhere."""
        row = int(self.steps.row[state])
        found: np.ndarray = self.steps.trans[-1 - row] if row < 0 else self.steps.cells[row]
        return found

    def after(self, state: int, column: int) -> int:
        """As `_kernels.links.known_step`, without a kernel."""
        cell = int(self.row_of(state)[column])
        if cell < 0:
            number = int(self.steps.away[state]) - 1 - cell
            return int(self.steps.behind[number]) or -1 - number
        return state + cell - HERE if cell and self.steps.row[state] >= 0 else cell

    def is_exit(self, state: int) -> bool:
        """Is a state of an instance one of the exits of its part?"""
        instance = self.instance_at(state)
        return state - instance.base + instance.first in instance.part.table.exits

    def length(self, state: int) -> int:
        """Of the shortest text from a state to acceptance, or a little more."""
        return int(self.far[state]) * BYTE + (not self.plain[state])

    @property
    def is_nearly_full(self) -> bool:
        """Is more than half of the room for states, rows or steps used up?"""
        rows = self._n_rows + self._n_own_rows, self._most_rows
        used = (self.count, self.room), rows, (self._n_steps, len(self.steps.behind))
        return any(2 * n > room for n, room in used)

    # Instances.

    def entered(self, part: Part, context: Any, at: int) -> int:
        """State `at` of a part in a context."""
        number, local = divmod(at, ROWS)
        key = (id(part) << 64 | id(context)) << 32 | number  # a tuple takes four times as much
        found = self._instance_of.get(key)
        if found is None:
            found = self._instance_of[key] = self._instance(part, context, number)
        return found.base + local

    def _instance(self, part: Part, context: Any, number: int) -> Instance:
        block, rows = self._block(part, number)
        first = number * ROWS
        lengths = part.far[first : first + ROWS]
        step, base = self._room_for_steps(len(block.away)), self._room(len(rows))
        given = base, rows, step, lengths, part.rest(context), self.far, self.plain
        write_instance(*given, tuple(self.steps))
        instance = Instance(base, part, context, first, block)
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
        block, rows = self._block_of_table(part.table, number)
        gone = dead[number * ROWS :][: len(rows)], dead[block.away]
        key = id(part.table.trans), number, gone[0].tobytes(), gone[1].tobytes()
        found = self._rows_of.get(key)
        if found is None:
            other = cut(block.runs, *gone, len(rows))
            if len(other):
                first, shared = self._room_for_rows(len(other)), rows
                write_cut(first, shared[other], other, block.runs, *gone, tuple(self.steps))
                rows = rows.copy()
                rows[other] = np.arange(first, first + len(other))
            found = self._rows_of[key] = block, rows, part.table
        return found[:2]

    def _block_of_table(self, table: Table, number: int) -> tuple[Block, np.ndarray]:
        """The same for parts that lack no state."""
        key: tuple[Any, ...] = id(table.trans), number
        found = self._rows_of.get(key)
        if found is None:
            if self._readable is not None and not table.is_left_by(self._readable):
                raise UnsupportedFeatureError(
                    "a linked automaton over this tokenizer",
                    "it has no id for some byte that a text needs: use the automaton's `to_dfa`",
                )
            block = table.block(number, self.steps.byte_class)
            row = self._room_for_rows(block.n_rows)
            write_rows(block.runs, row, tuple(self.steps))
            rows = np.arange(row, row + block.n_rows, dtype=np.int32)
            found = self._rows_of[key] = block, rows, table
        return found[:2]

    # Steps away.

    def led(self, number: int) -> Members:
        """The states to which a step away leads, without what follows them, and whether a text may
        end."""
        first = self._first_steps[bisect_right(self._first_steps, number) - 1]
        one = self._leading[first]
        if not isinstance(one, Instance):
            return members_of(one)
        after = int(one.block.away[number - first])
        return (self.entered(one.part, one.context, after),), False

    def lead_into(self, number: int, state: int) -> None:
        """Write down that a step leads to a state of a block, which is no exit; with all steps
        from where it comes from into that block of the same part."""
        first = self._first_steps[bisect_right(self._first_steps, number) - 1]
        one, there = self._leading[first], self.instance_at(state)
        if isinstance(one, Instance):
            which, rows = one.block.into(there.first // ROWS)
            self.steps.behind[first + which] = there.base + rows
        else:
            self.steps.behind[number] = state

    def new_step(self, kept: bytes) -> int:
        """The number of a new step, which leads to a set."""
        number = self._room_for_steps(1)
        self._leading[number] = kept
        self._first_steps.append(number)
        return number

    # States that are sets.

    def new_state(self, ends: bool, length: int) -> int:
        """A new state that is none of an instance. length: of the shortest text to acceptance."""
        found = self._room(1)
        self._bases.append(found)
        self.accepting[found], self.far[found] = ends, length // BYTE
        self.plain[found] = length % BYTE == 0
        return found

    def hold(self, state: int, row: np.ndarray) -> None:
        """Write a row of its own for a state that is none of an instance: int64 [columns], states,
        and -1 - the numbers of steps. Raises BudgetExceededError."""
        self._check_rows(1)
        self._n_own_rows += 1
        write_row(state, self._n_own_rows - 1, row, tuple(self.steps))

    # Room.

    def _room_for_rows(self, rows: int) -> int:
        """The first of so many new rows of `cells`."""
        self._check_rows(rows)
        self._n_rows += rows
        return self._n_rows - rows

    def _check_rows(self, more: int) -> None:
        if self._n_rows + self._n_own_rows + more > self._most_rows:
            raise BudgetExceededError("rows", self._most_rows, _FEWER)

    def _room(self, states: int) -> int:
        """The first of so many new states."""
        if self.count + states > self.room:
            raise BudgetExceededError("states", self.room, _FEWER)
        first, end = self.count, self.count + states
        if end > self._n_counted:
            ahead = min(end + _AHEAD, self.room)
            for counted in self._counted:
                if (numbers := counted()) is not None:
                    numbers[self._n_counted : ahead] = np.arange(self._n_counted, ahead)
            self._n_counted = ahead
        self.count = end
        return first

    def _room_for_steps(self, steps: int) -> int:
        """The number of the first of so many new steps away."""
        if self._n_steps + steps > len(self.steps.behind):
            raise BudgetExceededError("steps", len(self.steps.behind), _FEWER)
        self._n_steps += steps
        return self._n_steps - steps

    def count_into(self, numbers: np.ndarray) -> None:
        """From now on numbers[s], int32, is s for each state s that is written down. (All of them
        at once would take pages of memory that most automata have no use for.)"""
        numbers[: self._n_counted] = np.arange(self._n_counted)
        self._counted = [one for one in self._counted if one() is not None]
        self._counted.append(weakref.ref(numbers))
