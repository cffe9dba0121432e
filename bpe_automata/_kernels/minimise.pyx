# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: freethreading_compatible=True
# cython: initializedcheck=False
"""Minimal automata: by refining partitions, from sorted strings; and the numbering of states."""

cimport cython
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from bpe_automata._kernels.hashing cimport first_slot, mix, next_slot, table_size_for
from bpe_automata._kernels.watch cimport poll


def edges_into(
    const int32_t[:, ::1] trans, const int64_t[::1] states, const int32_t[::1] number
):
    """(ptr int64 [n + 1], tail int32 [m], label int32 [m]) of the edges between n states, as
    `refine` takes them. trans: of all states; number: 1 + the index of each among `states`, 0 of
    the others."""
    cdef int64_t n = states.shape[0], k = trans.shape[1], s, c, edge
    cdef int32_t head
    ptrs = np.zeros(n + 2, np.int64)
    cdef int64_t[::1] ptr = ptrs
    with nogil:
        for s in range(n):
            for c in range(k):
                head = number[trans[states[s], c]]
                if head != 0:
                    ptr[head + 1] += 1
        for s in range(n + 1):
            ptr[s + 1] += ptr[s]
    tails, labels = np.empty(ptr[n + 1], np.int32), np.empty(ptr[n + 1], np.int32)
    cdef int32_t[::1] tail = tails, label = labels
    with nogil:
        for s in range(n):
            for c in range(k):
                head = number[trans[states[s], c]]
                if head != 0:
                    edge = ptr[head]
                    tail[edge], label[edge] = <int32_t>s, <int32_t>c
                    ptr[head] += 1
    return ptrs[: n + 1], tails, labels


# Two partitions are refined, of the states of a DFA and of its edges. Two states stay together
# while the edges that leave them lie in the same sets of edges; two edges stay together while they
# have the same label and their heads stay together. Splitting always renames the smaller half, so
# an edge is moved O(log n) times: O(m log m) for m edges, whatever the size of the alphabet
# (A. Valmari, "Fast brief practical DFA minimization", IPL 112, 2012).


def refine(
    const int64_t[::1] ptr, const int32_t[::1] tail, label, const uint8_t[::1] accepting
):
    """(the block of each state int32 [n], the number of blocks), all states being live. tail,
    label: int32 [m], the edges into state s are those from ptr[s], int64, to ptr[s + 1] - 1;
    accepting: bool [n]."""
    cdef _Partition states = _Partition(np.zeros(len(accepting), np.int32))
    # Without gaps: a set without edges would change the order in which sets are split and numbered.
    is_used = np.bincount(label) > 0
    labels = (np.cumsum(is_used) - 1)[label].astype(np.int32)
    cdef _Partition edges = _Partition(labels)
    cdef int64_t s, edge, index, splitter = 0, block = 1, polls = 0
    with nogil:
        for s in range(accepting.shape[0]):
            if accepting[s]:
                states.mark(s)
        states.split()
        while splitter < edges.sets:
            for index in range(edges.first[splitter], edges.past[splitter]):
                poll(&polls)
                states.mark(tail[edges.element[index]])
            states.split()
            splitter += 1
            while block < states.sets:
                for index in range(states.first[block], states.past[block]):
                    poll(&polls)
                    s = states.element[index]
                    for edge in range(ptr[s], ptr[s + 1]):
                        edges.mark(edge)
                edges.split()
                block += 1
    return states.set_of.base, states.sets


@cython.final
cdef class _Partition:
    """element: the elements, grouped by set; where: the index of each there; set_of: its set. Set s
    has the indices first[s] .. past[s] - 1, its marked elements the first marks[s] of them.
    touched: the sets with marked elements."""

    cdef int32_t[::1] element, where, set_of, first, past, marks, touched
    cdef int64_t sets, n_touched

    def __init__(self, set_of):
        n, order, sizes = len(set_of), np.argsort(set_of, kind="stable"), np.bincount(set_of)
        first, past, marks, touched = np.zeros((4, n), np.int32)
        past[: len(sizes)] = np.cumsum(sizes)
        first[1 : len(sizes)] = past[: len(sizes) - 1]
        where = np.empty(n, np.int32)
        where[order] = np.arange(n)
        self.element, self.where, self.set_of = order.astype(np.int32), where, set_of
        self.first, self.past, self.marks, self.touched = first, past, marks, touched
        self.sets, self.n_touched = len(sizes), 0

    cdef void mark(self, int64_t element) noexcept nogil:
        """Move an element to the front of its set, among the marked ones."""
        cdef int32_t which = self.set_of[element], here = self.where[element], other
        cdef int32_t there = self.first[which] + self.marks[which]
        if here < there:
            return
        other = self.element[there]
        self.element[here], self.where[other] = other, here
        self.element[there], self.where[element] = <int32_t>element, there
        if self.marks[which] == 0:
            self.touched[self.n_touched] = which
            self.n_touched += 1
        self.marks[which] += 1

    cdef void split(self) noexcept nogil:
        """Cut each set into its marked and its other elements; the smaller part is a new set."""
        cdef int32_t which, first, past, cut, new
        cdef int64_t t, index
        for t in range(self.n_touched):
            which = self.touched[t]
            first, past = self.first[which], self.past[which]
            cut = first + self.marks[which]
            self.marks[which] = 0
            if cut == past:
                continue
            new = <int32_t>self.sets
            self.sets += 1
            if cut - first <= past - cut:
                self.first[new], self.past[new], self.first[which] = first, cut, cut
            else:
                self.first[new], self.past[new], self.past[which] = cut, past, cut
            for index in range(self.first[new], self.past[new]):
                self.set_of[self.element[index]] = new
        self.n_touched = 0


