"""The smallest automaton of a language.

    p ~ q  <=>  L(p) == L(q),   one state for each class of relevant states

The states are then numbered breadth-first by symbol, so equal languages give equal arrays (up to
the alphabet and the spellings, which are no part of the language).
Source: A. Valmari, "Fast brief practical DFA minimization", IPL 112, 2012 (`kernels.minimise`).
"""

from __future__ import annotations

import numpy as np

from bpe_automata.kernels.minimise import blocks
from bpe_automata.kernels.token_table import by_head
from bpe_automata.kernels.watch import watched
from bpe_automata.limits import NUMBERS, check_fits
from bpe_automata.token_automata.reach import breadth_first, trimmed
from bpe_automata.token_automata.table import Table, renumbered


def minimised(table: Table) -> Table:
    """L(table), with as few states as there can be (a partial automaton has no dead state). Raises
    BudgetExceededError for 2**31 transitions."""
    table = trimmed(table)
    check_fits("transitions", len(table.targets), NUMBERS - 1, "more than are numbered")
    ptr, tail, edge = watched(by_head, table.offsets, table.targets)
    label = np.searchsorted(table.alphabet, table.symbols).astype(np.int32)[edge]
    block, _ = watched(blocks, ptr, tail, label, len(table.alphabet), table.accepting)
    _, one_of_each = np.unique(block, return_index=True)
    return breadth_first(renumbered(table, one_of_each, block))
