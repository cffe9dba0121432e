"""What can be reached: relevant states, distances to acceptance, cycles."""

from __future__ import annotations

import numpy as np

from bpe_automata.kernels import token_table as kernels
from bpe_automata.kernels.distance import NEVER, distances_by_head
from bpe_automata.kernels.watch import watched
from bpe_automata.token_automata.table import Table, nothing, with_only


def distances(table: Table) -> np.ndarray:
    """int32 [n_states]: symbols to the nearest accepting state, -1 where there is none."""
    ptr, tail, _ = watched(kernels.by_head, table.offsets, table.targets)
    return distances_by_head(ptr, tail, table.accepting)


def relevant(table: Table) -> np.ndarray:
    """bool [n_states]: reachable from the start, and an accepting state is reachable from it."""
    found = np.zeros(table.n_states, dtype=np.bool_)
    found[_order(table)] = True
    return found & (distances(table) != NEVER)


def trimmed(table: Table) -> Table:
    """{ w : w in L } with relevant states only, in the order that they had; of the empty language
    one state is left."""
    keep = relevant(table)
    if keep.all():
        return table
    return with_only(table, np.flatnonzero(keep)) if keep[table.start] else nothing(table)


def breadth_first(table: Table) -> Table:
    """The states within reach of the start, numbered breadth-first by symbol."""
    return with_only(table, _order(table))


def _order(table: Table) -> np.ndarray:
    return watched(kernels.breadth_first, table.offsets, table.targets, table.start)


def topological(table: Table) -> np.ndarray | None:
    """int32: the states, each before those that it leads to; None if there is a cycle."""
    order = watched(kernels.topological, table.offsets, table.targets)
    return order if len(order) == table.n_states else None


def endless(table: Table) -> np.ndarray:
    """bool [n_states]: some walk from here has no end."""
    ptr, tail, _ = watched(kernels.by_head, table.offsets, table.targets)
    found = np.ones(table.n_states, dtype=np.bool_)
    found[watched(kernels.topological, ptr, tail)] = False  # backwards: these lead to no cycle
    return found
