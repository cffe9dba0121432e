# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: freethreading_compatible=True
# cython: initializedcheck=False
# distutils: language = c++
"""Loops over the bytes of words: byte pair encoding, and the search for banned texts in tokens."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp.algorithm cimport pop_heap, push_heap
from libcpp.vector cimport vector

from bpe_automata._kernels.hashing cimport slot_of
from bpe_automata._kernels.watch cimport poll

# The min-rank loop of byte pair encoding: while some adjacent pair is in the merge table, merge the
# leftmost pair of least rank. Merges are rows of a table; several of them may have the same rank.
# Source: the algorithm that `tokenizers` runs.
#
# Symbols are linked to their neighbours, and pairs lie in a heap, as rank << 32 | position of the
# left part; a pair of the heap counts while its rank is still that of its position.


def merge_each(
    const int32_t[::1] starts, int32_t[::1] symbols, const int64_t[::1] slots,
    const int32_t[::1] values, const int32_t[::1] made, const int32_t[::1] rank, int64_t n_ids,
):
    """Run BPE on each of the pretokens symbols[starts[k]:starts[k + 1]], in place, in O(n log n)
    for n symbols, which are >= 0. The merges: see `tokenizer.derivation.Merges`.

    Returns (size, left, right, row), int32, for each pretoken: how many symbols remain, at its
    beginning; then its last merge: the parts and the row, -1 if there was none.
    """
    cdef int64_t n_texts = starts.shape[0] - 1, polls = 0, k, n, i, at, gone, key, slot, side, here
    cdef int32_t* work
    longest = int(np.diff(starts).max(initial=0))
    last = np.full((4, n_texts), -1, np.int32)
    room = np.empty((3, longest), np.int64)
    cdef int32_t[::1] size = last[0], left = last[1], right = last[2], row = last[3]
    cdef int64_t[::1] before = room[0], after = room[1]
    cdef int64_t[::1] rows = room[2]  # of the pair of a symbol and the next one, -1: no merge
    cdef vector[int64_t] heap  # of -key: the greatest comes first
    with nogil:
        for k in range(n_texts):
            work, n = &symbols[starts[k]], starts[k + 1] - starts[k]
            for i in range(n):
                before[i], after[i], rows[i] = i - 1, i + 1, -1
                if i + 1 < n:
                    poll(&polls)
                    key = work[i] * n_ids + work[i + 1]
                    slot = slot_of(&slots[0], slots.shape[0], key)
                    if slots[slot] == key:
                        rows[i] = values[slot]
                        heap.push_back(-(<int64_t>rank[rows[i]] << 32 | i))
                        push_heap(heap.begin(), heap.end())
            while not heap.empty():
                poll(&polls)
                pop_heap(heap.begin(), heap.end())
                key = -heap.back()
                heap.pop_back()
                at = key & <int64_t>0xFFFFFFFF
                if rows[at] < 0 or rank[rows[at]] != key >> 32:
                    continue
                gone = after[at]
                left[k], right[k], row[k] = work[at], work[gone], <int32_t>rows[at]
                work[at], work[gone] = made[rows[at]], -1
                rows[gone], after[at] = -1, after[gone]
                if after[at] < n:
                    before[after[at]] = at
                for side in range(2):
                    here = at if side else before[at]
                    if here < 0:
                        continue
                    rows[here] = -1
                    if after[here] < n:
                        key = work[here] * n_ids + work[after[here]]
                        slot = slot_of(&slots[0], slots.shape[0], key)
                        if slots[slot] == key:
                            rows[here] = values[slot]
                            heap.push_back(-(<int64_t>rank[rows[here]] << 32 | here))
                            push_heap(heap.begin(), heap.end())
            size[k] = 0
            for i in range(n):
                if work[i] >= 0:
                    work[size[k]] = work[i]
                    size[k] += 1
    return tuple(last)


# Where banned texts begin in a token, and how far later tokens continue them.
#
# A thread is one banned text that has begun: the state of the DFA of banned texts and that of the
# DFA of what must follow one, as one number. It is complete once a banned text has ended and what
# must follow has been seen.

DEAD, COMPLETE = 0, -1
cdef int32_t dead = DEAD, complete = COMPLETE

cdef struct Dfa:
    const int32_t* trans
    const uint8_t* byte_class
    const uint8_t* accepting
    int64_t start, rows, columns


cdef inline int64_t step(const Dfa* dfa, int64_t state, uint8_t byte) noexcept nogil:
    return dfa.trans[state * dfa.columns + dfa.byte_class[byte]]


cdef class Search:
    """banned: the DFA of the banned texts; follows: that of the character that must follow one,
    used only if `whole`; before: that of the texts after which one may begin. Each is a `ByteDFA`.
    """

    cdef Dfa banned, follows, before
    cdef bint whole
    cdef object given
    cdef list kept  # the arrays behind the pointers

    def __init__(self, banned, follows, before, whole):
        self.given, self.kept = (banned, follows, before, whole), []
        self.banned, self.follows = self.arrays(banned), self.arrays(follows)
        self.before, self.whole = self.arrays(before), whole

    def __reduce__(self):
        return Search, self.given

    cdef Dfa arrays(self, dfa) except *:
        cdef const int32_t[:, ::1] trans = dfa.trans
        byte_class = np.ascontiguousarray(dfa.byte_class, np.uint8)
        accepts = np.ascontiguousarray(dfa.accepting)
        cdef const uint8_t[::1] classes = byte_class, accepting = accepts
        self.kept += [dfa.trans, byte_class, accepts]
        return Dfa(
            &trans[0, 0], &classes[0], &accepting[0], dfa.start, trans.shape[0], trans.shape[1]
        )

    cdef int32_t read(self, int64_t thread, const uint8_t* data, int64_t n) noexcept nogil:
        cdef int64_t wide = self.follows.rows, state = thread // wide, waiting = thread % wide, k
        if thread <= 0:  # a complete thread reads no more
            return dead
        for k in range(n):
            state = step(&self.banned, state, data[k])
            waiting = step(&self.follows, waiting, data[k])
            if self.follows.accepting[waiting]:
                return complete
            if self.banned.accepting[state]:
                if not self.whole:
                    return complete
                waiting = self.follows.start
            if state == 0 and waiting == 0:
                return dead
        return <int32_t>(state * wide + waiting)

    cdef int64_t add_begun(
        self, int64_t context, const uint8_t* data, int64_t n, int32_t* found, int64_t* polls
    ) except -1 nogil:
        """Write the threads that begin in the data to `found`, and return how many they are."""
        cdef int64_t first = self.banned.start * self.follows.rows, count = 0, k
        for k in range(n):
            poll(polls)
            if self.before.accepting[context] and step(&self.banned, self.banned.start, data[k]):
                found[count] = self.read(first, data + k, n - k)
                count += found[count] != dead
            context = step(&self.before, context, data[k])
        return count

    def after(self, int64_t thread, const uint8_t[::1] data):
        """The thread after the bytes `data`, or DEAD or COMPLETE."""
        return self.read(thread, &data[0], data.shape[0])

    def begun(self, int64_t context, const uint8_t[::1] data):
        """int32: the threads that begin in the bytes `data`, with COMPLETE for complete ones.
        context: the state of `before` after all text before the data."""
        cdef int64_t polls = 0
        threads = np.empty(data.shape[0], np.int32)
        cdef int32_t[::1] found = threads
        return threads[: self.add_begun(context, &data[0], data.shape[0], &found[0], &polls)]

    def all_begun(
        self, int64_t context, const int32_t[::1] start, const uint8_t[::1] data,
        const int64_t[::1] tokens,
    ):
        """int32 [m, 2]: (token, thread) for each thread that begins in one of the tokens, whose
        bytes are data[start[token]:start[token + 1]]."""
        cdef int64_t polls = 0, count = 0, i, k, token, more, low, high, longest = 0
        for i in range(tokens.shape[0]):
            count += start[tokens[i] + 1] - start[tokens[i]]
            longest = max(longest, start[tokens[i] + 1] - start[tokens[i]])
        rows, threads = np.empty((count, 2), np.int32), np.empty(longest, np.int32)
        cdef int32_t[:, ::1] row = rows
        cdef int32_t[::1] found = threads
        count = 0
        with nogil:
            for i in range(tokens.shape[0]):
                token = tokens[i]
                low, high = start[token], start[token + 1]
                more = self.add_begun(context, &data[low], high - low, &found[0], &polls)
                for k in range(more):
                    row[count, 0], row[count, 1] = <int32_t>token, found[k]
                    count += 1
        return rows[:count].copy()

    def all_after(
        self, int64_t thread, const int32_t[::1] start, const uint8_t[::1] data,
        const int64_t[::1] tokens,
    ):
        """int32 [m, 2]: (token, thread) for each of the tokens that a thread can read."""
        cdef int64_t polls = 0, count = 0, i, low
        cdef int32_t after
        rows = np.empty((tokens.shape[0], 2), np.int32)
        cdef int32_t[:, ::1] row = rows
        with nogil:
            for i in range(tokens.shape[0]):
                poll(&polls)
                low = start[tokens[i]]
                after = self.read(thread, &data[low], start[tokens[i] + 1] - low)
                if after != dead:
                    row[count, 0], row[count, 1] = <int32_t>tokens[i], after
                    count += 1
        return rows[:count].copy()
