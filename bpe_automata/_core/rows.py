"""Rows, the ids that can be read at a configuration, and masks made of them."""

from __future__ import annotations

import numpy as np

from bpe_automata._core.configurations import (
    configuration,
    is_live,
    key_of,
    know,
    need_set,
    number_all,
)
from bpe_automata._core.search import all_live, search
from bpe_automata._core.steps import (
    ALIVE,
    DONE,
    FOREVER,
    LATER,
    NEED_CONFIGURATIONS,
    NEED_SET,
    NEED_STEPS,
    NEED_TIME,
    NO_TOKEN,
    PARTLY,
    Arrays,
    Int,
    jit,
    meets,
)
from bpe_automata._core.tokens import added_steps, read_these, read_tokens

FEW = 40  # calls of `candidates` for one id of a slice
MOST_WAITING = 16  # ids whose searches wait for something, in one call


@jit
def read_row(  # noqa: PLR0915 - one loop
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
    quota: np.ndarray,
    out: np.ndarray,
) -> tuple[Int, Int, Int]:
    """The ids that can be read at a configuration and are not dead there, whatever the last id was
    but for what it forbids: out[0, :n] free ones, out[1, :m] bound ones. part: the trie that is
    read (all tokens, or those that a slice leaves); few: int32, ids that are read besides.

    Returns (code, n, m)."""
    steps, text, chars, _, sets, trie, added, pairs = kit
    path, wanted, need, judged, numbers = scratch[1], scratch[2], scratch[3], scratch[8], scratch[9]
    at = sets[3][H0]
    if at < 0:
        need_set(H0, need)
        return NEED_SET, 0, 0
    free, bound, row0 = sets[4][at], sets[5][at], np.int64(sets[2][H0])
    n = read_tokens(q0, a0, row0, np.int64(0), deepest, steps, text, part, path, judged, wanted)
    if len(few) > 0:
        klass, after, first = by_id
        n += read_these(few, q0, a0, klass, after, first, steps, text, trie, judged[n:], wanted)
    m = 0
    if row0 == 0 and (len(chars[0]) == 0 or meets(sets[0][H0], chars[4])):
        m = added_steps(q0, a0, added, steps, wanted, judged[n:])
    slots, values, keys, dead, counts, rows, known = memo
    position, code, found_ids, waiting = pairs[0], DONE, np.zeros(2, np.int64), 0
    for side in range(2):
        after, n_found = free if side == 0 else bound, 0
        if not number_all(judged, n, after, slots, values, keys, counts, numbers):
            return NEED_CONFIGURATIONS, 0, 0
        for i in range(n + m):
            t, c = np.int64(judged[i, 0]), np.int64(-1)
            last = t
            if i < n:
                c = numbers[i]
            else:  # an added token
                last = np.int64(NO_TOKEN)
                if side == 0:
                    q, a = np.int64(judged[i, 1]), np.int64(judged[i, 2])
                    c = configuration(key_of(q, a, np.int64(0)), slots, values, keys, counts)
                    if c < 0:
                        return NEED_CONFIGURATIONS, 0, 0
            if c < 0:
                continue
            s = known[c]
            if s == 0:
                s = know(c, memo, kit, wanted)
            if s == PARTLY:
                live = is_live(last, c, dead, rows, position)
                if not live:
                    if waiting == MOST_WAITING:
                        continue
                    code = search(c, last, memo, kit, scratch, visited, deepest, quota)
                    if code in (NEED_STEPS, NEED_SET):  # others may need more of them
                        waiting += 1
                        continue
                    if code != DONE:
                        return code, 0, 0
                    if not is_live(last, c, dead, rows, position):
                        continue
            elif s != ALIVE:
                continue
            out[side, n_found] = t
            n_found += 1
        found_ids[side] = n_found
    n_free, n_bound = found_ids[0], found_ids[1]
    if wanted[0] > 0:
        return NEED_STEPS, 0, 0
    return NEED_SET if need[0] > 0 else DONE, n_free, n_bound


