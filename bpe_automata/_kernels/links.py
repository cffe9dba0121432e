"""Where bytes lead from the states of automata; also of those that are written down meanwhile.

Of a linked automaton (see `_automata.linked`) not all states exist yet. A kernel that follows a
step to one that does not calls Python, which adds it to the same arrays: these never move, so the
kernel goes on as if the state had always been there.
"""

from __future__ import annotations

import ctypes
import weakref
from typing import Any, NamedTuple, Protocol

import numba
import numpy as np
from llvmlite import binding
from numba import types

from bpe_automata._budget import watch as watch_of_thread
from bpe_automata._kernels import kernel
from bpe_automata._kernels.references import by_reference
from bpe_automata._kernels.watch import stop_for

_NAME = "bpe_automata_enter"
HERE = 1 << 14  # a block has no more steps away than that, and two blocks no more rows


@by_reference
class Steps(NamedTuple):
    """trans int32 [n_states, columns], byte_class uint8 [256]: where each state leads; all others:
    of length 0. But of a linked automaton many states share rows:

        cells int16 [rows, columns]   rows of blocks, of which row 0 is dead
        row int32 [n_states]          the row of each state there; or -1 - its row of `trans`
        away int32 [n_states]         the number of the first of its steps away
        behind int32 [steps]          the state that such a step leads to, 0: not written down yet

    A cell, seen from state s, is one of: 0, dead; HERE + d, state s + d of the same instance;
    -1 - k, the k-th step away from the instance, number away[s] + k. A state that is a set has a
    row of `trans` to itself, where states stand, and -1 - the numbers of steps; its `away` is 0."""

    trans: np.ndarray
    byte_class: np.ndarray
    cells: np.ndarray
    row: np.ndarray
    away: np.ndarray
    behind: np.ndarray


class Linked(Protocol):
    """An automaton that is being written down."""

    @property
    def steps(self) -> Steps: ...

    def enter(self, number: int) -> int:
        """The state that a step away leads to, which is written down now."""


_by_address: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
"""Linked automata, by the address of `Steps.behind`."""


def register(linked: Linked) -> None:
    """From now on kernels may follow steps that are not written down yet."""
    _by_address[linked.steps.behind.ctypes.data] = linked


def _entered(behind: Any, number: int) -> int:
    """What kernels call. An error stops the kernel, as a signal does, and is raised after it."""
    watch = watch_of_thread()
    before = watch.copy()  # kernels that run meanwhile, in this thread, have the same array
    error: BaseException | None = None
    try:
        found = _by_address[behind if isinstance(behind, int) else behind.data].enter(number)
    except BaseException as raised:  # nothing may go through the kernel
        found, error = 0, raised
    watch[1:] = before[1:]
    watch_of_thread()  # when the time is up, as budgets within may have said something else
    if error is not None:
        stop_for(watch, error)
    return found


if numba.config.DISABLE_JIT:
    _enter: Any = _entered
else:
    # The kernels on the disk know the name alone.
    _callback = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(_entered)
    binding.add_symbol(_NAME, ctypes.cast(_callback, ctypes.c_void_p).value)
    _enter = types.ExternalFunction(_NAME, types.int64(types.voidptr, types.int64))


@kernel
def step(state: int, byte: int, steps: Steps) -> int:
    """The state after a byte, which is written down if it was not."""
    after = known_step(state, steps.byte_class[byte], steps)
    return after if after >= 0 else _enter(steps.behind.ctypes, -1 - after)


@kernel
def known_step(state: int, column: int, steps: Steps) -> int:
    """The state after a byte of a column; -1 - the number of the step if that is not known."""
    if len(steps.row) == 0:
        return steps.trans[state, column]
    row = steps.row[state]
    cell: Any = np.int64(steps.cells[row, column] if row >= 0 else steps.trans[-1 - row, column])
    if cell >= 0:
        return state + cell - HERE if cell > 0 and row >= 0 else cell
    number = steps.away[state] - 1 - cell
    after = steps.behind[number]
    return after if after > 0 else -1 - number
