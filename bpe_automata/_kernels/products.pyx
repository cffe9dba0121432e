# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: freethreading_compatible=True
# cython: initializedcheck=False
"""Products of DFAs, over bytes: with another one, with a count of characters, and with UTF-8.

All raise BudgetExceededError for too many states, or too large tables.
"""

cimport cython
import numpy as np

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint64_t

from bpe_automata._budget import out_of_memory, out_of_states
from bpe_automata._kernels.hashing import lengthened, rehashed, with_room
from bpe_automata._kernels.hashing cimport (
    EMPTY, first_slot, mix, next_slot, slot_of, table_size_for,
)
from bpe_automata._kernels.watch cimport poll

_COPIES = 3  # of the table of a count, while it grows


# state after w  =  (state of a after w, state of b after w),      (0, 0) is dead


def product(
    const int32_t[:, ::1] a,
    const int32_t[:, ::1] b,
    const int64_t[::1] a_column,
    const int64_t[::1] b_column,
    bint need_a,
    bint need_b,
    int32_t p,
    int32_t q,
    budget,
):
    """From the pair (p, q): (pairs int32 [n, 2], trans int32 [n, k]), breadth-first by column. The
    dead pair is state 0, the start state 1 (or 0, if it is dead). a, b: row 0 is all 0; a_column,
    b_column: for each column that of a, and of b; need_a, need_b: is a pair dead as soon as its
    state of a is, or that of b?"""
    cdef int64_t n_columns = a_column.shape[0], max_states = budget.max_states
    cdef int64_t polls = 0, here = 1, c
    cdef _Pairs found = _Pairs(n_columns, len(b), need_a, need_b)
    with nogil:
        found.number(p, q)
        while here < found.count:
            poll(&polls)
            if found.count > max_states or found.count + n_columns >= found.pairs.shape[0]:
                with gil:
                    found.more(budget)
            p, q = found.pairs[here, 0], found.pairs[here, 1]
            for c in range(n_columns):
                found.trans[here, c] = found.number(a[p, a_column[c]], b[q, b_column[c]])
            here += 1
    return found.pairs.base[: found.count], found.trans.base[: found.count]


@cython.final
cdef class _Pairs:
    """The visited pairs, numbered from 1 on, and where they lead."""

    cdef int32_t[:, ::1] pairs, trans
    cdef int64_t[::1] slots
    cdef int32_t[::1] values
    cdef int64_t count, width
    cdef bint need_a, need_b

    def __init__(self, n_columns, width, need_a, need_b):
        room = 64 + n_columns
        self.pairs = np.zeros((room, 2), np.int32)
        self.trans = np.zeros((room, n_columns), np.int32)
        self.slots = np.full(table_size_for(room), EMPTY, np.int64)
        self.values = np.zeros(len(self.slots), np.int32)
        self.count, self.width, self.need_a, self.need_b = 1, width, need_a, need_b

    cdef int32_t number(self, int32_t p, int32_t q) noexcept nogil:
        """The number of a pair, a new one if need be. There must be room."""
        cdef int64_t key = p * self.width + q, at
        if (p == 0 and q == 0) or (self.need_a and p == 0) or (self.need_b and q == 0):
            return 0
        at = slot_of(&self.slots[0], self.slots.shape[0], key)
        if self.slots[at] == EMPTY:
            self.slots[at], self.values[at] = key, <int32_t>self.count
            self.pairs[self.count, 0], self.pairs[self.count, 1] = p, q
            self.count += 1
        return self.values[at]

    cdef more(self, budget):
        """Double the room, if the budget allows it."""
        room, n_columns = self.trans.base.shape
        if self.count > budget.max_states:
            raise out_of_states(budget.max_states)
        if 12 * (n_columns + 4) * room > budget.max_bytes:
            raise out_of_memory(budget)
        self.pairs = lengthened(self.pairs.base, 2 * room)
        self.trans = lengthened(self.trans.base, 2 * room)
        self.slots, self.values = with_room(self.slots, self.values, 2 * room)


