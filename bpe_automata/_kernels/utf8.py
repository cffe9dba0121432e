"""The byte DFA of a character DFA, and the numbering of states: see `_automata.utf8`."""

from __future__ import annotations

import numpy as np

from bpe_automata._kernels import inner, jit
from bpe_automata._kernels.hashing import (
    first_slot,
    lengthened,
    mix,
    next_slot,
    rehashed,
    table_size,
)
from bpe_automata._kernels.watch import poll


def instantiate(
    trans: np.ndarray,
    nodes: np.ndarray,
    is_leaf: np.ndarray,
    lead: np.ndarray,
    some_byte: np.ndarray,
    max_bytes: int,
    watch: np.ndarray,
) -> np.ndarray:
    """One row per character state, then one per distinct (node, character state) vector.

    No rows at all if they would take more than `max_bytes`.
    """
    n_nodes, n_classes = len(nodes), len(some_byte)
    capacity = 2 * len(trans) + n_nodes + 1
    rows, keys = np.zeros((capacity, n_classes), np.int32), np.zeros(capacity, np.uint64)
    table, counts = np.zeros(table_size(capacity), np.int32), np.array([1, len(trans)])
    given = nodes, is_leaf, lead, some_byte, np.zeros(n_nodes, np.int32)
    while not _instantiate(trans, *given, rows, keys, table, counts, watch):
        capacity = 2 * len(rows) + n_nodes
        if 4 * n_classes * (capacity + len(rows)) > max_bytes:
            return rows[:0]
        rows, keys = lengthened(rows, capacity), lengthened(keys, capacity)
        table = rehashed(table, keys, capacity)
    return rows[: counts[1]]


@jit
def _instantiate(
    trans: np.ndarray,
    nodes: np.ndarray,
    is_leaf: np.ndarray,
    lead: np.ndarray,
    some_byte: np.ndarray,
    seen: np.ndarray,
    rows: np.ndarray,
    keys: np.ndarray,
    table: np.ndarray,
    counts: np.ndarray,
    watch: np.ndarray,
) -> bool:
    """Write the rows of the states from counts[0] on, behind the counts[1] that are there. Is there
    room for all? Else it is called again with more. seen: int32 [nodes], room."""
    n_nodes, n_classes = len(nodes), len(some_byte)
    while counts[0] < len(trans):
        q, used = counts[0], counts[1]
        if used + n_nodes + 1 > len(rows):
            return False
        for v in range(1, n_nodes):
            if poll(watch):
                return True
            for c in range(n_classes):
                if 0x80 <= some_byte[c] < 0xC0:
                    child = nodes[v, some_byte[c] & 63]
                    rows[used, c] = trans[q, child] if is_leaf[v] else seen[child]
            seen[v] = row_number(rows, used, False, keys, table)
            used = max(used, np.int64(seen[v]) + 1)
        for column in range(n_classes):
            first = lead[some_byte[column]]
            rows[q, column] = trans[q, first] if first >= 0 else seen[-first]
        counts[0], counts[1] = q + 1, used
    return True


@inner
def row_number(
    rows: np.ndarray, used: int, final: bool, keys: np.ndarray, table: np.ndarray
) -> int:
    """The state that accepts or not, and leads on, as the candidate row number `used` (which it
    becomes, if new). The lowest bit of a key, uint64, says whether its row accepts."""
    key, dead = np.uint64(0), not final
    for target in rows[used]:
        dead = dead and target == 0
        key = key * np.uint64(0x9E3779B97F4A7C15) + np.uint64(target)
    if dead:
        return 0
    key = (mix(key) << np.uint64(1)) | np.uint64(final)
    slot = first_slot(key, table)
    while table[slot] != 0:
        state = int(table[slot])
        same = keys[state] == key
        for column in range(rows.shape[1] if same else 0):
            same &= rows[state, column] == rows[used, column]
        if same:
            return state
        slot = next_slot(slot, table)
    table[slot], keys[used] = used, key
    return used


# ---------------------------------------------------------------- canonical numbering


@jit
def numbered(
    trans: np.ndarray, accepting: np.ndarray, start: int, watch: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int]:
    """(trans, accepting, start): the states within reach of `start` in breadth-first order, columns
    in order; the others go away. Dead is 0."""
    number = breadth_first(trans, start, watch)
    size = 1
    for s in range(len(number)):
        size = max(size, number[s] + 1)
    table, final = np.zeros((size, trans.shape[1]), np.int32), np.zeros(size, np.bool_)
    for s in range(trans.shape[0]):
        if poll(watch):
            break
        if number[s] != 0:
            final[number[s]] = accepting[s]
            for c in range(trans.shape[1]):
                table[number[s], c] = number[trans[s, c]]
    return table, final, number[start]


@jit
def breadth_first(trans: np.ndarray, start: int, watch: np.ndarray) -> np.ndarray:
    """int32 [n]: the number of each state, from 1 on; 0 of those out of reach."""
    number, queue = np.zeros(trans.shape[0], np.int32), np.empty(trans.shape[0], np.int32)
    if start == 0:
        return number
    number[start], queue[0], count, done = 1, start, 1, 0
    while done < count and not poll(watch):
        for target in trans[queue[done]]:
            if target != 0 and number[target] == 0:
                queue[count] = target
                count += 1
                number[target] = count
        done += 1
    return number
