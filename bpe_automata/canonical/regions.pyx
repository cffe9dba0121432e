# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: freethreading_compatible=True
"""Regions of states that read many bytes alike, as in strings, lines and counted classes (see
`canonical.slices`)."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t

from bpe_automata.canonical.arrays cimport (
    Base, Wanted, after_byte, bytes_, bytes_out, ints, ints_out, longs_out, want,
)
from bpe_automata.canonical.status cimport leads_home

cdef enum:
    MOST_AFTER = 64  # states that one character leads to
    MOST_INSIDE = 512
    MOST_REGION = 1024


def loop_bytes(int64_t q, Base base, Wanted wanted):
    """bool [128]: the ASCII bytes that lead from q to states which lead on to acceptance and read
    all of these bytes themselves; bytes after which most of them are not read are dropped first.
    All False if fewer than 8 remain. Steps that are not written down are wanted."""
    found = np.zeros(128, np.bool_)
    cdef uint8_t* K = bytes_out(found)
    cdef int64_t[256] first  # by column: a byte of it; -2: it is kept
    cdef int64_t[256] weight
    cdef int64_t[128] column
    cdef int64_t[128] there
    cdef uint8_t[128] kept
    cdef uint8_t[128][128] reads
    cdef int64_t b, k, m, n = 0, after, size = 0, missing
    cdef bint changed = True
    for b in range(256):
        first[b], weight[b] = -1, 0
    for b in range(128):  # a byte of each column that leads on, and the state there
        if base.utf8[b] >= -1:
            continue
        k = base.byte_class[b]
        if first[k] < 0:
            first[k] = b
            after = after_byte(q, b, base)
            if after < 0:
                want(-1 - after, wanted)
            if after > 0:
                column[n], there[n] = k, after
                n += 1
        weight[k] += 1
    for k in range(n):
        size += weight[column[k]]
    if size < 8:
        return found
    for k in range(n):
        kept[k] = True
        for m in range(n):
            after = after_byte(there[k], first[column[m]], base)
            if after < 0:
                want(-1 - after, wanted)
            reads[k][m] = after > 0
    while changed:
        changed, size = False, 0
        for k in range(n):
            size += weight[column[k]] * kept[k]
        if size < 8:
            return found
        for k in range(n):
            missing = 0
            for m in range(n):
                if kept[m] and not reads[k][m]:
                    missing += weight[column[m]]
            if kept[k] and (2 * missing > size or not leads_home(there[k], base)):
                kept[k], changed = False, True
        if changed:
            continue
        for k in range(n):
            for m in range(n):
                if kept[k] and kept[m] and not reads[k][m]:
                    kept[m], changed = False, True
    for k in range(n):
        if kept[k]:
            first[column[k]] = -2
    for b in range(128):
        K[b] = base.utf8[b] < -1 and first[base.byte_class[b]] == -2
    return found


cdef int64_t add(int64_t q, int64_t* after, int64_t n) noexcept nogil:
    """Add a state to n of them, unless it is one. Returns how many there are now; -1: no room."""
    cdef int64_t i
    for i in range(n):
        if after[i] == q:
            return n
    if n == MOST_AFTER:
        return -1
    after[n] = q
    return n + 1


cdef int64_t reads_all(
    int64_t q, const uint8_t* K, bint wide, const int32_t* kinds, Base base, int64_t* after,
    Wanted wanted
) noexcept nogil:
    """Does a state read every byte of K and, if `wide`, every character beyond ASCII, into good
    states? `after` is filled with these states. Returns how many they are; -1 if it does not, if
    there is no room, or if a step is not written down yet, which is then wanted."""
    cdef int64_t n = 0, m = 1, k = 0, b, q2, entry, kind, last = -1, last_kind = -1, i, row
    # The states inside characters, with their rows of UTF-8; first q itself, between characters.
    cdef int64_t[MOST_INSIDE] inner
    cdef int64_t[MOST_INSIDE] rows
    for b in range(128):
        if not K[b]:
            continue
        q2 = after_byte(q, b, base)
        if q2 < 0:
            want(-1 - q2, wanted)
        if q2 <= 0:
            return -1
        if q2 == last:
            continue
        last = q2
        if not leads_home(q2, base):
            return -1
        n = add(q2, after, n)
        if n < 0:
            return -1
    if not wide:
        return n
    inner[0], rows[0] = q, 0
    while k < m:
        row, last, last_kind = rows[k], -1, -1
        for b in range(0x80, 0x100):
            entry = base.utf8[row * 256 + b]
            if entry == -1:
                continue
            q2 = after_byte(inner[k], b, base)
            kind = kinds[entry] if entry >= 0 else -2
            if q2 < 0:
                want(-1 - q2, wanted)
            if q2 <= 0:
                return -1
            if q2 == last and kind == last_kind:
                continue
            last, last_kind = q2, kind
            if entry < 0:
                if not leads_home(q2, base):
                    return -1
                n = add(q2, after, n)
                if n < 0:
                    return -1
                continue
            for i in range(m):
                if inner[i] == q2 and kinds[rows[i]] == kind:
                    break
            else:
                if m == MOST_INSIDE:
                    return -1
                inner[m], rows[m] = q2, entry
                m += 1
        k += 1
    return n


def proved_depth(
    int64_t q, K, bint wide, kinds, int64_t most_depth, proved, Base base, queue, at, Wanted wanted
):
    """A lower bound, at most `most_depth`, on how many characters of K can be read from a state,
    whichever they are. proved: int32 [states], 1 + the bound that was found for each state. queue:
    int64 [n, 2], the visited states and how far they are away; at: int64 [2], zeros at first. Where
    a step is wanted it returns 0, and the next call goes on from these two."""
    cdef const uint8_t* read = bytes_(K)
    cdef const int32_t* rows = ints(kinds)
    cdef int32_t* depths = ints_out(proved)
    cdef int64_t* visited = longs_out(queue)
    cdef int64_t* begun = longs_out(at)
    cdef int64_t[MOST_AFTER] after
    cdef int64_t most = len(queue), reached = most_depth, n = max(1, begun[0]), k = begun[1]
    cdef int64_t i, m, state, d
    if depths[q] - 1 >= most_depth:
        return most_depth
    visited[0], visited[1] = q, 0
    seen = {visited[2 * i] for i in range(n)}
    while k < n:
        state, d = visited[2 * k], visited[2 * k + 1]
        if d < reached and depths[state] - 1 < reached - d:
            m = reads_all(state, read, wide, rows, base, after, wanted)
            if wanted.n > 0:
                begun[0], begun[1] = n, k
                return 0
            if m < 0 or n + m > most:
                reached = d
                break
            for i in range(m):
                if after[i] not in seen:
                    seen.add(after[i])
                    visited[2 * n], visited[2 * n + 1] = after[i], d + 1
                    n += 1
        k += 1
    for i in range(n):
        if reached - visited[2 * i + 1] > depths[visited[2 * i]] - 1:
            depths[visited[2 * i]] = <int32_t>(1 + reached - visited[2 * i + 1])
    return reached


def region(int64_t q, K, bint wide, kinds, int64_t most_depth, Base base, Wanted wanted):
    """int64: the states that at most so many characters of K lead to; none if they are too many, if
    one of them does not read K, or where a step is wanted."""
    cdef const uint8_t* read = bytes_(K)
    cdef const int32_t* rows = ints(kinds)
    cdef int64_t[MOST_AFTER] after
    cdef int64_t k = 0, m, i
    none = np.empty(0, np.int64)
    depth = {q: 0}
    states = [q]
    while k < len(states):
        if depth[states[k]] < most_depth:
            m = reads_all(states[k], read, wide, rows, base, after, wanted)
            if m < 0 or len(states) + m > MOST_REGION:
                return none
            for i in range(m):
                if after[i] not in depth:
                    depth[after[i]] = depth[states[k]] + 1
                    states.append(after[i])
        k += 1
    return np.array(states, np.int64)
