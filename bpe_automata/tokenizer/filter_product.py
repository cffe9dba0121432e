"""Several text filters as one, over the atoms of an alphabet: it accepts what all of them accept.

The two filters of NFC have 54 and 202 states. Their tables are crossed as a whole, which is quicker
than looking for the pairs within reach.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata.tokenizer.alphabet import inside
from bpe_automata.tokenizer.filter_table import DEAD, TableFilter


class FilterProduct(NamedTuple):
    """next: int64 [n, n_atoms], -1 for dead; ends: bool [n]. State 0 begins."""

    next: np.ndarray
    ends: np.ndarray


def product(filters: tuple[TableFilter, ...], rows: np.ndarray) -> FilterProduct:
    """All filters together. rows: bool [n_classes, n_atoms], which atoms are in the classes of the
    filters, one filter after the other."""
    table = np.zeros((1, rows.shape[1]), dtype=np.int64)
    ends, first = np.array([True]), 0
    for filter_ in filters:
        held = rows[first : first + len(filter_.classes)]
        first += len(filter_.classes)
        table = _crossed(table, filter_.table[:, _columns(held)])
        ends = (ends[:, None] & filter_.accepting[None]).ravel()
    return FilterProduct(table, ends)


def classes_held(filters: tuple[TableFilter, ...], points: np.ndarray) -> np.ndarray:
    """bool [n_classes, n]: which of the code points are in each class, as `product` wants it."""
    held = [inside(ranges, points) for filter_ in filters for ranges in filter_.classes]
    return np.array(held, dtype=bool).reshape(len(held), len(points))


def _crossed(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """int64 [m * n, columns]: two tables side by side, state (a, b) being a * n + b."""
    m, n = len(one), len(other)
    pairs = one[:, None, :] * n + other[None, :, :]
    dead = (one[:, None, :] == DEAD) | (other[None, :, :] == DEAD)
    return np.where(dead, DEAD, pairs).reshape(m * n, one.shape[1])


def _columns(held: np.ndarray) -> np.ndarray:
    """The column of each atom; what is in no class has the last one."""
    columns = np.full(held.shape[1], len(held))
    for k, row in enumerate(held):
        columns[row] = k
    return columns
