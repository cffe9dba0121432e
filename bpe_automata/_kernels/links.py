"""Where bytes lead from the states of automata; also of those that are written down meanwhile."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bpe_automata._kernels import inlined

HERE = 1 << 14  # a block has no more steps away than that, and two blocks no more rows


class Steps(NamedTuple):
    """trans int32 [n_states, columns], byte_class uint8 [256]: where each state leads; all others:
    of length 0. But of a linked automaton many states share rows:

        cells int16 [rows, columns]   rows of blocks, of which row 0 is dead
        row int32 [n_states]          the row of each state there; or -1 - its row of `trans`
        away int32 [n_states]         the number of the first of its steps away
        behind int32 [steps]          the state that such a step leads to, 0: not written down yet

    A cell, seen from state s, is one of: 0, dead; HERE + d, state s + d of the same instance;
    -1 - k, the k-th step away from the instance, number away[s] + k. A state that is a set has a
    row of `trans` to itself, where states stand, and -1 - the numbers of steps; its `away` is 0.
    Kernels take it as a plain tuple, which is passed in a tenth of the time."""

    trans: np.ndarray
    byte_class: np.ndarray
    cells: np.ndarray
    row: np.ndarray
    away: np.ndarray
    behind: np.ndarray


@inlined
def known_step(
    state: Any,
    column: Any,
    trans: np.ndarray,
    cells: np.ndarray,
    row: np.ndarray,
    away: np.ndarray,
    behind: np.ndarray,
) -> Any:
    """The state after a byte of a column; -1 - the number of the step if that is not known."""
    if len(row) == 0:
        return np.int64(trans[state, column])
    r = row[state]
    cell = np.int64(cells[r, column]) if r >= 0 else np.int64(trans[-1 - r, column])
    if cell >= 0:
        return state + cell - HERE if cell > 0 and r >= 0 else cell
    number = away[state] - 1 - cell
    after = np.int64(behind[number])
    return after if after > 0 else -1 - number
