# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: freethreading_compatible=True
"""Rows, the ids that can be read at a configuration, and masks made of them. Also whether every id
is live at a configuration, which slices ask about all states of a region."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint64_t

from bpe_automata.canonical.arrays cimport (
    ALIVE, BREAKS, DEAD, DONE, EVERY_ID, EVERY_MADE, NEED_CONFIGURATIONS, NEED_ROOM, NEED_ROWS,
    NEED_SEARCH, NEED_SET, NEED_STEPS, NONE_PROVED, NO_TOKEN, PARTLY, Pairs, Read, Room, Work,
    add_bit, ints, ints_out, longs, longs_out, meets,
)
from bpe_automata.canonical.pairs cimport clear_forbidden, may_follow
from bpe_automata.canonical.search cimport SHORT, complete, length
from bpe_automata.canonical.status cimport (
    H_of, a_of, configuration, is_dead, is_live, key_of, settle_all, learn, members, need_set,
    number_all, pair_of, q_of, sets_after,
)
from bpe_automata.canonical.tokens cimport added_steps, read_tokens


def made_row(reads, int64_t made, int64_t H0, Work work, Room room):
    """The tokens that can be read at a configuration with the set H0, whose successors are cached,
    and after which acceptance can be reached. Ids that the last id forbids are included: `compose`
    removes them. reads: int32 [n, 4], rows of `Read`; from the row `made` on these are added
    tokens, which come only between pretokens. Returns (code, (free ids, bound ids)), int32."""
    cdef const Read* found = <const Read*>ints(reads)
    cdef int64_t n = len(reads), code, n_free = 0, n_bound = 0
    with nogil:
        code = split(found, n, made, H0, work, room, &n_free, &n_bound)
    if code != DONE:
        return code, None
    return code, (room.out[0, :n_free].copy(), room.out[1, :n_bound].copy())


cdef int64_t split(
    const Read* found, int64_t n, int64_t made, int64_t H0, Work work, Room room, int64_t* n_free,
    int64_t* n_bound
) noexcept nogil:
    cdef int64_t total, i, t, c, s, last, pair
    cdef int64_t[2] n_out
    cdef int32_t* out
    cdef int side
    for side in range(2):
        out, n_out[side], total = room.bound if side else room.free, 0, made if side else n
        if not number_all(found, total, sets_after(H0, side, work), work, room.numbers):
            return NEED_CONFIGURATIONS
        settle_all(room.numbers, total, work, room.wanted)
        for i in range(total):
            t, c = found[i].token, room.numbers[i]
            if c < 0:
                continue
            s, last = work.configs[c].status, t if i < made else NO_TOKEN
            if (
                s == PARTLY
                and not is_live(last, c, work)
                and complete(c, last, work, room.wanted) < 0
            ):
                pair = pair_of(c, last)
                if not is_dead(pair, work) and room.n_pairs < room.most_pairs:
                    room.open[room.n_pairs] = pair  # without room, the next call finds the others
                    room.n_pairs += 1
            elif s == ALIVE or s == PARTLY:
                out[n_out[side]] = <int32_t>t
                n_out[side] += 1
    n_free[0], n_bound[0] = n_out[0], n_out[1]
    if room.wanted.n > 0:
        return NEED_STEPS
    return NEED_SEARCH if room.n_pairs > 0 else DONE


def added_tokens(int64_t q, int64_t a, int64_t H, Work work, Room room):
    """(code, the added tokens that can be read at a configuration between pretokens: int32 [n, 4],
    rows of `Read`)."""
    cdef int64_t n = 0
    with nogil:
        if work.utf8_row[H] == 0 and meets(members(H, BREAKS, work), work.end, work.n_words):
            n = added_steps(q, a, work, room.found, room.wanted)
    return NEED_STEPS if room.wanted.n > 0 else DONE, room.reads[:n].copy()


def judge(rows, int64_t H0, numbers, Work work, Room room):
    """Find the configurations that tokens lead to from a set with cached successors, and their
    statuses. rows: int32 [n, 4], as of `Read`; numbers: int64 [2, n], filled with their numbers, -1
    for none, with a boundary before the token and without. Returns (code, True)."""
    cdef const Read* found = <const Read*>ints(rows)
    cdef int64_t* filled = longs_out(numbers)
    cdef int64_t n = len(rows), code = DONE
    cdef int side
    with nogil:
        for side in range(2):
            if not number_all(found, n, sets_after(H0, side, work), work, filled + side * n):
                code = NEED_CONFIGURATIONS
                break
            settle_all(filled + side * n, n, work, room.wanted)
    return code, True


def compose(packed, free, bound, int64_t last, Pairs follow, ends, mask):
    """Write a mask, int32 words, of a row's packed int32 [2, words] (or [2, 0]) and ids, without
    the bound ids that the last id forbids. ends: ids to add; follow: the pairs of what may not come
    after an id; last: -1 if no bound id may come."""
    cdef const int32_t* slice_ = ints(packed)
    cdef const int32_t* free_ids = ints(free)
    cdef const int32_t* bound_ids = ints(bound)
    cdef const int32_t* end_ids = ints(ends)
    cdef int32_t* bits = ints_out(mask)
    cdef int64_t n = len(mask), n_free = len(free), n_bound = len(bound), n_ends = len(ends), w, k
    cdef bint sliced = packed.shape[1] > 0
    with nogil:
        for w in range(n):
            bits[w] = slice_[(n if last >= 0 else 0) + w] if sliced else 0
        if last >= 0:
            for k in range(n_bound):
                add_bit(bits, bound_ids[k])
            clear_forbidden(last, True, follow, bits)
            if sliced:
                for w in range(n):
                    bits[w] |= slice_[w]
        for k in range(n_free):
            add_bit(bits, free_ids[k])
        for k in range(n_ends):
            add_bit(bits, end_ids[k])


def row_holds(packed, free, bound, int64_t token):
    """(can an id be read with a boundary before it, can it without one), of a row."""
    cdef const int32_t* slice_ = ints(packed)
    cdef const int32_t* ids
    cdef int64_t n = packed.shape[1], k
    cdef bint[2] found
    for side, listed in enumerate((free, bound)):
        ids, found[side] = ints(listed), False
        if n > 0:
            found[side] = slice_[side * n + (token >> 5)] >> (token & 31) & 1
        for k in range(len(listed)):
            found[side] |= ids[k] == token
    return found[0], found[1]


# ---------------------------------------------------------------- is every id live?


cdef inline bint all_proved(int64_t row) noexcept nogil:
    """Is every id that BPE makes live, according to `Config.open`?"""
    return row == EVERY_MADE or row == EVERY_ID


cdef int64_t first_open(int64_t row, Work work) noexcept nogil:
    """The first id that is not proved live; there must be one."""
    cdef const uint64_t* positions = work.rows + row * work.row_words
    cdef int64_t w = 0, bit = 0
    while positions[w] == 0:
        w += 1
    while not (positions[w] >> bit) & 1:
        bit += 1
    return work.pairs.order[64 * w + bit]


cdef int64_t learn_at_once(
    int64_t c, bint back, Work work, Room room, int64_t* nearer
) noexcept nogil:
    """Learn from the short ids that surely lead on from a configuration, until every id is proved
    live there. Unless `back`, first look for the configuration nearest to acceptance that an id of
    one byte leads to and where not every id is proved live: if there is one, nearer[0] is set to
    it, and nothing is learnt; else nearer[0] is -1. Returns a code."""
    cdef int64_t key = work.configs[c].key, q0, a0, H0, best, nearest = -1, first, n, i, t, child, s
    cdef int64_t away
    cdef int turn, side
    q0, a0, H0 = q_of(key), a_of(key), H_of(key)
    nearer[0] = -1
    if work.at[H0] < 0:
        need_set(H0, room)
        return NEED_SET
    if work.counts[1] == work.n_rows:
        return NEED_ROWS
    best = work.far[q0]
    for turn in range(back, 3):
        first = NO_TOKEN
        n = read_tokens(
            q0, a0, work.utf8_row[H0], 0, SHORT if turn == 2 else 1, work, work.trie, room
        )
        for side in range(2):
            if not number_all(room.found, n, sets_after(H0, side, work), work, room.numbers):
                return NEED_CONFIGURATIONS
            settle_all(room.numbers, n, work, room.wanted)
            for i in range(n):
                t, child = room.found[i].token, room.numbers[i]
                s = work.configs[child].status if child >= 0 else DEAD
                if s == DEAD or s == 0:
                    continue
                if turn == 0:
                    away = work.far[q_of(work.configs[child].key)]
                    if s != ALIVE and not all_proved(work.configs[child].open) and away < best:
                        nearest, best = child, away
                elif side == 1 and first >= 0 and not may_follow(first, t, work.pairs):
                    continue
                elif s == ALIVE or is_live(t, child, work):
                    learn(
                        c, t, side == 0, length(t, work) + work.configs[child].detour, work,
                        room.other,
                    )
                    if all_proved(work.configs[c].open):
                        return DONE
                    first = first_open(work.configs[c].open, work)
        if nearest >= 0:
            nearer[0] = nearest
            return DONE
    return NEED_STEPS if room.wanted.n > 0 else DONE


cdef int64_t learn_ahead(int64_t c, Work work, Room room) noexcept nogil:
    """`learn_at_once` for the configurations on a way to acceptance, the last one first: in
    `[a-z]{500}` each is settled by the next one. Returns a code."""
    cdef int64_t n = 1, code, nearest = -1
    room.frames[0].c, room.frames[0].phases = c, 0
    while n > 0:
        code = learn_at_once(
            room.frames[n - 1].c, room.frames[n - 1].phases > 0, work, room, &nearest
        )
        if code != DONE:
            return code
        if nearest >= 0:
            if n == room.n_frames:
                return NEED_ROOM
            room.frames[n - 1].phases = 1
            room.frames[n].c, room.frames[n].phases = nearest, 0
            n += 1
        else:
            n -= 1
    return DONE


cdef int64_t all_live(int64_t c, Work work, Room room, bint* live) noexcept nogil:
    """Is every id that BPE makes live at a configuration? Returns a code; for NEED_SEARCH the pair
    in room.open is to be searched."""
    cdef int64_t code, row, token, pair
    live[0] = False
    if work.configs[c].status == 0:
        room.numbers[0] = c
        settle_all(room.numbers, 1, work, room.wanted)
        if work.configs[c].status == 0:
            return NEED_STEPS
    if work.configs[c].status != PARTLY:
        live[0] = work.configs[c].status == ALIVE
        return DONE
    if work.configs[c].open == NONE_PROVED:
        code = learn_ahead(c, work, room)
        if code != DONE:
            return code
    row = work.configs[c].open
    if all_proved(row):
        live[0] = True
        return DONE
    token = first_open(row, work) if row >= 0 else work.pairs.order[0]
    pair = pair_of(c, token)
    if is_dead(pair, work):
        return DONE
    room.open[0], room.n_pairs = pair, 1
    return NEED_SEARCH


def live_at(region, sets, Work work, Room room):
    """(code, whether every id is live at all states of a region (int64) with each of some sets
    (int64), in state 0 of the text automaton)."""
    cdef const int64_t* states = longs(region)
    cdef const int64_t* given = longs(sets)
    cdef int64_t n = len(region), m = len(sets), code
    cdef bint live = False
    filled = np.empty(n * m, np.int64)
    cdef int64_t* numbers = longs_out(filled)
    with nogil:
        code = live_everywhere(states, n, given, m, work, room, numbers, &live)
    return code, live


cdef int64_t live_everywhere(
    const int64_t* states, int64_t n, const int64_t* sets, int64_t m, Work work, Room room,
    int64_t* numbers, bint* live
) noexcept nogil:
    cdef int64_t i, code = DONE
    live[0] = False
    for i in range(n * m):  # the farther states first, to which the others lead
        numbers[i] = configuration(key_of(states[n - 1 - i // m], 0, sets[i % m]), work)
        if numbers[i] < 0:
            return NEED_CONFIGURATIONS
    settle_all(numbers, n * m, work, room.wanted)
    for i in range(n * m):
        if work.configs[numbers[i]].status == DEAD:
            return DONE
    for i in range(n * m):
        code = all_live(numbers[i], work, room, live)
        if code != DONE or not live[0]:
            live[0] = False
            return code
    live[0] = True
    return DONE
