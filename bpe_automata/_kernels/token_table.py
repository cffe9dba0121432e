"""Walks over the edges of a partial automaton in CSR form, and over two of them side by side.

The edges of state s are number offsets[s] to offsets[s + 1], ascending by symbol.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata._kernels import inner, jit
from bpe_automata._kernels.hashing import EMPTY, grown, slot_of, table_size, with_room
from bpe_automata._kernels.watch import poll

NOWHERE, TOO_MANY = -1, -2


class Rows(NamedTuple):
    """accepting: bool [n]; offsets: int64 [n + 1]; symbols, targets: int32 [m]; start: a state."""

    accepting: np.ndarray
    offsets: np.ndarray
    symbols: np.ndarray
    targets: np.ndarray
    start: int


@jit
def breadth_first(
    offsets: np.ndarray, targets: np.ndarray, start: int, watch: np.ndarray
) -> np.ndarray:
    """int32: the states within reach of `start`, breadth-first by symbol."""
    n = len(offsets) - 1
    seen, order, count, done = np.zeros(n, np.bool_), np.empty(n, np.int32), 1, 0
    seen[start], order[0] = True, start
    while done < count and not poll(watch):
        state = order[done]
        done += 1
        for edge in range(offsets[state], offsets[state + 1]):
            target = targets[edge]
            if not seen[target]:
                seen[target], order[count] = True, target
                count += 1
    return order[:count].copy()


@jit
def topological(offsets: np.ndarray, targets: np.ndarray, watch: np.ndarray) -> np.ndarray:
    """int32: the states, each before those that it leads to; fewer than all iff there is a cycle
    (Kahn, "Topological sorting of large networks", CACM 5, 1962)."""
    n = len(offsets) - 1
    waiting, order, count, done = np.zeros(n, np.int64), np.empty(n, np.int32), 0, 0
    for target in targets:
        if poll(watch):
            break
        waiting[target] += 1
    for state in range(n):
        if waiting[state] == 0:
            order[count] = state
            count += 1
    while done < count and not poll(watch):
        state = order[done]
        done += 1
        for edge in range(offsets[state], offsets[state + 1]):
            target = targets[edge]
            waiting[target] -= 1
            if waiting[target] == 0:
                order[count] = target
                count += 1
    return order[:count].copy()


@jit
def product(
    a: Rows,
    b: Rows,
    need_a: bool,
    need_b: bool,
    until_differ: bool,
    most: int,
    watch: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, int]:
    """The pairs of states within reach of (a.start, b.start), breadth-first by symbol; -1 stands
    for no state, which `need_a`, `need_b` rule out.

    Returns (pairs int32 [n, 2], offsets int64 [n + 1], symbols int32 [m], targets int32 [m],
    found): with `until_differ`, `found` is the first pair of which one accepts and the other does
    not, and the walk ends there; else NOWHERE, or TOO_MANY where there are more than `most`
    edges, with no pairs. (No exception: numba never frees what a kernel holds when it raises one.)
    """
    wide = len(b.accepting) + 1
    keys = np.full(table_size(512), EMPTY, np.int64)
    values = np.empty(len(keys), np.int32)
    pairs, count, done = np.empty((512, 2), np.int32), 0, 0
    offsets, m = np.zeros(513, np.int64), 0
    symbols, targets = np.empty(1024, np.int32), np.empty(1024, np.int32)
    key = (a.start + 1) * wide + b.start + 1
    count = _number(key, wide, keys, values, pairs, count)
    while done < count and not poll(watch):
        p, q = pairs[done, 0], pairs[done, 1]
        if until_differ and _accepts(a, p) != _accepts(b, q):
            return pairs[:count], offsets[: done + 1], symbols[:m], targets[:m], done
        i, i_end = _row(a, p)
        j, j_end = _row(b, q)
        while i < i_end or j < j_end:
            in_a = i < i_end and (j == j_end or a.symbols[i] <= b.symbols[j])
            in_b = j < j_end and (i == i_end or b.symbols[j] <= a.symbols[i])
            symbol = a.symbols[i] if in_a else b.symbols[j]
            key = (a.targets[i] + 1) * wide if in_a else 0
            key += b.targets[j] + 1 if in_b else 0
            i += in_a
            j += in_b
            if (need_a and not in_a) or (need_b and not in_b):
                continue
            if m == most:
                return pairs[:0], offsets[:1], symbols[:0], targets[:0], TOO_MANY
            if 2 * count + 2 > len(keys):
                keys, values, pairs = _more_room(keys, values, pairs, count)
                offsets = grown(offsets, len(offsets))
            count = _number(key, wide, keys, values, pairs, count)
            symbols, targets = grown(symbols, m), grown(targets, m)
            symbols[m], targets[m] = symbol, values[slot_of(keys, key)]
            m += 1
        done += 1
        offsets[done] = m
    return pairs[:count], offsets[: done + 1], symbols[:m], targets[:m], NOWHERE


@inner
def _accepts(rows: Rows, state: int) -> bool:
    return state >= 0 and rows.accepting[state]


@inner
def _row(rows: Rows, state: int) -> tuple[int, int]:
    return (rows.offsets[state], rows.offsets[state + 1]) if state >= 0 else (0, 0)


@inner
def _number(
    key: int, wide: int, keys: np.ndarray, values: np.ndarray, pairs: np.ndarray, count: int
) -> int:
    """Give the pair a number if it has none; returns how many pairs there are."""
    at = slot_of(keys, key)
    if keys[at] != EMPTY:
        return count
    keys[at], values[at] = key, count
    pairs[count, 0], pairs[count, 1] = key // wide - 1, key % wide - 1
    return count + 1


@inner
def _more_room(
    keys: np.ndarray, values: np.ndarray, pairs: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Twice the room for pairs."""
    new_keys, new_values = with_room(keys, values, len(keys))
    new_pairs = np.empty((2 * len(pairs), 2), np.int32)
    new_pairs[:count] = pairs[:count]
    return new_keys, new_values, new_pairs
