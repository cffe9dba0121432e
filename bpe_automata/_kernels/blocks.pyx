# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: freethreading_compatible=True
# cython: initializedcheck=False
"""Writes down linked automata: blocks of their parts, with the lengths of the shortest texts to the
end of a part, and rows of states that are sets. See `automata.parts`."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t

from bpe_automata._kernels.watch cimport poll

BYTE, ODD = 1 << 32, 1 << 11
FAR = BYTE << 29
cdef int64_t byte = BYTE, odd_byte = ODD, far_away = FAR


def edges_of(
    const int32_t[:, ::1] trans, const int64_t[::1] columns, const uint8_t[::1] odd
):
    """(tail, start, head, odd), as `shorten` takes them, of a table [n, k], where 0 is dead.
    columns: the columns that count; odd: bool [k]."""
    cdef int64_t n = trans.shape[0], width = columns.shape[0], s, c
    cdef int32_t count = 0, many = 0, first, after, before
    tails, starts = np.empty(n, np.int32), np.empty(n, np.int32)
    heads, are_odd = np.empty(n * width, np.int32), np.empty(n * width, np.bool_)
    last = np.full(n, -1, np.int32)
    cdef int32_t[::1] tail = tails, start = starts, head = heads
    cdef int32_t[::1] edge_to = last  # the last one to each state
    cdef uint8_t[::1] longer = are_odd
    with nogil:
        for s in range(n):
            first, before = count, 0
            for c in range(width):
                after = trans[s, columns[c]]
                if after != 0 and (after != before or not odd[columns[c]]):
                    if edge_to[after] < first:
                        edge_to[after], head[count], longer[count] = count, after, True
                        count += 1
                    longer[edge_to[after]] &= odd[columns[c]]
                before = after
            if count > first:
                tail[many], start[many] = <int32_t>s, first
                many += 1
    return tails[:many].copy(), starts[:many].copy(), heads[:count].copy(), are_odd[:count].copy()


def shorten(
    int64_t[::1] far, const int32_t[::1] tail, const int32_t[::1] start,
    const int32_t[::1] head, const uint8_t[::1] odd, int64_t more
):
    """Lower `far` [n] to the shortest lengths: of a state's own length and those along its edges.

    tail [k]: the states with edges; start [k]: the first edge of each; head: where edges lead;
    odd: bool, is an edge longer by `more` than `BYTE`? The loops go through the states in turn
    downwards and upwards, until nothing changes; a shortest way of n edges takes n turns at most.
    """
    cdef int64_t n = tail.shape[0], m = head.shape[0], polls = 0, nearer, turn, i, k, edge
    cdef bint changed = True
    with nogil:
        while changed:
            changed = False
            for turn in range(2):
                for i in range(n):
                    poll(&polls)
                    k = i if turn else n - 1 - i
                    for edge in range(start[k], start[k + 1] if k + 1 < n else m):
                        nearer = far[head[edge]] + byte + more * odd[edge]
                        if nearer < far[tail[k]]:
                            far[tail[k]], changed = nearer, True


def leave_block(
    const int32_t[:, ::1] rows, const uint8_t[::1] columns, const uint8_t[::1] is_exit,
    int64_t first,
):
    """(`parts.Block.cells`; int64, the states outside to which the block leads) of n rows [n, k] of
    a part, from its state `first` on. columns: for each column of the automaton that of the part.
    is_exit: bool, of all states of the part."""
    cdef int64_t n = rows.shape[0], width = columns.shape[0], k, c
    cdef int32_t after, count = 0
    found, states = np.zeros((n, width), np.int32), np.empty(is_exit.shape[0], np.int64)
    numbers = np.zeros(is_exit.shape[0], np.int32)
    cdef int32_t[:, ::1] cells = found
    cdef int64_t[::1] away = states
    cdef int32_t[::1] number = numbers  # 1 + that of a state among them
    with nogil:
        for k in range(n):
            for c in range(width):
                after = rows[k, columns[c]]
                if after == 0:
                    continue
                if first <= after < first + n and not is_exit[after]:
                    cells[k, c] = <int32_t>(after - first + 1)
                    continue
                if number[after] == 0:
                    away[count] = after
                    count += 1
                    number[after] = count
                cells[k, c] = -number[after]
    return found, states[:count].copy()


def write_block(
    int64_t base, const int32_t[:, ::1] cells, int64_t step, const int64_t[::1] lengths,
    int64_t rest, int32_t[::1] far, uint8_t[::1] plain, uint8_t[::1] tagged, int32_t[:, ::1] trans,
):
    """Write down the states of a block (see `parts.Block`) from `base` on. step: the number of
    their first step out of the block; lengths: those of the shortest texts to the end of the part,
    and `rest` that of the text after the part, each at most FAR; far, plain, tagged, trans: those
    of the automaton."""
    cdef int64_t k, c, length
    cdef int32_t cell
    with nogil:
        for k in range(cells.shape[0]):
            length = min(lengths[k] + rest, far_away)
            far[base + k], plain[base + k] = <int32_t>(length // byte), length % byte == 0
            tagged[base + k] = length % byte < odd_byte
            for c in range(cells.shape[1]):
                cell = cells[k, c]
                if cell != 0:
                    trans[base + k, c] = <int32_t>(base + cell - 1 if cell > 0 else cell - step)


def merged_row(
    const int64_t[::1] states, const int32_t[:, ::1] trans, const int32_t[::1] behind
):
    """Where each byte leads from several states: (int64 [columns], the entry of `trans` if they
    agree on one; int32 [columns], else 1 + the index of their tuple of entries; the list of these
    tuples). A step whose state is written down is replaced by that state; entries 0, where a state
    reads nothing, do not count. behind: see `dfa.Steps`."""
    cdef int64_t n = states.shape[0], width = trans.shape[1], c, k
    cdef int32_t entry, one
    cdef bint agree
    entries, where = np.zeros(width, np.int64), np.zeros(width, np.int32)
    cdef int64_t[::1] row = entries
    cdef int32_t[::1] which = where
    numbers, several = {}, []
    for c in range(width):
        one, agree = 0, True
        for k in range(n):
            entry = trans[states[k], c]
            if entry < 0 and behind[-1 - entry] > 0:
                entry = behind[-1 - entry]
            if entry != 0 and one == 0:
                one = entry
            agree = agree and (entry == 0 or entry == one)
        if agree:
            row[c] = one
            continue
        found = []
        for k in range(n):
            entry = trans[states[k], c]
            if entry < 0 and behind[-1 - entry] > 0:
                entry = behind[-1 - entry]
            if entry != 0:
                found.append(entry)
        key = tuple(found)
        number = numbers.get(key)
        if number is None:  # most bytes of a string lead alike
            several.append(key)
            number = numbers[key] = len(several)
        which[c] = number
    return entries, where, several
