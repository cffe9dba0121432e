"""Minimisation of a DFA, written down as a complete table with a dead state 0.

    p ~ q  <=>  L(p) == L(q)            (L(p): what leads from p to an accepting state)

Only edges between live states count: those that are reached, and from which acceptance can be.
"""

from __future__ import annotations

import numpy as np

from bpe_automata._budget import check
from bpe_automata._kernels.distance import distances
from bpe_automata._kernels.minimise import breadth_first, edges_into, refine


def minimise(
    trans: np.ndarray, accepting: np.ndarray, start: int
) -> tuple[np.ndarray, np.ndarray, int, np.ndarray]:
    """The minimal trimmed DFA of a complete one, over a minimal alphabet.

    trans: int32 [n, k] with row 0 (dead) all 0; accepting: bool [n]; start: a state.
    Returns (trans int32 [m, j], accepting bool [m], start, column int32 [k]): the new columns are
    pairwise different, column[a] is the new one of the old column a, and state 0 is dead. Raises
    BudgetExceededError.
    """
    live = breadth_first(trans, start)[0] > 0
    live &= distances(trans, accepting) >= 0
    states = np.flatnonzero(live)
    number = np.zeros(len(trans), np.int32)
    number[states] = np.arange(1, len(states) + 1)
    check()
    ptr, tail, label = edges_into(trans, states, number)
    check()
    block, n_blocks = refine(ptr, tail, label, accepting[states])
    number[states] = block + 1
    one_of_each = np.zeros(n_blocks + 1, np.int64)
    one_of_each[number[states]] = states
    small = np.where(np.arange(n_blocks + 1)[:, None] > 0, number[trans[one_of_each]], 0)
    final = accepting[one_of_each] & (np.arange(n_blocks + 1) > 0)
    column, first = equal_columns(small)
    return np.ascontiguousarray(small[:, first]), final, int(number[start]), column


def equal_columns(trans: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Equal columns have one number, in order of first occurrence: (int32 [k], the first column of
    each number)."""
    numbers = dict[bytes, int]()
    column = [numbers.setdefault(one.tobytes(), len(numbers)) for one in trans.T]
    first = np.unique(column, return_index=True)[1]
    return np.array(column, np.int32), first


def numbered(
    trans: np.ndarray, accepting: np.ndarray, start: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """(trans, accepting, start): the states within reach of `start` in breadth-first order, columns
    in order; the others go away. Dead is 0."""
    number, order = breadth_first(trans, start)
    return number[trans[order]], accepting[order], int(number[start])
