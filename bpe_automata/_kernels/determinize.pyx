# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: freethreading_compatible=True
# cython: initializedcheck=False
"""Subset construction: states of the DFA are sets of nodes of a network with silent edges.

    L(set) = union of L(node) over its nodes

Two things differ from the textbook. Sets are interned by a hash that does not depend on order, so
nothing is sorted. And a node is dropped if a stronger one is in the set: in x{m,n} the same node of
an *earlier* optional copy can do all that the later copy can (one more repeat may follow), so only
the earliest copy is kept. Without this, `.{0,200}b.{0,200}` has 2**200 sets; with it, 20,503.
"""

cimport cython
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from bpe_automata._budget import out_of_memory, out_of_states
from bpe_automata._kernels.hashing import lengthened, rehashed
from bpe_automata._kernels.hashing cimport first_slot, mix, next_slot, table_size_for
from bpe_automata._kernels.watch cimport poll


@cython.final
cdef class Network:
    """Node v reads a column of class reads[e] and is at node to[e] then, for e in first[v] ..
    first[v + 1] - 1; it reads nothing and is at node silent[e], for e in silent_first[v] ..
    silent_first[v + 1] - 1; it ends if accepts[v]. All int32, but `accepts` bool.

    distances: [2, nodes], how far back the same node is in the first copy of the innermost bounded
    repeat, and of the next repeat around it; -1 where there is none. The columns of class c are
    columns[class_first[c]:class_first[c + 1]]."""

    cdef const int32_t[::1] first, reads, to, silent_first, silent, class_first, columns
    cdef const uint8_t[::1] accepts
    cdef const int32_t[:, ::1] distances

    def __init__(
        self, first, reads, to, silent_first, silent, accepts, distances, class_first, columns
    ):
        self.first, self.reads, self.to = first, reads, to
        self.silent_first, self.silent, self.accepts = silent_first, silent, accepts
        self.distances, self.class_first, self.columns = distances, class_first, columns


def determinize(Network net, int32_t start, int64_t n_columns, int64_t max_states, budget):
    """The DFA of all sets that node `start` leads to: (trans int32 [states, n_columns], accepting
    bool [states]). State 0 is dead; state 1 is the start, unless that is dead. Raises
    BudgetExceededError."""
    cdef _Sets sets = _Sets(net, n_columns, max_states, budget)
    with nogil:
        sets.explore(start)
    return sets.trans.base[: sets.states], sets.accepting.base[: sets.states]


