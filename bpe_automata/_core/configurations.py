"""Configurations, numbered as they are met, and what is known of them."""

from __future__ import annotations

import numpy as np

from bpe_automata._core.pairs import forbid, is_empty, keep
from bpe_automata._core.steps import BEGINNING, DETOUR, KEY, OPEN, Arrays, Int
from bpe_automata._kernels import inlined, inner, jit
from bpe_automata._kernels.geometry import POSITION
from bpe_automata._kernels.numba_hashing import slot_of

# Of `memo.met`: no id is known to be live; every id that BPE makes is; every id is, and so it is
# where there is no last one. Else the row of those that are not known to be.
NONE_KNOWN, EVERY_MADE, EVERY_ID = -3, -2, -1


@inlined
def key_of(q: Int, a: Int, H: Int) -> Int:
    """A configuration in one word."""
    return (q << 40) | (a << 24) | H


@inlined
def configuration(key: Int, memo: Arrays) -> Int:
    """The number of a configuration, by its key; -1: there is no room for one more."""
    slots, values, met, counts = memo[0], memo[1], memo[2], memo[3]
    at = slot_of(slots, key)
    if slots[at] != key:
        n = counts[0]
        if n >= len(met) or 2 * n >= len(slots):
            return np.int64(-1)
        slots[at], values[at], met[n, KEY] = key, n, key
        counts[0] = n + 1
    return np.int64(values[at])


@jit
def number_all(
    found: np.ndarray, n: Int, after: np.ndarray, memo: Arrays, numbers: np.ndarray
) -> bool:
    """The configurations that tokens lead to: numbers[:n], -1 where there is none. found: rows of
    (token, q, a, class), of class -1 where a text begins anew behind the token; after: the set
    after each class. Is there room for all?"""
    last, c = np.int64(-1), np.int64(-1)
    for i in range(n):
        H = np.int64(after[found[i, 3]]) if found[i, 3] >= 0 else np.int64(BEGINNING)
        if H < 0:
            numbers[i] = -1
            continue
        key = key_of(np.int64(found[i, 1]), np.int64(found[i, 2]), H)
        if key != last:
            last = key
            c = configuration(key, memo)
            if c < 0:
                return False
        numbers[i] = c
    return True


@inlined
def is_live(token: Int, c: Int, met: np.ndarray, rows: np.ndarray, ids: np.ndarray) -> bool:
    """Is it known that an id is live at a configuration?"""
    row = met[c, OPEN]
    if row == EVERY_ID:
        return True
    if token < 0 or row == NONE_KNOWN or ids[token, POSITION] < 0:
        return False
    at = ids[token, POSITION]
    return row == EVERY_MADE or not (rows[row, at >> 6] >> np.uint64(at & 63)) & np.uint64(1)


@inner
def learn(
    c: Int, n: Int, is_free: Int, detour: Int, memo: Arrays, pairs: Arrays, other: np.ndarray
) -> None:
    """Note that an id leads on from a configuration. detour: bytes from there until acceptance can
    be reached whatever the last id was, those of the id included."""
    met, counts, rows = memo[2], memo[3], memo[4]
    met[c, DETOUR] = max(met[c, DETOUR], detour)
    counts[2] = max(counts[2], detour)
    row = met[c, OPEN]
    if is_free:
        met[c, OPEN] = EVERY_ID
    elif row != EVERY_ID and row != EVERY_MADE:
        if row == NONE_KNOWN:
            row = counts[1]
            counts[1] += 1
            met[c, OPEN] = row
            forbid(n, pairs, rows[row])
        else:
            forbid(n, pairs, other)
            keep(rows[row], other)
        if is_empty(rows[row]):
            met[c, OPEN] = EVERY_MADE


@inlined
def need_set(H: Int, need: np.ndarray) -> None:
    """Note that what follows a set is needed: need[0] counts them."""
    n = need[0]
    for k in range(1, n + 1):
        if need[k] == H:
            return
    if n + 1 < len(need):
        need[n + 1] = H
        need[0] = n + 1