@jit
def read_slice(
    H0: Int,
    memo: Arrays,
    kit: Arrays,
    part: Arrays,
    scratch: Arrays,
    visited: Arrays,
    deepest: Int,
    quota: np.ndarray,
    surely: np.ndarray,
    later: np.ndarray,
    unsure: np.ndarray,
) -> tuple[Int, Int, Int, Int, Int]:
    """The ids of a slice, in a loop that never ends (see `_core.slices`), at its start and a
    hypothesis set: surely[0, :n0], surely[1, :n1], those that lead on as a boundary can come;
    later: (id, side, set) of those that lead to a character's end where none can; unsure: (id,
    side) of all others. Returns (code, n0, n1, how many of later, of unsure)."""
    steps, text, _, _, sets, _, _, pairs = kit
    path, wanted, need, judged, numbers = scratch[1], scratch[2], scratch[3], scratch[8], scratch[9]
    slots, values, keys, dead, counts, rows, known = memo
    at = sets[3][H0]
    if at < 0:
        need_set(H0, need)
        return NEED_SET, 0, 0, 0, 0
    none = np.int64(0)
    n = read_tokens(np.int64(1), none, none, none, deepest, steps, text, part, path, judged, wanted)
    sizes = np.zeros(4, np.int64)
    for side in range(2):
        after = sets[4][at] if side == 0 else sets[5][at]
        if not number_all(judged, n, after, slots, values, keys, counts, numbers):
            return NEED_CONFIGURATIONS, 0, 0, 0, 0
        for i in range(n):
            t, c = np.int64(judged[i, 0]), numbers[i]
            if c < 0:
                continue
            s, key = known[c], keys[c]
            H = key & 0xFFFFFF
            if s == 0:
                s = know(c, memo, kit, wanted)
            live = s == ALIVE
            if s == PARTLY:
                live = is_live(t, c, dead, rows, pairs[0])
                if not live:
                    quota[0] = FEW
                    code = search(c, t, memo, kit, scratch, visited, deepest, quota)
                    if code == NEED_SET:
                        continue
                    if code == NEED_TIME:  # it is not asked again
                        known[c] = LATER
                    elif code != DONE:
                        return code, 0, 0, 0, 0
                    live = is_live(t, c, dead, rows, pairs[0])
            elif s == LATER:
                live = is_live(t, c, dead, rows, pairs[0])
            if not live and sets[2][H] == 0:
                k = sizes[2]
                later[k, 0], later[k, 1], later[k, 2] = t, side, H
                sizes[2] = k + 1
                continue
            if live:
                surely[side, sizes[side]] = t
                sizes[side] += 1
            else:
                k = sizes[3]
                unsure[k, 0], unsure[k, 1] = t, side
                sizes[3] = k + 1
    code = NEED_SET if need[0] > 0 else DONE
    return code, sizes[0], sizes[1], sizes[2], sizes[3]


@jit
def live_at(
    region: np.ndarray,
    sets_of: np.ndarray,
    memo: Arrays,
    kit: Arrays,
    scratch: Arrays,
    visited: Arrays,
    deepest: Int,
    quota: np.ndarray,
) -> tuple[Int, bool]:
    """Is every id live at all states of a region (int64) with each of some sets (int64), in state 0
    of the text automaton? Returns (code, is it so)."""
    slots, values, keys, counts = memo[0], memo[1], memo[2], memo[4]
    for k in range(len(region) - 1, -1, -1):  # the farther ones first, to which the others lead
        q = region[k]
        for H in sets_of:
            c = configuration(key_of(q, np.int64(0), H), slots, values, keys, counts)
            if c < 0:
                return NEED_CONFIGURATIONS, False
            code, live = all_live(c, memo, kit, scratch, visited, deepest, quota)
            if code != DONE or not live:
                return code, False
    return DONE, True


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
    if last >= 0:
        if base.shape[1] > 0:
            mask[:] = base[1]
        else:
            mask[:] = 0
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
        if base.shape[1] > 0:
            for w in range(len(mask)):
                mask[w] |= base[0, w]
    elif base.shape[1] > 0:
        mask[:] = base[0]
    else:
        mask[:] = 0
    for t in free:
        mask[t >> 5] |= one << np.int32(t & 31)
    for t in ends:
        mask[t >> 5] |= one << np.int32(t & 31)
