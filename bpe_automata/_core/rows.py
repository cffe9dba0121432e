"""Rows, the ids that can be read at a configuration, and masks made of them."""

from __future__ import annotations

import numpy as np

from bpe_automata._core.configurations import (
    is_live,
    need_set,
    number_all,
)
from bpe_automata._core.search import ends_character
from bpe_automata._core.status import know_all
from bpe_automata._core.steps import (
    ALIVE,
    DONE,
    FOREVER,
    NEED_CONFIGURATIONS,
    NEED_SEARCH,
    NEED_SET,
    NEED_STEPS,
    NO_TOKEN,
    PARTLY,
    Arrays,
    Int,
    meets,
)
from bpe_automata._core.tokens import added_steps, read_these, read_tokens
from bpe_automata._kernels import jit
from bpe_automata._kernels.hashing import slot_of


@jit
def read_row(
    q0: Int,
    a0: Int,
    H0: Int,
    few: np.ndarray,
    by_id: Arrays,
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
    bound ones. part: the trie that is read (all tokens, or those that a slice leaves); few: int64,
    ids that are read besides.

    Returns (code, n, m); NEED_SEARCH: n pairs in scratch[5] are to be searched."""
    steps, text, chars, _, sets, trie, added, pairs = kit
    path, wanted, need, judged, numbers = scratch[1], scratch[2], scratch[3], scratch[8], scratch[9]
    at, open_, n_open = sets[3][H0], scratch[5], 0
    if at < 0:
        need_set(H0, need)
        return NEED_SET, 0, 0
    free, bound, row0 = sets[4][at], sets[5][at], np.int64(sets[2][H0])
    n = read_tokens(q0, a0, row0, np.int64(0), deepest, steps, text, part, path, judged, wanted)
    if len(few) > 0:
        n += read_these(few, q0, a0, row0, by_id, steps, text, trie, judged[n:], wanted)
    m = 0
    if row0 == 0 and meets(sets[0][H0], chars[4]):
        m = added_steps(q0, a0, added, steps, wanted, judged[n:])
    slots, values, keys, dead, counts, rows, known = memo[:7]
    position, failed, found_ids = pairs[0], visited[0], np.zeros(2, np.int64)
    for side in range(2):
        after, n_found = free if side == 0 else bound, 0
        total = n + m if side == 0 else n  # added tokens come between pretokens alone
        if not number_all(judged, total, after, slots, values, keys, counts, numbers):
            return NEED_CONFIGURATIONS, 0, 0
        know_all(numbers, total, memo, kit, wanted)
        for i in range(total):
            t, c = np.int64(judged[i, 0]), numbers[i]
            if c < 0:
                continue
            s, last = known[c], t if i < n else np.int64(NO_TOKEN)
            if (
                s == PARTLY
                and not is_live(last, c, dead, rows, position)
                and not ends_character(c, last, memo, kit, wanted)
            ):
                pair = (c << 20) | (last + 1)
                if failed[slot_of(failed, pair)] != pair and n_open < len(
                    open_
                ):  # the next call finds the rest
                    open_[n_open] = pair
                    n_open += 1
            elif s in (ALIVE, PARTLY):
                out[side, n_found] = t
                n_found += 1
        found_ids[side] = n_found
    if wanted[0] > 0:
        return NEED_STEPS, 0, 0
    if n_open > 0:
        return NEED_SEARCH, np.int64(n_open), 0
    return DONE, found_ids[0], found_ids[1]


@jit
def judge(
    rows: np.ndarray, H0: Int, memo: Arrays, kit: Arrays, scratch: Arrays, numbers: np.ndarray
) -> Int:
    """Find the configurations that tokens lead to from a hypothesis set, and their statuses. rows:
    as of `read_tokens`; numbers: int64 [2, n], filled with these, -1 for none, with a boundary
    before the token and without. Returns a code."""
    sets, wanted, need = kit[4], scratch[2], scratch[3]
    slots, values, keys, _, counts = memo[:5]
    at, n = sets[3][H0], np.int64(len(rows))
    if at < 0:
        need_set(H0, need)
        return NEED_SET
    for side in range(2):
        after = sets[4][at] if side == 0 else sets[5][at]
        if not number_all(rows, n, after, slots, values, keys, counts, numbers[side]):
            return NEED_CONFIGURATIONS
        know_all(numbers[side], n, memo, kit, wanted)
    return DONE


@jit
def compose(
    base: np.ndarray,
    free: np.ndarray,
    bound: np.ndarray,
    last: Int,
    follow: Arrays,
    ends: np.ndarray,
    mask: np.ndarray,
) -> None:
    """Write a mask, int32 words: base int32 [2, words] (or [2, 0]) and ids of a row, without those
    that the last id forbids among the bound ones; ends: ids to add. follow: what may not come after
    an id; last: -1 where no bound id may come."""
    part, by_part, merges, low, high, order, birth = follow
    one = np.int32(1)
    side, sliced = 1 if last >= 0 else 0, base.shape[1] > 0
    for w in range(len(mask)):
        mask[w] = base[side, w] if sliced else np.int32(0)
    if last >= 0:
        for t in bound:
            mask[t >> 5] |= one << np.int32(t & 31)
        node, limit = np.int64(last), np.int64(FOREVER)
        while node >= 0:
            for i in range(by_part[node], by_part[node + 1]):
                rank = merges[i]
                if rank >= limit:
                    break
                for at in range(low[rank], high[rank]):
                    t = order[at]
                    mask[t >> 5] &= ~(one << np.int32(t & 31))
            limit = np.int64(birth[node])
            node = np.int64(part[node])
        for w in range(len(mask) if sliced else 0):
            mask[w] |= base[0, w]
    for t in free:
        mask[t >> 5] |= one << np.int32(t & 31)
    for t in ends:
        mask[t >> 5] |= one << np.int32(t & 31)
