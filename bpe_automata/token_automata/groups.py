"""Transitions with the same source and target, as one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata.kernels.token_table import by_target
from bpe_automata.kernels.watch import watched
from bpe_automata.token_automata.table import Table


class Groups(NamedTuple):
    """offsets: int64 [n_states + 1], the groups of a state, by target; target: int32 and
    size: int64, of each group; first: int64, where its symbols begin in `symbols` (int32 [m],
    ascending within a group)."""

    offsets: np.ndarray
    target: np.ndarray
    size: np.ndarray
    first: np.ndarray
    symbols: np.ndarray

    def of_state(self, state: int) -> slice:
        """The groups that leave a state."""
        return slice(int(self.offsets[state]), int(self.offsets[state + 1]))

    def symbols_of(self, group: int) -> np.ndarray:
        """int32, ascending."""
        return self.symbols[self.first[group] : self.first[group] + self.size[group]]


def grouped(table: Table) -> Groups:
    """The groups of all transitions."""
    order = watched(by_target, table.offsets, table.targets)
    source, target = table.sources(), table.targets[order]
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = (np.diff(source) != 0) | (np.diff(target) != 0)
    first = np.flatnonzero(begins)
    offsets = np.zeros(table.n_states + 1, dtype=np.int64)
    np.cumsum(np.bincount(source[first], minlength=table.n_states), out=offsets[1:])
    size = np.diff(np.append(first, len(order)))
    return Groups(offsets, target[first], size, first, table.symbols[order])
