"""Computes the strings of a set that have a bounded length.

    L(within_length(dfa, m, n)) = { w in L(dfa) : m <= characters of w <= n }

A character is a code point, as in JSON Schema. Lengths are bounded layer by layer, in time linear
in the result; a product with `(?s:.{0,65535})` and its minimisation would take seconds.
"""

from __future__ import annotations

import numpy as np

from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.minimise import equal_columns
from bpe_automata._automata.sources import from_strings
from bpe_automata._automata.utf8 import bytes_to_go
from bpe_automata._budget import Budget, out_of_memory, spending
from bpe_automata._kernels.byte_product import layers, made
from bpe_automata._kernels.utf8 import numbered
from bpe_automata._kernels.watch import watched

_DEFAULT = Budget()
_COPIES = 3  # of the table, while it grows


def within_length(
    dfa: ByteDFA, fewest: int, most: int | None, budget: Budget = _DEFAULT
) -> ByteDFA:
    """{ w in L(dfa) : fewest <= characters of w <= most }, no upper bound if most is None.

    dfa: minimal, trimmed, of well-formed UTF-8, as all of `automata` makes them; so is the result.
    Raises BudgetExceededError if the table would take more than the budget's bytes.
    """
    if fewest <= 0 and most is None:
        return dfa
    if dfa.start == 0 or (most is not None and most < max(fewest, 0)):
        return from_strings(())
    left = bytes_to_go(dfa)
    count = fewest if most is None else most + 1
    limit = budget.max_bytes // (_COPIES * 4 * dfa.n_classes)
    count = min(count, limit + 1)  # no array needs to be longer to see that it is too long
    with spending(budget):
        ok, *found = watched(layers, dfa.trans, left, dfa.start, count, limit)
        if not ok:
            raise out_of_memory(budget)
        bounds = (max(fewest, 0), -1 if most is None else most)
        rows, accepting, start = watched(made, dfa.trans, dfa.accepting, left, *found, bounds)
        return _numbered(rows, dfa.byte_class, accepting, start)


def _numbered(
    rows: np.ndarray, byte_class: np.ndarray, accepting: np.ndarray, start: int
) -> ByteDFA:
    """The automaton without unreachable states and equal columns, numbered breadth-first."""
    rows, accepting, start = watched(numbered, rows, accepting, start)
    column, kept = equal_columns(rows)
    rows = rows if len(kept) == rows.shape[1] else np.ascontiguousarray(rows[:, kept])
    return ByteDFA(rows, column[byte_class].astype(np.uint8), accepting, int(start))
