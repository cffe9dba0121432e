"""How far from acceptance states are, by bytes and by tokens, and where the ids of a row lead."""

from __future__ import annotations

import numpy as np

from bpe_automata._core.configurations import number_all
from bpe_automata._core.pairs import may_follow
from bpe_automata._core.steps import (
    DONE,
    NEED_CONFIGURATIONS,
    NEED_SET,
    NEED_STEPS,
    Arrays,
    Int,
)
from bpe_automata._core.tokens import read_tokens
from bpe_automata._kernels import jit, links


@jit
def furthest(q: Int, depth: Int, steps: Arrays, far: np.ndarray, seen: np.ndarray) -> Int:
    """The most bytes to acceptance (far, int32 [states]) from the states that at most `depth` bytes
    lead to, as far as they are written down; -1 where these are too many. seen: int32 [states],
    another number than seen[0], which grows, at each of them."""
    trans, _, behind = steps
    most = np.int64(far[q])
    queue = np.empty(4096, np.int64)
    seen[0] += 1
    queue[0], seen[q], k, n = q, seen[0], 0, 1
    for _ in range(depth):
        end = n
        while k < end:
            state = queue[k]
            k += 1
            for column in range(trans.shape[1]):
                after = links.known_step(state, column, trans, behind)
                if after <= 0 or seen[after] == seen[0]:
                    continue
                if n == len(queue):
                    return np.int64(-1)
                seen[after], queue[n] = seen[0], after
                n += 1
                most = max(most, np.int64(far[after]))
    return most


@jit
def may_come(ids: np.ndarray, token: Int, pairs: Arrays) -> np.ndarray:
    """bool: may a token follow each of some ids without a boundary?"""
    found = np.empty(len(ids), np.bool_)
    for i in range(len(ids)):
        found[i] = may_follow(ids[i], token, pairs)
    return found


@jit
def may_follow_any(ids: np.ndarray, tokens: np.ndarray, pairs: Arrays) -> np.ndarray:
    """bool: may each of some tokens follow one of the ids without a boundary?"""
    found = np.zeros(len(tokens), np.bool_)
    for i in range(len(tokens)):
        for last in ids:
            if may_follow(last, tokens[i], pairs):
                found[i] = True
                break
    return found


@jit
def targets(
    q0: Int,
    a0: Int,
    H0: Int,
    live: np.ndarray,
    memo: Arrays,
    kit: Arrays,
    scratch: Arrays,
    visited: Arrays,
    deepest: Int,
    quota: np.ndarray,
) -> tuple[Int, tuple[np.ndarray, np.ndarray]]:
    """Where the ids of a row lead: live int32 [2, words], packed, the ids with a boundary before
    them and without. Returns (code, (rows, keys)). rows int32 [n, 3]: id, the number of its target
    with a boundary before it, and without, -1 where the id may not come so; keys int64: the
    targets, as configurations."""
    steps, text, _, _, sets, trie, _, _ = kit
    path, wanted, need, judged, numbers = scratch[1], scratch[2], scratch[3], scratch[8], scratch[9]
    slots, values, keys, counts = memo[0], memo[1], memo[2], memo[4]
    at, row0 = sets[3][H0], np.int64(sets[2][H0])
    nothing, no_keys = np.empty((0, 3), np.int32), np.empty(0, np.int64)
    if at < 0:
        need[0], need[1] = 1, H0
        return NEED_SET, (nothing, no_keys)
    zero = np.int64(0)
    n = read_tokens(q0, a0, row0, zero, deepest, steps, text, trie, path, judged, wanted)
    if wanted[0] > 0:
        return NEED_STEPS, (nothing, no_keys)
    rows = np.full((n, 3), -1, np.int32)
    for side in range(2):
        after = sets[4][at] if side == 0 else sets[5][at]
        if not number_all(judged, n, after, slots, values, keys, counts, numbers):
            return NEED_CONFIGURATIONS, (nothing, no_keys)
        for i in range(n):
            t = judged[i, 0]
            rows[i, 0] = t
            if numbers[i] >= 0 and (live[side, t >> 5] >> (t & 31)) & 1:
                rows[i, 1 + side] = numbers[i]
    group, n_groups = np.full(counts[0], -1, np.int32), 0
    found, m = np.empty(2 * n, np.int64), 0
    for i in range(n):
        if rows[i, 1] < 0 and rows[i, 2] < 0:
            continue
        for side in range(1, 3):
            c = rows[i, side]
            if c >= 0:
                if group[c] < 0:
                    group[c], found[n_groups] = n_groups, keys[c]
                    n_groups += 1
                rows[i, side] = group[c]
        rows[m] = rows[i]
        m += 1
    return DONE, (rows[:m].copy(), found[:n_groups].copy())
