# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: freethreading_compatible=True
# cython: initializedcheck=False
"""Distance to acceptance: distance(q) = min { |w| : q --w--> accepting }."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t

NEVER = -1
cdef int32_t never = NEVER


def distances_by_head(
    const int64_t[::1] ptr, const int32_t[::1] tail, const uint8_t[:] accepting
):
    """int32 [n]: edges to the nearest accepting state, NEVER if there is none. ptr: [n + 1], tail:
    the tails of the edges into each state; accepting: bool [n]."""
    cdef int64_t n = accepting.shape[0], count = 0, done = 0, edge
    cdef int32_t s, head
    distance, room = np.empty(n, np.int32), np.empty(n, np.int32)
    cdef int32_t[::1] found = distance, queue = room
    with nogil:
        for s in range(n):
            found[s] = never
            if accepting[s]:
                found[s], queue[count] = 0, s
                count += 1
        while done < count:
            head = queue[done]
            done += 1
            for edge in range(ptr[head], ptr[head + 1]):
                if found[tail[edge]] == never:
                    found[tail[edge]], queue[count] = found[head] + 1, tail[edge]
                    count += 1
    return distance


def distances(const int32_t[:, ::1] trans, const uint8_t[:] accepting):
    """int32 [n]: steps from each state to the nearest accepting one, NEVER if there is none.

    trans: [n, k], 0: the dead state; accepting: bool [n]. Breadth-first over the reversed edges;
    neighbouring columns mostly agree, and an edge is kept once of those.
    """
    cdef int64_t n = trans.shape[0], k = trans.shape[1], s, a
    cdef int32_t after, before
    ptrs = np.zeros(n + 2, np.int64)
    cdef int64_t[::1] ptr = ptrs
    with nogil:
        for s in range(n):
            before = 0
            for a in range(k):
                after = trans[s, a]
                if after != 0 and after != before:
                    ptr[after + 2] += 1
                before = after
        for s in range(n + 1):
            ptr[s + 1] += ptr[s]
    tails = np.empty(ptr[n + 1], np.int32)
    cdef int32_t[::1] tail = tails
    with nogil:
        for s in range(n):
            before = 0
            for a in range(k):
                after = trans[s, a]
                if after != 0 and after != before:
                    tail[ptr[after + 1]] = <int32_t>s
                    ptr[after + 1] += 1
                before = after
    return distances_by_head(ptrs[: n + 1], tails, accepting)
