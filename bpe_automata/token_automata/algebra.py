"""Boolean operations by the product of two automata, in which -1 stands for "no state any more".

    L(union) = L(one) | L(other),  L(intersection) = L(one) & L(other),
    L(difference) = L(one) - L(other),  L(complement) = alphabet* - L(table)

Only states within reach of the start are made, numbered breadth-first by symbol.
"""

from __future__ import annotations

import numpy as np

from bpe_automata.errors import BudgetExceededError
from bpe_automata.kernels import token_table as kernels
from bpe_automata.kernels.watch import watched
from bpe_automata.token_automata.table import Table

_ADVICE = (
    "the automata are too large to be combined; trim or minimise them first, or raise max_edges"
)


def union(one: Table, other: Table, max_edges: int) -> Table:
    """{ w : w in L(one) or w in L(other) }"""
    accepts, parts = _product(one, other, (False, False), max_edges)
    return Table(0, accepts[0] | accepts[1], *parts)


def intersection(one: Table, other: Table, max_edges: int) -> Table:
    """{ w : w in L(one) and w in L(other) }"""
    accepts, parts = _product(one, other, (True, True), max_edges)
    return Table(0, accepts[0] & accepts[1], *parts)


def difference(one: Table, other: Table, max_edges: int) -> Table:
    """{ w : w in L(one) and not w in L(other) }"""
    accepts, parts = _product(one, other, (True, False), max_edges)
    return Table(0, accepts[0] & ~accepts[1], *parts)


def complement(table: Table, max_edges: int) -> Table:
    """{ w in alphabet* : w not in L }. Every state then reads all of the alphabet, the last one
    being where the sequences go that `table` cannot read."""
    n, k = table.n_states, len(table.alphabet)
    if (n + 1) * k > max_edges:
        raise BudgetExceededError("edges", max_edges, f"{n + 1} states by {k} symbols are more")
    targets = np.full((n + 1, k), n, dtype=np.int32)
    targets[table.sources(), np.searchsorted(table.alphabet, table.symbols)] = table.targets
    accepting = np.append(~table.accepting, np.True_)
    offsets = np.arange(n + 2, dtype=np.int64) * k
    symbols = np.tile(table.alphabet, n + 1)
    parts = offsets, symbols, targets.reshape(-1), table.alphabet, table.spellings
    return Table(table.start, accepting, *parts)


_Parts = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, tuple[bytes, ...] | None]


def _product(
    one: Table, other: Table, need: tuple[bool, bool], max_edges: int
) -> tuple[tuple[np.ndarray, np.ndarray], _Parts]:
    """(who accepts in each pair, all but start and accepting of the product). `need`: must the
    first, the second have a state?"""
    pairs, offsets, symbols, targets, found = watched(
        kernels.product, one.rows(), other.rows(), *need, False, max_edges
    )
    if found == kernels.TOO_MANY:
        raise BudgetExceededError("edges", max_edges, _ADVICE)
    accepts = _accepts(one, pairs[:, 0]), _accepts(other, pairs[:, 1])
    alphabet = np.union1d(one.alphabet, other.alphabet)
    spellings = other.spellings if one.spellings is None else one.spellings
    return accepts, (offsets, symbols, targets, alphabet, spellings)


def _accepts(table: Table, states: np.ndarray) -> np.ndarray:
    return (states >= 0) & table.accepting[states]