@cython.final
cdef class _Rows:
    """Distinct rows of a table, int32; state 0 is dead. `used` rows are numbered, the next one is
    the candidate. The lowest bit of a key says whether its row accepts."""

    cdef int32_t[:, ::1] rows
    cdef uint64_t[::1] keys
    cdef int32_t[::1] table
    cdef int64_t used

    def __init__(self, room, n_columns, used):
        self.rows, self.keys = np.zeros((room, n_columns), np.int32), np.zeros(room, np.uint64)
        self.table, self.used = np.zeros(table_size_for(room), np.int32), used

    cdef int32_t number(self, bint final) noexcept nogil:
        """The state with the candidate's row that accepts or not (`final`). If there is none, the
        candidate becomes it."""
        cdef const int32_t* row = &self.rows[self.used, 0]
        cdef int64_t column, slot, n_columns = self.rows.shape[1], size = self.table.shape[0]
        cdef uint64_t key = 0
        cdef int32_t state
        cdef bint dead = not final
        for column in range(n_columns):
            dead = dead and row[column] == 0
            key = key * <uint64_t>0x9E3779B97F4A7C15 + <uint64_t>row[column]
        if dead:
            return 0
        key = (mix(key) << 1) | <uint64_t>final
        slot = first_slot(key, size)
        while self.table[slot] != 0:
            state = self.table[slot]
            if self.keys[state] == key:
                for column in range(n_columns):
                    if self.rows[state, column] != row[column]:
                        break
                else:
                    return state
            slot = next_slot(slot, size)
        state = <int32_t>self.used
        self.table[slot], self.keys[state] = state, key
        self.used += 1
        return state

    cdef more(self, int64_t room, budget):
        """Make room for so many rows, if the budget allows it."""
        if 4 * self.rows.shape[1] * (room + len(self.rows)) > budget.max_bytes:
            raise out_of_memory(budget)
        self.rows, self.keys = lengthened(self.rows.base, room), lengthened(self.keys.base, room)
        self.table = rehashed(self.table, self.keys, room)


def instantiate(
    const int32_t[:, ::1] trans,
    const int32_t[:, ::1] nodes,
    const uint8_t[::1] is_leaf,
    const int32_t[::1] lead,
    const int32_t[::1] some_byte,
    budget,
):
    """The byte DFA of a character DFA, see `automata.utf8`: int32, one row per character state,
    then one per distinct (node, character state) vector."""
    cdef int64_t n_nodes = len(nodes), n_classes = len(some_byte), q, v, c, polls = 0
    cdef int32_t byte, child, first
    cdef int32_t[::1] seen = np.zeros(n_nodes, np.int32)
    cdef _Rows found = _Rows(2 * len(trans) + n_nodes + 1, n_classes, len(trans))
    with nogil:
        for q in range(1, trans.shape[0]):
            if found.used + n_nodes + 1 > found.rows.shape[0]:
                with gil:
                    found.more(2 * len(found.rows) + n_nodes, budget)
            for v in range(1, n_nodes):
                poll(&polls)
                for c in range(n_classes):
                    byte = some_byte[c]
                    if 0x80 <= byte < 0xC0:
                        child = nodes[v, byte & 63]
                        found.rows[found.used, c] = trans[q, child] if is_leaf[v] else seen[child]
                seen[v] = found.number(False)
            for c in range(n_classes):
                first = lead[some_byte[c]]
                found.rows[q, c] = trans[q, first] if first >= 0 else seen[-first]
    return found.rows.base[: found.used]


# The texts of a byte DFA whose number of characters is in a range: its product with a counter.
#
#     { w in L(dfa) : fewest <= characters of w <= most }
#
# State (q, i): where the DFA is after i whole characters (and perhaps the first bytes of one more).
# Layers are found forwards, and their states are numbered backwards: once all successors of a state
# have numbers, it is merged with a numbered state of the same row, if any. So the result is minimal
# and takes time linear in the states of the product (no partition is refined: 65,536 layers are
# common).


