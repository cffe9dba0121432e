"""Is every id live at a configuration? What slices ask of all states of a region."""

from __future__ import annotations

import numpy as np

from bpe_automata._core.configurations import (
    EVERY_ID,
    EVERY_MADE,
    NONE_KNOWN,
    configuration,
    is_live,
    key_of,
    learn,
    need_set,
    number_all,
)
from bpe_automata._core.pairs import may_follow
from bpe_automata._core.search import SHORT, length
from bpe_automata._core.status import know_all
from bpe_automata._core.steps import (
    ALIVE,
    DEAD,
    DETOUR,
    DONE,
    KEY,
    NEED_CONFIGURATIONS,
    NEED_ROOM,
    NEED_ROWS,
    NEED_SEARCH,
    NEED_SET,
    NEED_STEPS,
    NO_TOKEN,
    OPEN,
    PARTLY,
    STATUS,
    Arrays,
    Int,
)
from bpe_automata._core.tokens import read_tokens
from bpe_automata._kernels import inlined, inner, jit
from bpe_automata._kernels.numba_hashing import slot_of


@inlined
def known_of_all(row: Int) -> bool:
    """Is every id live that BPE makes, by what `memo.met` says?"""
    return row in (EVERY_MADE, EVERY_ID)


@inner
def first_dead(row: np.ndarray, order: np.ndarray) -> Int:
    """The first id of those that are not known to be live."""
    w, bit = 0, 0
    while row[w] == 0:
        w += 1
    while not (row[w] >> np.uint64(bit)) & np.uint64(1):
        bit += 1
    return np.int64(order[64 * w + bit])


@inlined
def learn_at_once(c: Int, back: Int, memo: Arrays, kit: Arrays, scratch: Arrays) -> tuple[Int, Int]:
    """Learn from the short ids that surely lead on from a configuration, until every id is known
    to be live there; unless `back` is 1, only if something is known already of the configuration
    nearest to acceptance that an id of one byte leads to. Returns (code, that one; -1: learnt)."""
    (steps, text, _, states), sets, trie, added, pairs = kit
    found, path, wanted, need = scratch[:4]
    numbers, other = scratch[5], scratch[7]
    met, counts, rows = memo[2], memo[3], memo[4]
    key = met[c, KEY]
    q0, a0, H0 = key >> 40, (key >> 24) & 0xFFFF, key & 0xFFFFFF
    at, row0, none = sets[2][H0], np.int64(sets[1][H0]), np.int64(0)
    if at < 0:
        need_set(H0, need)
        return NEED_SET, np.int64(-1)
    if counts[1] == len(rows):
        return NEED_ROWS, np.int64(-1)
    far, nearest = states[4], np.int64(-1)
    best = far[q0]
    for turn in range(back, 3):
        longest, first = np.int64(SHORT if turn == 2 else 1), np.int64(NO_TOKEN)
        n = read_tokens(q0, a0, row0, none, longest, steps, text, trie, path, found, wanted)
        for side in range(2):
            if not number_all(found, n, sets[3][at, side], memo, numbers):
                return NEED_CONFIGURATIONS, np.int64(-1)
            know_all(numbers, n, memo, kit, wanted)
            for i in range(n):
                t, child = np.int64(found[i, 0]), numbers[i]
                s = met[child, STATUS] if child >= 0 else np.int64(DEAD)
                if s == DEAD or s == 0:
                    continue
                if turn == 0:
                    away = far[met[child, KEY] >> 40]
                    if s != ALIVE and not known_of_all(met[child, OPEN]) and away < best:
                        nearest, best = child, away
                elif side == 1 and first >= 0 and not may_follow(first, t, pairs):
                    continue
                elif s == ALIVE or is_live(t, child, met, rows, pairs[0]):
                    detour = length(t, trie, added) + met[child, DETOUR]
                    learn(c, t, np.int64(1 - side), detour, memo, pairs, other)
                    if known_of_all(met[c, OPEN]):
                        return DONE, np.int64(-1)
                    first = first_dead(rows[met[c, OPEN]], pairs[2])
        if nearest >= 0:
            return DONE, nearest
    return NEED_STEPS if wanted[0] > 0 else DONE, np.int64(-1)


@inlined
def learn_ahead(c: Int, memo: Arrays, kit: Arrays, scratch: Arrays) -> Int:
    """`learn_at_once`, first of the configurations on a way to acceptance, the last one first: in
    `[a-z]{500}` each is known by the next. Returns a code."""
    frames, n = scratch[6], 1
    frames[0, 0], frames[0, 1] = c, 0
    while n > 0:
        code, nearest = learn_at_once(frames[n - 1, 0], frames[n - 1, 1], memo, kit, scratch)
        if code != DONE:
            return code
        if nearest >= 0:
            if n == len(frames):
                return NEED_ROOM
            frames[n - 1, 1] = 1
            frames[n, 0], frames[n, 1] = nearest, 0
            n += 1
        else:
            n -= 1
    return DONE


@inlined
def all_live(c: Int, work: Arrays) -> tuple[Int, bool]:
    """Is every id that BPE makes live at a configuration? Returns (code, is it so); NEED_SEARCH:
    the pair in PAIRS of scratch is to be searched."""
    memo, kit, scratch, failed = work[0], work[1], work[2], work[3][0]
    met, rows, order = memo[2], memo[4], kit[4][2]
    if met[c, STATUS] == 0:
        scratch[5][0] = c
        know_all(scratch[5], np.int64(1), memo, kit, scratch[2])
        if met[c, STATUS] == 0:
            return NEED_STEPS, False
    if met[c, STATUS] != PARTLY:
        return DONE, met[c, STATUS] == ALIVE
    if met[c, OPEN] == NONE_KNOWN:
        code = learn_ahead(c, memo, kit, scratch)
        if code != DONE:
            return code, False
    row = met[c, OPEN]
    if known_of_all(row):
        return DONE, True
    token = first_dead(rows[row], order) if row >= 0 else np.int64(order[0])
    pair = (c << 20) | (token + 1)
    if failed[slot_of(failed, pair)] == pair:
        return DONE, False
    scratch[8][0] = pair
    return NEED_SEARCH, False


@jit
def live_at(region: np.ndarray, sets_of: np.ndarray, work: Arrays) -> tuple[Int, bool]:
    """Is every id live at all states of a region (int64) with each of some sets (int64), in state 0
    of the text automaton? Returns (code, is it so), see `all_live`."""
    memo, kit, scratch = work[0], work[1], work[2]
    met, n, m = memo[2], len(region), len(sets_of)
    numbers = np.empty(n * m, np.int64)
    for i in range(n * m):  # the farther states first, to which the others lead
        key = key_of(region[n - 1 - i // m], np.int64(0), sets_of[i % m])
        numbers[i] = configuration(key, memo)
        if numbers[i] < 0:
            return NEED_CONFIGURATIONS, False
    know_all(numbers, np.int64(n * m), memo, kit, scratch[2])
    for c in numbers:
        if met[c, STATUS] == DEAD:
            return DONE, False
    for c in numbers:
        code, live = all_live(c, work)
        if code != DONE or not live:
            return code, False
    return DONE, True
