"""What of a linked automaton is written down (see `linked`): its arrays, and the blocks in them."""

from __future__ import annotations

import weakref
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np

from bpe_automata._automata.parts import BYTE, ROWS, Block, Part, Table
from bpe_automata._budget import Budget, out_of_memory
from bpe_automata._kernels.distance import NEVER
from bpe_automata._kernels.links import HERE, Steps
from bpe_automata._kernels.references import packed
from bpe_automata._kernels.written import cut, write_cut, write_instance, write_row, write_rows
from bpe_automata._limits import untouched
from bpe_automata.errors import BudgetExceededError, UnsupportedFeatureError

_FEWER = "the texts read so far have used them up; make the automaton anew, or pass a larger Budget"
_ROOM = 6  # times as many states as a budget has: memory is taken by those that are written
_STEPS = 2  # times as many steps away
_AHEAD = 1024  # states that are counted at once, see `count_into`
_ROWS, _MORE_ROWS = 3, 1000  # rows of the table; more, so that a small budget has some for a block

Members = tuple[tuple[int, ...], bool]
"""States, in order, and whether a text may end where they are: a set."""


@dataclass(frozen=True, eq=False)
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
        self.room = min(_ROOM * budget.max_states, HERE - 1)
        n_rows = min(_ROWS * budget.max_states + _MORE_ROWS, HERE)
        try:
            row, away, behind = (untouched(k * self.room, np.int32) for k in (1, 1, _STEPS))
            trans = untouched((n_rows, int(byte_class.max()) + 1), np.int32)
            self.accepting = untouched(self.room, np.bool_)
            self.far = untouched(self.room, np.int32)
            self.plain = untouched(self.room, np.bool_)
        except (OSError, MemoryError) as error:
            raise out_of_memory(budget) from error
        self.steps = Steps(trans, byte_class, row, away, behind)
        self.far[0] = NEVER
        self.count, self._n_counted, self._n_rows, self._n_steps = 1, 1, 1, 0
        self._counted: list[weakref.ref[np.ndarray]] = []
        self._bases: list[int] = []  # of instances, and the states that are sets
        self._instance_with: dict[int, Instance] = {}
        self._instance_of: dict[tuple[int, int, int], Instance] = {}
        # Blocks with their rows, by part or `trans`, which tables that begin elsewhere share.
        self._rows_of: dict[tuple[int, int], tuple[Block, np.ndarray, Part | Table]] = {}
        # Steps away: the first number of those of an instance, or that of one to a set.
        self._first_steps: list[int] = []
        self._leading: dict[int, Instance | Members] = {}

    # What is asked.

    def leads(self, states: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """int64: the states that columns lead to; -1 - the number of a step that is not written
        down."""
        _, _, row, away, behind = self.steps
        cells = self.steps.trans[row[states], columns].astype(np.int64)
        found = np.where(cells > 0, states + cells - HERE, 0)
        left = cells < 0
        numbers = np.broadcast_to(away[states], cells.shape)[left] - 1 - cells[left]
        found[left] = np.where(behind[numbers] > 0, behind[numbers], -1 - numbers)
        return found

    def instance_at(self, state: int) -> Instance:
        """The instance that a state is one of."""
        return self._instance_with[self._bases[bisect_right(self._bases, state) - 1]]

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
        used = (self.count, self.room), (self._n_rows, len(self.steps.trans))
        return any(2 * n > room for n, room in (*used, (self._n_steps, len(self.steps.behind))))

    # Instances.

    def entered(self, part: Part, context: Any, at: int) -> int:
        """State `at` of a part in a context."""
        number, local = divmod(at, ROWS)
        key = id(part), id(context), number
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
        write_instance(*given, packed(self.steps))
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
        found = self._rows_of.get((id(part), number))
        if found is None:
            block, rows = self._block_of_table(part.table, number)
            gone = dead[number * ROWS :], dead[block.away]
            other = cut(block.runs, *gone, len(rows))
            if len(other):
                first, shared = self._room_for_rows(len(other)), rows
                write_cut(first, shared[other], other, block.runs, *gone, packed(self.steps))
                rows = rows.copy()
                rows[other] = np.arange(first, first + len(other))
            found = self._rows_of[id(part), number] = block, rows, part
        return found[:2]

    def _block_of_table(self, table: Table, number: int) -> tuple[Block, np.ndarray]:
        """The same for parts that lack no state."""
        key = id(table.trans), number
        found = self._rows_of.get(key)
        if found is None:
            if self._readable is not None and not table.is_left_by(self._readable):
                raise UnsupportedFeatureError(
                    "a linked automaton over this tokenizer",
                    "it has no id for some byte that a text needs: use the automaton's `to_dfa`",
                )
            block = table.block(number, self.steps.byte_class)
            row = self._room_for_rows(block.n_rows)
            write_rows(block.runs, row, packed(self.steps))
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
            return one
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

    def new_step(self, members: Members) -> int:
        """The number of a new step, which leads to a set."""
        number = self._room_for_steps(1)
        self._leading[number] = members
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
        """Write a row of its own for a state that is none of an instance, from what `leads`
        says."""
        write_row(state, self._room_for_rows(1), row, packed(self.steps))

    # Room.

    def _room_for_rows(self, rows: int) -> int:
        """The first of so many new rows."""
        if self._n_rows + rows > len(self.steps.trans):
            raise BudgetExceededError("rows", len(self.steps.trans), _FEWER)
        self._n_rows += rows
        return self._n_rows - rows

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
