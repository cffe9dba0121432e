"""The minimal form of a DFA, in which equal languages have equal arrays."""

from __future__ import annotations

import numpy as np

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.budget import Budget, out_of_memory, spending
from bpe_automata.kernels.minimise import minimise
from bpe_automata.kernels.utf8 import numbered
from bpe_automata.kernels.watch import watched

EDGE_BYTES = 48  # what minimisation keeps for one edge


def reduced(
    table: tuple[np.ndarray, np.ndarray], accepting: np.ndarray, start: int, budget: Budget
) -> ByteDFA:
    """The minimal trimmed DFA of a complete one, numbered breadth-first by byte.

    table: (trans int32 [n, k], row 0 all 0; byte_class [256]); accepting: bool [n]. Raises
    BudgetExceededError.
    """
    trans, byte_class = table
    if np.count_nonzero(trans) * EDGE_BYTES > budget.max_bytes:
        raise out_of_memory(budget)
    if start >= len(trans):  # a product whose start is dead
        start = 0
    columns, byte_class = _by_first_byte(byte_class)
    trans = np.ascontiguousarray(trans[:, columns])
    with spending(budget):
        trans, accepting, start, column = watched(minimise, trans, accepting, start)
        trans, accepting, start = watched(numbered, trans, accepting, start)
    return ByteDFA(trans, column[byte_class].astype(np.uint8), accepting, int(start))


def _by_first_byte(byte_class: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the old number of each column, the new column of each byte), in order of first byte."""
    used, first, inverse = np.unique(byte_class, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(used), np.int64)
    number[order] = np.arange(len(used))
    return used[order].astype(np.int64), number[inverse.ravel()]
