"""Which ids may stand side by side without a boundary: one rectangle for each merge (see
`_kernels.geometry`), as sets of positions."""

from __future__ import annotations

import numpy as np

from bpe_automata._core.steps import Arrays, Int
from bpe_automata._kernels import inlined, inner
from bpe_automata._kernels.geometry import (
    BIRTH,
    FOREVER,
    HIGH,
    LEFT,
    LOW,
    MERGES,
    POSITION,
    RANK,
    RIGHT,
)
from bpe_automata._kernels.numba_hashing import slot_of


@inlined
def fill(positions: np.ndarray, low: Int, high: Int) -> None:
    """Add the positions low .. high - 1 to a set of them, uint64 words."""
    if low >= high:
        return
    full = ~np.uint64(0)
    first, last = low >> 6, (high - 1) >> 6
    begin = full << np.uint64(low & 63)
    end = full >> np.uint64(63 - ((high - 1) & 63))
    if first == last:
        positions[first] |= begin & end
        return
    positions[first] |= begin
    for word in range(first + 1, last):
        positions[word] = full
    positions[last] |= end


@inner
def forbid(token: Int, pairs: Arrays, positions: np.ndarray) -> None:
    """Make `positions` the set of the ids that may not come before a token."""
    ids, merges = pairs[0], pairs[1]
    for word in range(len(positions)):
        positions[word] = 0
    node, limit = np.int64(token), np.int64(FOREVER)
    while node >= 0:
        for i in range(ids[node, MERGES], ids[node + 1, MERGES]):
            if merges[i, RANK] >= limit:
                break
            fill(positions, np.int64(merges[i, LOW]), np.int64(merges[i, HIGH]))
        limit = np.int64(ids[node, BIRTH]) + 1
        node = np.int64(ids[node, LEFT])


@inlined
def keep(positions: np.ndarray, others: np.ndarray) -> bool:
    """Take what is not in `others` out of `positions`: is any left?"""
    some = np.uint64(0)
    for word in range(len(positions)):
        positions[word] &= others[word]
        some |= positions[word]
    return some != 0


@inlined
def is_empty(D: np.ndarray) -> bool:
    for w in range(len(D)):  # noqa: SIM110 - a loop is compiled
        if D[w] != 0:
            return False
    return True


@inner
def may_follow(token: Int, n: Int, pairs: Arrays) -> bool:
    """May an id come after another without a boundary? After none, or one that BPE does not make,
    no id may. One look for each pair of nodes of their spines."""
    ids, slots, values = pairs[0], pairs[3], pairs[4]
    if token < 0 or ids[token, POSITION] < 0 or ids[n, POSITION] < 0:
        return False
    n_ids = len(ids) - 1
    u, u_limit = np.int64(token), np.int64(FOREVER)
    while u >= 0:
        v, v_limit = np.int64(n), np.int64(FOREVER)
        while v >= 0:
            key = u * n_ids + v
            at = slot_of(slots, key)
            if slots[at] == key:
                rank = values[at]
                if rank < u_limit and rank <= v_limit:
                    return False
            v_limit = np.int64(ids[v, BIRTH])
            v = np.int64(ids[v, LEFT])
        u_limit = np.int64(ids[u, BIRTH])
        u = np.int64(ids[u, RIGHT])
    return True