@cython.final
cdef class _Sets:
    """The sets found so far, and the arrays of the search."""

    cdef Network net
    cdef object budget
    cdef int64_t max_states, max_bytes, polls, epoch
    # State s has the nodes pool[first[s]:first[s + 1]]; state 0 is dead. slots: the hash table of
    # states; alone: the state of what one node leads to silently, -1 if not found yet.
    cdef int64_t states
    cdef int32_t[:, ::1] trans
    cdef uint8_t[::1] accepting
    cdef uint64_t[::1] keys
    cdef int32_t[::1] first, slots, pool, alone
    # Of each column, the list of nodes that a set leads to: the cell where it begins, -1 if it is
    # empty, and a hash. like: a hash table of 1 + columns. cells: rows next cell and node.
    cdef int32_t[::1] head, like
    cdef uint64_t[::1] total
    cdef int32_t[:, ::1] cells
    # The set that is made, and nodes to look at; the epoch in which each node was seen, or is in
    # the set; how near the nearest copy in the set is, and the epoch when that was noted.
    cdef int32_t[::1] members, stack, seen, inside
    cdef int32_t[:, ::1] nearest, noted

    def __init__(self, Network net, n_columns, max_states, budget):
        room, n_nodes = 64, len(net.accepts)
        self.net, self.budget = net, budget
        self.max_states, self.max_bytes = max_states, budget.max_bytes
        self.polls, self.epoch, self.states = 0, 0, 1
        self.trans = np.zeros((room, n_columns), np.int32)
        self.accepting, self.keys = np.zeros(room, np.bool_), np.zeros(room, np.uint64)
        self.first, self.slots = np.zeros(room + 1, np.int32), np.zeros(2 * room, np.int32)
        self.pool = np.zeros(4 * room + n_nodes, np.int32)
        self.alone = np.full(n_nodes, -1, np.int32)
        self.head, self.total = np.empty(n_columns, np.int32), np.empty(n_columns, np.uint64)
        self.like = np.empty(table_size_for(n_columns), np.int32)
        self.cells = np.empty((2, 1024), np.int32)
        self.members, self.stack, self.seen, self.inside = np.zeros((4, n_nodes), np.int32)
        self.nearest, self.noted = np.zeros((2, 2, n_nodes), np.int32)

    cdef int explore(self, int32_t start) except -1 nogil:
        """Write the rows of all states."""
        cdef int64_t state = 1, needed
        self.cells[0, 0], self.cells[1, 0] = -1, start
        self.closure(0)
        while state < self.states:
            poll(&self.polls)
            needed = self.cells_of(state)
            if self.states > self.max_states or needed > self.cells.shape[1]:
                self.more_cells(needed)
            self.reach(state)
            self.row(state)
            state += 1
        return 0

    cdef int64_t cells_of(self, int64_t state) noexcept nogil:
        """How many cells the lists of a set need."""
        cdef int64_t needed = 0, k, edge, node, c
        for k in range(self.first[state], self.first[state + 1]):
            node = self.pool[k]
            for edge in range(self.net.first[node], self.net.first[node + 1]):
                c = self.net.reads[edge]
                needed += self.net.class_first[c + 1] - self.net.class_first[c]
        return needed

    cdef int more_cells(self, int64_t needed) except -1 with gil:
        if self.states > self.max_states:
            raise out_of_states(self.max_states)
        if 8 * needed > self.max_bytes:
            raise out_of_memory(self.budget)
        self.cells = np.empty((2, 2 * needed), np.int32)
        return 0

    cdef int reach(self, int64_t state) except -1 nogil:
        """List for each column the nodes that a set leads to."""
        cdef int32_t* next_cell = &self.cells[0, 0]
        cdef int32_t* node_of = &self.cells[1, 0]
        cdef int64_t used = 0, i, edge, k
        cdef int32_t node, to, c, column
        cdef uint64_t key
        self.head[:] = -1
        self.total[:] = 0
        for i in range(self.first[state], self.first[state + 1]):
            poll(&self.polls)
            node = self.pool[i]
            for edge in range(self.net.first[node], self.net.first[node + 1]):
                to, c = self.net.to[edge], self.net.reads[edge]
                key = mix(to)
                for k in range(self.net.class_first[c], self.net.class_first[c + 1]):
                    column = self.net.columns[k]
                    next_cell[used], node_of[used] = self.head[column], to
                    self.head[column] = <int32_t>used
                    self.total[column] += key
                    used += 1
        return 0

    cdef int row(self, int64_t state) except -1 nogil:
        """Write the row of a state whose lists are made. Columns with equal lists share one
        closure."""
        cdef int64_t column, slot, size = self.like.shape[0]
        cdef int32_t target
        self.like[:] = 0
        for column in range(self.head.shape[0]):
            poll(&self.polls)
            if self.head[column] < 0:
                continue
            slot = first_slot(self.total[column], size)
            while self.like[slot] != 0 and not self.alike(self.like[slot] - 1, column):
                slot = next_slot(slot, size)
            if self.like[slot] == 0:
                self.like[slot] = <int32_t>(1 + column)
                target = self.closure(self.head[column])
            else:
                target = self.trans[state, self.like[slot] - 1]
            self.trans[state, column] = target
        return 0

    cdef bint alike(self, int64_t a, int64_t b) noexcept nogil:
        """Whether two columns list the same nodes, in the same order."""
        cdef int32_t x = self.head[a], y = self.head[b]
        if self.total[a] != self.total[b]:
            return False
        while x >= 0 and y >= 0 and self.cells[1, x] == self.cells[1, y]:
            x, y = self.cells[0, x], self.cells[0, y]
        return x < 0 and y < 0

    cdef int32_t closure(self, int32_t at) except -1 nogil:
        """The state of all that a list of nodes, from cell `at` on, leads to silently."""
        cdef int32_t only = self.cells[1, at], state
        cdef bint is_alone = self.cells[0, at] < 0
        cdef int64_t count = 0
        if is_alone and self.alone[only] >= 0:
            return self.alone[only]
        self.epoch += 1
        while at >= 0:
            count = self.close(self.cells[1, at], count)
            at = self.cells[0, at]
        state = self.intern(self.prune(count))
        if is_alone:
            self.alone[only] = state
        return state

    cdef int64_t close(self, int32_t node, int64_t count) noexcept nogil:
        """Add to the set the nodes that `node` leads to silently and that read or accept. Returns
        the new count."""
        cdef int64_t top = 1, edge
        cdef int32_t to
        if self.seen[node] == self.epoch:
            return count
        self.seen[node], self.stack[0] = <int32_t>self.epoch, node
        while top > 0:
            top -= 1
            node = self.stack[top]
            if self.net.accepts[node] or self.net.first[node] < self.net.first[node + 1]:
                self.members[count] = node
                count += 1
            for edge in range(self.net.silent_first[node], self.net.silent_first[node + 1]):
                to = self.net.silent[edge]
                if self.seen[to] != self.epoch:
                    self.seen[to], self.stack[top] = <int32_t>self.epoch, to
                    top += 1
        return count

    cdef int64_t prune(self, int64_t count) noexcept nogil:
        """Keep the nodes that no other node of the set dominates, and mark them. Returns their
        count."""
        cdef int64_t kept = 0, k, row, first
        cdef int32_t node, distance, epoch = <int32_t>self.epoch
        for k in range(count):
            node = self.members[k]
            for row in range(2):
                distance = self.net.distances[row, node]
                first = node - distance
                if distance >= 0 and (
                    self.noted[row, first] != epoch or distance < self.nearest[row, first]
                ):
                    self.nearest[row, first], self.noted[row, first] = distance, epoch
        for k in range(count):
            node = self.members[k]
            for row in range(2):
                distance = self.net.distances[row, node]
                if distance > 0 and self.nearest[row, node - distance] < distance:
                    break
            else:
                self.members[kept], self.inside[node] = node, epoch
                kept += 1
        return kept

    cdef int32_t intern(self, int64_t count) except -1 nogil:
        """The state of the set that is made, a new one if need be."""
        cdef uint64_t key = 0
        cdef int64_t k, slot, used, size = self.slots.shape[0]
        cdef int32_t node, state
        if count == 0:
            return 0
        for k in range(count):
            key += mix(self.members[k])
        slot = first_slot(key, size)
        while self.slots[slot] != 0:
            state = self.slots[slot]
            if self.keys[state] == key and self.is_made(state, count):
                return state
            slot = next_slot(slot, size)
        state, used = <int32_t>self.states, self.first[self.states]
        if state == self.keys.shape[0] or used + count > self.pool.shape[0]:
            self.grow()
            return self.intern(count)
        self.states += 1
        self.slots[slot], self.keys[state] = state, key
        self.first[state + 1] = <int32_t>(used + count)
        for k in range(count):
            node = self.members[k]
            self.pool[used + k] = node
            self.accepting[state] |= self.net.accepts[node]
        return state

    cdef bint is_made(self, int32_t state, int64_t count) noexcept nogil:
        """Whether the set that is made is that of a state; both hold each node once."""
        cdef int64_t k
        if self.first[state + 1] - self.first[state] != count:
            return False
        for k in range(self.first[state], self.first[state + 1]):
            if self.inside[self.pool[k]] != self.epoch:
                return False
        return True

    cdef int grow(self) except -1 with gil:
        """Double the room for states if there is none for another one, else the room for nodes."""
        cells, room = self.trans.base.size + len(self.pool), len(self.keys)
        if 3 * (4 * cells + 17 * room) > self.max_bytes:  # what there is now, and twice as much
            raise out_of_memory(self.budget)
        if self.states < room:
            self.pool = lengthened(self.pool.base, 2 * len(self.pool))
            return 0
        self.trans = lengthened(self.trans.base, 2 * room)
        self.accepting = lengthened(self.accepting.base, 2 * room)
        self.keys = lengthened(self.keys.base, 2 * room)
        self.first = lengthened(self.first.base, 2 * room + 1)
        self.slots = rehashed(self.slots, self.keys, 2 * room)
        return 0
