"""Which ids may stand side by side without a boundary: one rectangle for each merge (see
`_kernels.geometry`), as sets of positions."""

from __future__ import annotations

import numpy as np

from bpe_automata._core.steps import FOREVER, Arrays, Int
from bpe_automata._kernels import inner, jit
from bpe_automata._kernels.hashing import slot_of


@jit
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
    _, _, part, by_part, merges, low, high, birth = pairs[:8]
    positions[:] = 0
    node, limit = np.int64(token), np.int64(FOREVER)
    while node >= 0:
        for i in range(by_part[node], by_part[node + 1]):
            rank = merges[i]
            if rank >= limit:
                break
            fill(positions, np.int64(low[rank]), np.int64(high[rank]))
        limit = np.int64(birth[node]) + 1
        node = np.int64(part[node])


@jit
def keep(positions: np.ndarray, others: np.ndarray) -> bool:
    """Take what is not in `others` out of `positions`: is any left?"""
    some = np.uint64(0)
    for word in range(len(positions)):
        positions[word] &= others[word]
        some |= positions[word]
    return some != 0


@jit
def is_empty(D: np.ndarray) -> bool:
    for w in range(len(D)):  # noqa: SIM110 - a loop is compiled
        if D[w] != 0:
            return False
    return True


@inner
def is_broken(
    one: Int,
    other: Int,
    left: np.ndarray,
    right: np.ndarray,
    birth: np.ndarray,
    slots: np.ndarray,
    values: np.ndarray,
) -> bool:
    """Is a pair of tokens broken by a merge? One look for each pair of nodes of their spines."""
    n_ids = len(birth)
    u, u_limit = np.int64(one), np.int64(FOREVER)
    while u >= 0:
        v, v_limit = np.int64(other), np.int64(FOREVER)
        while v >= 0:
            key = u * n_ids + v
            at = slot_of(slots, key)
            if slots[at] == key:
                rank = values[at]
                if rank < u_limit and rank <= v_limit:
                    return True
            v_limit = np.int64(birth[v])
            v = np.int64(left[v])
        u_limit = np.int64(birth[u])
        u = np.int64(right[u])
    return False


@inner
def may_follow(token: Int, n: Int, pairs: Arrays) -> bool:
    """May an id come after another without a boundary? After none, or one that BPE does not make,
    no id may."""
    position, left, right, birth, slots, values = (
        pairs[0],
        pairs[8],
        pairs[9],
        pairs[7],
        pairs[10],
        pairs[11],
    )
    if token < 0 or position[token] < 0 or position[n] < 0:
        return False
    return not is_broken(token, n, left, right, birth, slots, values)
