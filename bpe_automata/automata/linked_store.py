"""What of a linked automaton is written down (see `linked`): its arrays, and the blocks in them."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bpe_automata._budget import Budget, out_of_memory
from bpe_automata._kernels.blocks import write_block
from bpe_automata._kernels.distance import NEVER
from bpe_automata._limits import NUMBERS, untouched
from bpe_automata.automata.dfa import Steps
from bpe_automata.automata.parts import BYTE, ODD, ROWS, Block, Part
from bpe_automata.errors import BudgetExceededError, UnsupportedFeatureError

_FEWER = (
    "the texts that are being read have used them up; read fewer at once, or pass a larger Budget"
)
_ROOM = 6  # times as many states as a budget has: memory is taken by those that are written
_STEPS = 2  # times as many steps away
_FEW_BYTES, _MOST_BYTES = 1 << 29, 1 << 30  # of addresses: systems may refuse many

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
    """A block of a part in a context. base: its first state."""

    base: int
    part: Part
    context: Any
    block: Block

    def at(self, state: int) -> int:
        """The state of the part that one of the automaton is."""
        return state - self.base + self.block.first


class Written:
    """Arrays with room for all states and steps, which never move.

    steps: see `dfa.Steps`; over all states accepting bool, far int32, plain, tagged bool: see
    `linked.LinkedDFA`. Only one thread may write at a time: all methods but those that ask.
    """

    def __init__(self, byte_class: np.ndarray, budget: Budget, readable: np.ndarray | None) -> None:
        """byte_class: uint8 [256]. readable: bool [256], or None for all bytes, as of a
        `LinkedDFA`. Raises BudgetExceededError."""
        self._readable = readable
        columns = int(byte_class.max()) + 1
        most, size = budget.max_states, 4 * columns + 4 * _STEPS + 7  # bytes of a state
        wanted = min(_ROOM * most, max(most + most // 4, _FEW_BYTES // size))
        n = self.room = min(wanted, NUMBERS // _STEPS, _MOST_BYTES // size)
        try:
            steps = ((n, columns), np.int32), (_STEPS * n, np.int32)
            states = (n, np.int32), (n, np.bool_), (n, np.bool_), (n, np.bool_)
            trans, behind, self.far, self.accepting, self.plain, self.tagged = untouched(
                *steps, *states
            )
        except (OSError, MemoryError) as error:
            raise out_of_memory(budget) from error
        self.steps = Steps(trans, byte_class, behind)
        self.far[0] = NEVER
        self.count, self._n_steps = 1, 0
        self._bases: list[int] = []  # of instances, and the states that are sets
        self._instance_with: dict[int, Instance] = {}
        self._instance_of: dict[int, Instance] = {}
        # Steps away: the first number of those of an instance, or that of one to a set.
        self._first_steps: list[int] = []
        self._leading: dict[int, Instance | bytes] = {}

    # What is asked.

    def instance_at(self, state: int) -> Instance:
        """The instance that a state is one of."""
        return self._instance_with[self._bases[bisect_right(self._bases, state) - 1]]

    def after(self, state: int, column: int) -> int:
        """The state after a byte of a column; -1 - the number of the step if it leads to
        a state that is not written down."""
        entry = int(self.steps.trans[state, column])
        return entry if entry >= 0 else int(self.steps.behind[-1 - entry]) or entry

    def is_exit(self, state: int) -> bool:
        """Is a state of an instance one of the exits of its part?"""
        instance = self.instance_at(state)
        return instance.at(state) in instance.part.table.exits

    def length(self, state: int) -> int:
        """Of the shortest text from a state to acceptance, or a little more."""
        odd = 0 if self.plain[state] else 1 if self.tagged[state] else ODD
        return int(self.far[state]) * BYTE + odd

    @property
    def is_nearly_full(self) -> bool:
        """Is more than half of the room for states or steps used up?"""
        return 2 * self.count > self.room or 2 * self._n_steps > len(self.steps.behind)

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
        block = self._block(part, number)
        first, n = block.first, len(block.cells)
        step, base = self._room_for_steps(len(block.away)), self._room(n)
        lengths = part.far[first : first + n]
        states = self.far, self.plain, self.tagged, self.steps.trans
        write_block(base, block.cells, step, lengths, part.rest(context), *states)
        instance = Instance(base, part, context, block)
        if len(block.away):
            self._leading[step] = instance
            self._first_steps.append(step)
        self._instance_with[base] = instance
        self._bases.append(base)
        return instance

    def _block(self, part: Part, number: int) -> Block:
        """A block, without the states that the part lacks of its table."""
        table = part.table
        if self._readable is not None and not table.is_left_by(self._readable):
            raise UnsupportedFeatureError(
                "a linked automaton over this tokenizer",
                "it has no id for some byte that a text needs: use the automaton's `to_dfa`",
            )
        block = table.block(number, self.steps.byte_class)
        return block if part.dead is None else block.without(part.dead)

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
            which, rows = one.block.into(there.block.first // ROWS)
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

    def new_state(self, ends: bool, length: int, row: np.ndarray) -> int:
        """A new state that is none of an instance. length: of the shortest text to acceptance; row:
        int64 [columns], its row of `trans`."""
        found = self._room(1)
        self._bases.append(found)
        self.accepting[found], self.far[found] = ends, length // BYTE
        self.plain[found], self.tagged[found] = length % BYTE == 0, length % BYTE < ODD
        self.steps.trans[found] = row
        return found

    # Room.

    def _room(self, states: int) -> int:
        """The first of so many new states."""
        if self.count + states > self.room:
            raise BudgetExceededError("states", self.room, _FEWER)
        self.count += states
        return self.count - states

    def _room_for_steps(self, steps: int) -> int:
        """The number of the first of so many new steps away."""
        if self._n_steps + steps > len(self.steps.behind):
            raise BudgetExceededError("steps", len(self.steps.behind), _FEWER)
        self._n_steps += steps
        return self._n_steps - steps
