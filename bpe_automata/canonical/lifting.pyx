# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: freethreading_compatible=True
"""Masks of the lift, by one walk over the vocabulary; and where ids lead, for its good states."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t

from bpe_automata.canonical.arrays cimport (
    Base, Node, Trie, add_bit, after_byte, bytes_, bytes_out, ints, ints_out, longs, longs_out,
)

cdef enum:
    AT_ONCE = 200  # states that one call settles


def read_mask(todo, Base base, Trie trie, int64_t deepest, missing, mask):
    """Add to a mask, int32 words, the tokens that lead to good states. todo: int64 rows (first
    node, one past the last node, the state before the first, any). Nodes below a step that is not
    written down are not read: they become such a row of `missing`, int64 [n, 4], whose last entry
    is the step's number. Returns how many rows; if all of them, there may be more such nodes."""
    cdef const int64_t* row = longs(todo)
    cdef int64_t* lacking = longs_out(missing)
    cdef int32_t* bits = ints_out(mask)
    way = np.empty(deepest + 2, np.int64)
    cdef int64_t* path = longs_out(way)
    cdef int64_t n = 0, n_todo = len(todo), most = len(missing), k, node, q
    cdef const Node* here
    with nogil:
        for k in range(n_todo):
            node = row[4 * k]
            if node < row[4 * k + 1]:
                path[trie.nodes[node].depth - 1] = row[4 * k + 2]
            while node < row[4 * k + 1]:
                here = &trie.nodes[node]
                q = after_byte(path[here.depth - 1], here.label, base)
                if q < 0 and n < most:
                    lacking[4 * n], lacking[4 * n + 1] = node, here.skip
                    lacking[4 * n + 2], lacking[4 * n + 3] = path[here.depth - 1], -1 - q
                    n += 1
                if q <= 0:
                    node = here.skip
                    continue
                path[here.depth] = q
                if here.token >= 0 and base.good[q] == 1:
                    add_bit(bits, here.token)
                node += 1
    return n


def lead_on(open_, int64_t at, good, trans, byte_class, Trie trie, added, around, seen, edges):
    """Find where ids lead from open_[at] (int64) and some states after it. A state from which one
    leads to a good state is made good (uint8); for the others edges[:, :n], int32, become (state,
    where an id leads). Returns (the next index in open_, n). trans: int32 [states, columns];
    byte_class: uint8; trie: a node has class 0 if its token is not read; added: int64, the added
    tokens that are read; around: added_from, added_behind, int32; seen: int64 [states], the last
    state for which each was listed."""
    cdef const int64_t* asked = longs(open_)
    cdef uint8_t* is_good = bytes_out(good)
    cdef const int32_t* steps = ints(trans)
    cdef const uint8_t* column = bytes_(byte_class)
    cdef const int64_t* tokens = longs(added)
    cdef const int32_t* before = ints(around[0])
    cdef const int32_t* behind = ints(around[1])
    cdef int64_t* last_of = longs_out(seen)
    cdef int32_t* edge = ints_out(edges)
    cdef int64_t n_states = len(trans), columns = trans.shape[1], most = edges.shape[1], n = 0
    cdef int64_t end = min(at + AT_ONCE, len(open_)), n_added = len(added), q, begun, node, k, i
    cdef int64_t after
    cdef bint is_read
    cdef const Node* here
    way = np.empty(trie.nodes_array["depth"].max(initial=1) + 1, np.int64)
    cdef int64_t* path = longs_out(way)
    with nogil:
        while at < end and n + n_states <= most:
            q, begun, node, k = asked[at], n, 0, 0
            path[0] = q
            while (node < trie.n or k < n_added) and is_good[q] == 0:
                if node < trie.n:
                    here = &trie.nodes[node]
                    after = steps[path[here.depth - 1] * columns + column[here.label]]
                    path[here.depth] = after
                    is_read = here.klass != 0
                    node = node + 1 if after != 0 else here.skip
                else:
                    after, is_read = before[q], True
                    for i in range(trie.start[tokens[k]], trie.start[tokens[k] + 1]):
                        after = steps[after * columns + column[trie.data[i]]]
                    after = behind[after]
                    k += 1
                if not is_read or after == 0:
                    continue
                if is_good[after] == 1:
                    is_good[q] = 1
                elif last_of[after] != q:
                    last_of[after] = q
                    edge[n], edge[most + n] = <int32_t>q, <int32_t>after
                    n += 1
            if is_good[q] == 1:
                n = begun
            at += 1
    return at, n
