"""How a linked automaton is written down: see `_automata.linked`, which finds room for it first."""

from __future__ import annotations

from typing import Any

import numpy as np

from bpe_automata._kernels import jit
from bpe_automata._kernels.links import HERE, known_step

BYTE = 1 << 32  # see `parts.BYTE`
FAR = BYTE << 29
APART = 1 << 31
"""In the row of a set of states: they lead to different ones."""


@jit
def leave_block(
    rows: np.ndarray, columns: np.ndarray, is_exit: np.ndarray, first: int
) -> tuple[np.ndarray, np.ndarray]:
    """(`parts.Block.runs`; int64, the states that the block leads away to) of rows of a part, int32
    [n, k], those from `first` on. columns: uint8, the columns of the part that those of the
    automaton are. is_exit: bool, of all states of the part."""
    number = np.zeros(len(is_exit), np.int32)  # 1 + that of a state among them
    away, count, n = np.empty(len(is_exit), np.int64), 0, 0
    runs = np.empty((len(rows) * len(columns), 4), np.int16)
    for k in range(len(rows)):
        before = 0
        for c in range(len(columns)):
            after = rows[k, columns[c]]
            if after != 0 and after == before:
                runs[n - 1, 2] = c + 1
            elif after != 0:
                runs[n, 0], runs[n, 1], runs[n, 2] = k, c, c + 1
                if first <= after < first + len(rows) and not is_exit[after]:
                    runs[n, 3] = after - first + 1
                else:
                    if number[after] == 0:
                        away[count] = after
                        count += 1
                        number[after] = count
                    runs[n, 3] = -number[after]
                n += 1
            before = after
    return runs[:n].copy(), away[:count].copy()


@jit
def write_rows(runs: np.ndarray, first: int, steps: tuple[Any, ...]) -> None:
    """Write the rows of a block (see `parts.Block`), which are all 0, from row `first` on."""
    for i in range(len(runs)):
        k, cell = np.int64(runs[i, 0]), np.int64(runs[i, 3])
        entry = cell - 1 - k + HERE if cell > 0 else cell
        for c in range(runs[i, 1], runs[i, 2]):
            steps[2][first + k, c] = entry


@jit
def write_instance(
    base: int,
    rows: np.ndarray,
    step: int,
    lengths: np.ndarray,
    rest: int,
    far: np.ndarray,
    plain: np.ndarray,
    steps: tuple[Any, ...],
) -> None:
    """Write down the states from `base` on. rows: int32, the row of each; step: the number of their
    first step away; lengths: int64, of the shortest text to the end of the part, and `rest` what is
    behind that, each at most FAR; far, plain: of the automaton."""
    for k in range(len(rows)):
        steps[3][base + k], steps[4][base + k] = rows[k], step
        length = min(lengths[k] + rest, FAR)
        far[base + k], plain[base + k] = length // BYTE, length % BYTE == 0


@jit
def write_row(state: int, at: int, row: np.ndarray, steps: tuple[Any, ...]) -> None:
    """Write row `at` of `trans`, of a state that is none of an instance. row: int64, as of
    `merge`."""
    steps[3][state] = -1 - at
    for c in range(len(row)):
        steps[0][at, c] = row[c]


@jit
def merge(states: np.ndarray, row: np.ndarray, steps: tuple[Any, ...]) -> int:
    """Write into `row`, int64 [columns], what `known_step` says of some states, int64, at once;
    APART where they do not say the same. Returns how many columns are APART."""
    trans, _, cells, lines, away, behind = steps
    apart = 0
    for c in range(len(row)):
        row[c] = 0
        for state in states:
            after = known_step(state, c, trans, cells, lines, away, behind)
            if after != 0 and after != row[c]:
                row[c] = after if row[c] == 0 else APART
        apart += row[c] == APART
    return apart


@jit
def leads(states: np.ndarray, columns: np.ndarray, steps: tuple[Any, ...]) -> np.ndarray:
    """int64 [columns, states]: what `known_step` says of each."""
    trans, _, cells, lines, away, behind = steps
    found = np.empty((len(columns), len(states)), np.int64)
    for k in range(len(columns)):
        for i in range(len(states)):
            found[k, i] = known_step(states[i], columns[k], trans, cells, lines, away, behind)
    return found


@jit
def known_steps(states: np.ndarray, columns: np.ndarray, steps: tuple[Any, ...]) -> np.ndarray:
    """int64: what `known_step` says of each state with its column."""
    trans, _, cells, lines, away, behind = steps
    found = np.empty(len(states), np.int64)
    for k in range(len(states)):
        found[k] = known_step(states[k], columns[k], trans, cells, lines, away, behind)
    return found


@jit
def cut(runs: np.ndarray, dead: np.ndarray, away: np.ndarray, n: int) -> np.ndarray:
    """int64: of the n states of a block (see `parts.Block`), those that are alive and have steps to
    dead ones. dead: bool, of the block's states; away: bool, of those that it leads away to."""
    other = np.zeros(n, np.bool_)
    for i in range(len(runs)):
        cell = runs[i, 3]
        gone = dead[cell - 1] if cell > 0 else away[-1 - cell]
        other[runs[i, 0]] |= gone and not dead[runs[i, 0]]
    return np.flatnonzero(other)


@jit
def write_cut(
    first: int,
    rows: np.ndarray,
    states: np.ndarray,
    runs: np.ndarray,
    dead: np.ndarray,
    away: np.ndarray,
    steps: tuple[Any, ...],
) -> None:
    """Write, from row `first` on, what `rows` are without their steps to dead states. states:
    int64, of the block, whose rows these are, as `cut` says with the rest of the arguments."""
    for k in range(len(states)):
        steps[2][first + k] = steps[2][rows[k]]
    k = 0
    for i in range(len(runs)):
        while k < len(states) and states[k] < runs[i, 0]:
            k += 1
        cell = runs[i, 3]
        gone = dead[cell - 1] if cell > 0 else away[-1 - cell]
        if gone and k < len(states) and states[k] == runs[i, 0]:
            for c in range(runs[i, 1], runs[i, 2]):
                steps[2][first + k, c] = 0
