"""Rows, the ids that can be read at a configuration, and masks made of them."""

from __future__ import annotations

import numpy as np

from bpe_automata._core.configurations import (
    is_live,
    number_all,
)
from bpe_automata._core.search import complete
from bpe_automata._core.status import know_all
from bpe_automata._core.steps import (
    ALIVE,
    BREAKS,
    DONE,
    NEED_CONFIGURATIONS,
    NEED_SEARCH,
    NEED_STEPS,
    NO_TOKEN,
    PARTLY,
    STATUS,
    Arrays,
    Int,
    meets,
)
from bpe_automata._core.tokens import added_steps, read_these, read_tokens
from bpe_automata._kernels import jit
from bpe_automata._kernels.geometry import RIGHT, clear_intervals
from bpe_automata._kernels.numba_hashing import slot_of


@jit
def read_row(
    q0: Int,
    a0: Int,
    H0: Int,
    few: np.ndarray,
    by_id: np.ndarray,
    memo: Arrays,
    kit: Arrays,
    part: Arrays,
    scratch: Arrays,
    visited: Arrays,
    deepest: Int,
    out: np.ndarray,
) -> tuple[Int, Int, Int]:
    """The ids that can be read at a configuration and after which acceptance can be reached; what
    the last id forbids is not taken out (`compose` does that): out[0, :n] free ones, out[1, :m]
    bound ones. What follows the set H0 is known. part: the trie that is read (all tokens, or those
    that a slice leaves); few: int64, ids that are read besides.

    Returns (code, n, m); NEED_SEARCH: n pairs, listed in PAIRS of scratch, are to be searched;
    NEED_STEPS: n nodes of the trie, listed last in FOUND of scratch, wait for steps."""
    (steps, text, chars, _), sets, trie, added, pairs = kit
    met, rows, ids = memo[2], memo[4], pairs[0]
    judged, path, wanted, numbers = scratch[0], scratch[1], scratch[2], scratch[5]
    row0, at, failed, open_ = np.int64(sets[1][H0]), sets[2][H0], visited[0], scratch[8]
    calls = wanted[-1]
    n = read_tokens(q0, a0, row0, np.int64(0), deepest, steps, text, part, path, judged, wanted)
    n_stuck = wanted[-1] - calls
    if len(few) > 0:
        n += read_these(few, q0, a0, row0, by_id, steps, text, trie, judged[n:], wanted)
    if wanted[0] > 0:
        return NEED_STEPS, n_stuck, 0
    m, n_open, n_free, n_found = 0, 0, 0, 0
    if row0 == 0 and meets(sets[0][H0, BREAKS], chars[2]):
        m = added_steps(q0, a0, added, steps, wanted, judged[n:])
    for side in range(2):
        after, n_free, n_found = sets[3][at, side], n_found, 0
        total = n + m if side == 0 else n  # added tokens come between pretokens alone
        if not number_all(judged, total, after, memo, numbers):
            return NEED_CONFIGURATIONS, 0, 0
        know_all(numbers, total, memo, kit, wanted)
        for i in range(total):
            t, c = np.int64(judged[i, 0]), numbers[i]
            if c < 0:
                continue
            s, last = met[c, STATUS], t if i < n else np.int64(NO_TOKEN)
            if (
                s == PARTLY
                and not is_live(last, c, met, rows, ids)
                and complete(c, last, memo, kit, wanted) < 0
            ):
                pair = (c << 20) | (last + 1)
                is_open = failed[slot_of(failed, pair)] != pair
                if is_open and n_open < len(open_):  # the next call finds the rest
                    open_[n_open] = pair
                    n_open += 1
            elif s in (ALIVE, PARTLY):
                out[side, n_found] = t
                n_found += 1
    if wanted[0] > 0:
        return NEED_STEPS, 0, 0
    return (NEED_SEARCH, n_open, 0) if n_open > 0 else (DONE, n_free, n_found)


@jit
def judge(rows: np.ndarray, H0: Int, numbers: np.ndarray, work: Arrays) -> tuple[Int, bool]:
    """Find the configurations that tokens lead to from a known set, and their statuses. rows:
    as of `read_tokens`; numbers: int64 [2, n], filled with these, -1 for none, with a boundary
    before the token and without. Returns (code, True)."""
    memo, kit, scratch, _, _, _ = work
    sets, wanted, n = kit[1], scratch[2], np.int64(len(rows))
    for side in range(2):
        after = sets[3][sets[2][H0], side]
        if not number_all(rows, n, after, memo, numbers[side]):
            return NEED_CONFIGURATIONS, True
        know_all(numbers[side], n, memo, kit, wanted)
    return DONE, True


@jit
def compose(
    packed: np.ndarray,
    free: np.ndarray,
    bound: np.ndarray,
    last: Int,
    follow: Arrays,
    ends: np.ndarray,
    mask: np.ndarray,
) -> None:
    """Write a mask, int32 words: packed int32 [2, words] (or [2, 0]) and ids of a row, without
    those that the last id forbids among the bound ones; ends: ids to add. follow: what may not come
    after an id, see `Geometry.after`; last: -1 where no bound id may come."""
    ids, merges, order = follow
    one = np.int32(1)
    side, sliced = 1 if last >= 0 else 0, packed.shape[1] > 0
    for w in range(len(mask)):
        mask[w] = packed[side, w] if sliced else np.int32(0)
    if last >= 0:
        for t in bound:
            mask[t >> 5] |= one << np.int32(t & 31)
        clear_intervals(last, RIGHT, 0, ids, merges, order, mask)
        for w in range(len(mask) if sliced else 0):
            mask[w] |= packed[0, w]
    for t in free:
        mask[t >> 5] |= one << np.int32(t & 31)
    for t in ends:
        mask[t >> 5] |= one << np.int32(t & 31)
