# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: freethreading_compatible=True
"""Which ids may stand side by side without a boundary: one rectangle for each merge.

A pair (L, R) of reachable tokens is broken by a merge (u, v) of rank m iff u is on L's right spine
(L, its right part, the right part of that, ...) and alive at m, and v is on R's left spine and
alive at m. A node is alive from its birth to the birth of the spine node above it; ties go left to
right, so v may be merged at exactly that rank and u may not.

`Pairs` describes one side. For each id: its position in the preorder of the other side, its birth,
its left and its right part, and where its merges begin: those of which it is the part on this side.
For each merge, by part and by rank: the rank and the interval of positions low:high on the other
side.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from bpe_automata.canonical.arrays cimport FOREVER, Pairs, bytes_out, ints, ints_out, longs
from bpe_automata._kernels.hashing cimport slot_of


cdef void fill(uint64_t* positions, int64_t low, int64_t high) noexcept nogil:
    """Add the positions low .. high - 1 to a set of them."""
    cdef int64_t word, first, last
    cdef uint64_t full = ~<uint64_t>0, begin, end
    if low >= high:
        return
    first, last = low >> 6, (high - 1) >> 6
    begin, end = full << (low & 63), full >> (63 - ((high - 1) & 63))
    if first == last:
        positions[first] |= begin & end
        return
    positions[first] |= begin
    for word in range(first + 1, last):
        positions[word] = full
    positions[last] |= end


cdef void forbid(int64_t token, Pairs pairs, uint64_t* positions) noexcept nogil:
    """Make `positions` the set of the ids that may not come before a token. pairs: those of what
    may not come before an id."""
    cdef int64_t word, i, node = token, limit = FOREVER
    for word in range((pairs.n_order + 63) >> 6):
        positions[word] = 0
    while node >= 0:
        for i in range(pairs.ids[node].merges, pairs.ids[node + 1].merges):
            if pairs.merges[i].rank >= limit:
                break
            fill(positions, pairs.merges[i].low, pairs.merges[i].high)
        limit = <int64_t>pairs.ids[node].birth + 1
        node = pairs.ids[node].left


cdef void clear_forbidden(int64_t token, bint after, Pairs pairs, int32_t* bits) noexcept nogil:
    """Clear, in packed int32 words, every id that may not come after a token, or not before it, as
    `pairs` describes. A spine has fewer nodes than the token has symbols, as parts are shorter than
    what they make."""
    cdef int64_t i, at, node = token, limit = FOREVER
    cdef int32_t other
    while node >= 0:
        for i in range(pairs.ids[node].merges, pairs.ids[node + 1].merges):
            if pairs.merges[i].rank >= limit:
                break
            for at in range(pairs.merges[i].low, pairs.merges[i].high):
                other = pairs.order[at]
                bits[other >> 5] &= ~<int32_t>(<uint32_t>1 << (other & 31))
        limit = <int64_t>pairs.ids[node].birth + (0 if after else 1)
        node = pairs.ids[node].right if after else pairs.ids[node].left


def clear_after(int64_t token, Pairs pairs, bits):
    """Clear in `bits` (int32 words, packed by id) what may not follow a token, as `pairs` says."""
    clear_forbidden(token, True, pairs, ints_out(bits))


def clear_before(int64_t token, Pairs pairs, bits):
    """Clear in `bits` what may not come before a token, as `pairs` says."""
    clear_forbidden(token, False, pairs, ints_out(bits))


cdef bint may_follow(int64_t token, int64_t n, Pairs pairs) noexcept nogil:
    """May id n follow a token without a boundary? It may not if there is no token, or if BPE does
    not make both. There is one look-up for each pair of nodes of their spines."""
    cdef int64_t u = token, v, u_limit = FOREVER, v_limit, key, at, rank
    if token < 0 or pairs.ids[token].position < 0 or pairs.ids[n].position < 0:
        return False
    while u >= 0:
        v, v_limit = n, FOREVER
        while v >= 0:
            key = u * pairs.n_ids + v
            at = slot_of(pairs.slots, pairs.n_slots, key)
            if pairs.slots[at] == key:
                rank = pairs.values[at]
                if rank < u_limit and rank <= v_limit:
                    return False
            v_limit = pairs.ids[v].birth
            v = pairs.ids[v].left
        u_limit = pairs.ids[u].birth
        u = pairs.ids[u].right
    return True


def may_follow_any(ids, tokens, Pairs pairs):
    """bool: may each of some tokens (int64) follow one of the ids (int64) without a boundary?"""
    cdef const int64_t* some = longs(tokens)
    cdef const int64_t* lasts = longs(ids)
    cdef int64_t i, k, n = len(tokens), m = len(ids)
    answers = np.zeros(n, np.bool_)
    cdef uint8_t* found = bytes_out(answers)
    with nogil:
        for i in range(n):
            for k in range(m):
                if may_follow(lasts[k], some[i], pairs):
                    found[i] = True
                    break
    return answers


def breaking_merge(int64_t left_token, int64_t right_token, left, right, birth, slots, values):
    """The least rank of a merge that breaks a pair, -1 if the pair is canonical. left, right,
    birth: int32 [ids]; slots int64, values int32: hash table of the ranks."""
    cdef const int32_t* lefts = ints(left)
    cdef const int32_t* rights = ints(right)
    cdef const int32_t* births = ints(birth)
    cdef const int64_t* keys = longs(slots)
    cdef const int32_t* ranks = ints(values)
    cdef int64_t n_ids = len(birth), n_slots = len(slots), best = FOREVER
    cdef int64_t u = left_token, v, u_limit = FOREVER, v_limit, at, rank
    while u >= 0:
        v, v_limit = right_token, FOREVER
        while v >= 0:
            at = slot_of(keys, n_slots, u * n_ids + v)
            rank = ranks[at] if keys[at] == u * n_ids + v else -1
            if 0 <= rank < u_limit and rank <= v_limit and rank < best:
                best = rank
            v_limit, v = births[v], lefts[v]
        u_limit, u = births[u], rights[u]
    return -1 if best == FOREVER else best