def counted(
    const int32_t[:, ::1] trans,
    const uint8_t[::1] accepting,
    const int8_t[::1] missing,
    int32_t start,
    int64_t fewest,
    int64_t most,
    budget,
):
    """(rows int32 [m, k], accepting bool [m], start): the states of all layers.

    trans: int32 [n, k], over well-formed UTF-8 only; missing: int8 [n], how many bytes each state's
    unfinished character lacks. most < 0: no bound, and layer `fewest` is the DFA itself, whose
    rows must be minimal and trimmed; the other layers lead to it.
    """
    cdef int64_t n = trans.shape[0], k = trans.shape[1], ticks = 0, i, j, c, wanted
    cdef int32_t s, target
    pool, ptr = _layers(trans, missing, start, fewest if most < 0 else most + 1, budget)
    cdef const int32_t[::1] states = pool
    cdef const int64_t[::1] begin = ptr
    room = n + len(pool) + 1
    finals, ends = np.zeros(room, np.bool_), np.zeros((2, n), np.int32)
    cdef uint8_t[::1] final = finals
    cdef int32_t[::1] here = ends[0], following = ends[1]
    cdef _Rows found = _Rows(room, k, 1)
    start = 0
    with nogil:
        for s in range(1, n if most < 0 else 1):
            final[found.used] = accepting[s]
            for c in range(k):
                found.rows[found.used, c] = trans[s, c]
            following[s] = found.number(accepting[s])
        for i in range(begin.shape[0] - 2, -1, -1):
            for wanted in range(1, 5):  # the fewest bytes to go first, and whole characters last
                for j in range(begin[i], begin[i + 1]):
                    s = states[j]
                    if missing[s] != wanted & 3:
                        continue
                    poll(&ticks)
                    for c in range(k):
                        target = trans[s, c]
                        found.rows[found.used, c] = (
                            following[target] if missing[target] == 0 else here[target]
                        )
                    final[found.used] = wanted == 4 and i >= fewest and accepting[s]
                    here[s] = start = found.number(final[found.used])
            following[:] = 0
            for j in range(begin[i], begin[i + 1]):
                s = states[j]
                following[s], here[s] = here[s], 0
    return found.rows.base[: found.used], finals[: found.used], start


def _layers(
    const int32_t[:, ::1] trans, const int8_t[::1] missing, int32_t start, int64_t count, budget
):
    """The states within reach in layers 0 to count - 1: (pool int32, ptr int64). Those of layer i
    are pool[ptr[i]:ptr[i + 1]], each once. There are fewer layers if the later ones have no
    states."""
    cdef int64_t n = trans.shape[0], used = 0, done, n_next = 1, i = 0, c, ticks = 0
    cdef int64_t limit = budget.max_bytes // (_COPIES * 4 * trans.shape[1])
    cdef int32_t target
    cdef int32_t[::1] pool = np.empty(4 * n + 64, np.int32), following = np.empty(n, np.int32)
    cdef int64_t[::1] seen = np.full(n, -1, np.int64)
    # An array of this length is enough to notice that there are too many layers.
    cdef int64_t[::1] ptr = np.zeros(min(count, limit + 1) + 1, np.int64)
    following[0] = start
    with nogil:
        while i < ptr.shape[0] - 1 and n_next > 0:
            poll(&ticks)
            if used + 2 * n > min(limit, pool.shape[0]):
                with gil:
                    if used + 2 * n > limit:
                        raise out_of_memory(budget)
                    pool = lengthened(pool.base, 2 * len(pool) + 2 * n)
            done = used
            pool[used : used + n_next] = following[:n_next]
            used, n_next = used + n_next, 0
            while done < used:
                for c in range(trans.shape[1]):
                    target = trans[pool[done], c]
                    if target == 0 or seen[target] == i:
                        continue
                    seen[target] = i
                    if missing[target] > 0:
                        pool[used] = target
                        used += 1
                    else:
                        following[n_next] = target
                        n_next += 1
                done += 1
            i += 1
            ptr[i] = used
    return pool.base[:used], ptr.base[: i + 1]