# The trie of sorted byte strings, data[ptr[i]:ptr[i + 1]] (uint8; int64), and its equal subtrees.
# A string has a kind, int32 from 1 on, which is that of the node where it ends; others have kind 0.


def trie(const uint8_t[::1] data, const int64_t[::1] ptr, const int32_t[::1] kinds):
    """(parent, label, kind) of the nodes, int32; node 0 is the root."""
    parents, labels, ends, paths = np.zeros((4, len(data) + 1), np.int32)
    cdef int32_t[::1] parent = parents, label = labels, kind = ends, path = paths
    cdef int64_t used = 1, depth = 0, polls = 0, i, k, shared, length
    with nogil:
        for i in range(ptr.shape[0] - 1):
            length, shared = ptr[i + 1] - ptr[i], 0
            while (
                shared < min(depth, length)
                and label[path[shared + 1]] == data[ptr[i] + shared]
            ):
                shared += 1
            for k in range(shared, length):
                poll(&polls)
                parent[used], label[used] = path[k], data[ptr[i] + k]
                path[k + 1] = <int32_t>used
                used += 1
            depth = length
            kind[path[depth]] = kinds[i]
    return parents[:used].copy(), labels[:used].copy(), ends[:used].copy()


def subtrees(const int32_t[::1] parent, const int32_t[::1] label, const int32_t[::1] kind):
    """(state of each node int32 [n], number of states), equal for nodes with equal subtrees.

    Children come after their parents, so the loop goes backwards and numbers children first: nodes
    with the same kind and the same (label, state) of children are equal. State 0 is not used.
    """
    cdef int64_t n = parent.shape[0], size = table_size_for(n + 1), node, slot, polls = 0
    states, children, siblings = np.zeros((3, n), np.int32)  # 0 ends a list: the root
    hashes, numbers = np.empty(n, np.uint64), np.zeros(size, np.int32)
    cdef int32_t[::1] state = states, child = children, sibling = siblings, table = numbers
    cdef uint64_t[::1] keys = hashes
    cdef uint64_t key
    cdef int32_t count = 1, below, a, b
    with nogil:
        for node in range(n - 1, -1, -1):
            poll(&polls)
            key, below = mix(kind[node]), child[node]
            while below != 0:
                key = mix(key + <uint64_t>label[below] + (<uint64_t>state[below] << 8))
                below = sibling[below]
            keys[node], slot = key, first_slot(key, size)
            while table[slot] != 0:
                a, b = <int32_t>node, table[slot] - 1
                if keys[b] == key and kind[a] == kind[b]:
                    a, b = child[a], child[b]
                    while a != 0 and b != 0 and label[a] == label[b] and state[a] == state[b]:
                        a, b = sibling[a], sibling[b]
                    if a == 0 and b == 0:
                        break
                slot = next_slot(slot, size)
            if table[slot] == 0:
                table[slot], state[node] = <int32_t>(node + 1), count
                count += 1
            state[node] = state[table[slot] - 1]
            if node > 0:
                sibling[node], child[parent[node]] = child[parent[node]], <int32_t>node
    return states, count


def breadth_first(const int32_t[:, ::1] trans, int32_t start):
    """(number int32 [n], order int32 [m + 1]): the states within reach of `start`, by column,
    numbered from 1 on, order[number[s]] == s; others, and the dead state 0, have number 0."""
    numbers, states = np.zeros(len(trans), np.int32), np.zeros(len(trans) + 1, np.int32)
    cdef int32_t[::1] number = numbers, order = states
    cdef int32_t count = 0, target
    cdef int64_t done = 1, column, polls = 0
    with nogil:
        if start != 0:
            count = number[start] = 1
            order[1] = start
        while done <= count:
            poll(&polls)
            for column in range(trans.shape[1]):
                target = trans[order[done], column]
                if target != 0 and number[target] == 0:
                    count += 1
                    order[count], number[target] = target, count
            done += 1
    return numbers, states[: count + 1]
