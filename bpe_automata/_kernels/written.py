"""How a linked automaton is written down: see `_automata.linked`, which finds room for it first."""

from __future__ import annotations

import numpy as np

from bpe_automata._kernels import jit

BYTE = 1 << 32  # see `parts.BYTE`
FAR = BYTE << 29


@jit
def leave_block(
    rows: np.ndarray, columns: np.ndarray, is_exit: np.ndarray, first: int
) -> tuple[np.ndarray, np.ndarray]:
    """(`parts.Block.cells`; int64, the states that the block leads away to) of rows of a part,
    int32 [n, k], those from `first` on. columns: uint8, the columns of the part that those of the
    automaton are. is_exit: bool, of all states of the part."""
    number = np.zeros(len(is_exit), np.int32)  # 1 + that of a state among them
    away, count = np.empty(len(is_exit), np.int64), 0
    cells = np.zeros((len(rows), len(columns)), np.int32)
    for k in range(len(rows)):
        for c in range(len(columns)):
            after = rows[k, columns[c]]
            if after == 0:
                continue
            if first <= after < first + len(rows) and not is_exit[after]:
                cells[k, c] = after - first + 1
                continue
            if number[after] == 0:
                away[count] = after
                count += 1
                number[after] = count
            cells[k, c] = -number[after]
    return cells, away[:count].copy()


@jit
def write_block(
    base: int,
    cells: np.ndarray,
    step: int,
    lengths: np.ndarray,
    rest: int,
    far: np.ndarray,
    plain: np.ndarray,
    trans: np.ndarray,
) -> None:
    """Write down the states of a block (see `parts.Block`) from `base` on. step: the number of
    their first step away; lengths: int64, of the shortest text to the end of the part, and `rest`
    what is behind that, each at most FAR; far, plain, trans: of the automaton."""
    for k in range(len(cells)):
        length = min(lengths[k] + rest, FAR)
        far[base + k], plain[base + k] = length // BYTE, length % BYTE == 0
        for c in range(cells.shape[1]):
            cell = cells[k, c]
            if cell != 0:
                trans[base + k, c] = base + cell - 1 if cell > 0 else cell - step
