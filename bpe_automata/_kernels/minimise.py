"""Minimisation by refining two partitions, of the states of a DFA and of its edges.

Two states stay together while the edges that leave them lie in the same sets of edges; two edges
stay together while they have the same label and their heads stay together. Splitting always
renames the smaller half, so an edge is moved O(log n) times: O(m log m) for m edges, whatever the
size of the alphabet (A. Valmari, "Fast brief practical DFA minimization", IPL 112, 2012).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bpe_automata._kernels import inlined, inner, jit
from bpe_automata._kernels.hashing import first_slot, mix, next_slot, table_size
from bpe_automata._kernels.watch import poll, stopped

# Rows of a partition: its elements grouped by set; where an element is; the set of an element;
# and for each set its first index, the index past its last one, how many elements are marked, and
# the list of sets that have marks. counts holds the number of sets, and of sets with marks.
ELEMENT, WHERE, SET, FIRST, PAST, _MARKS, _TOUCHED = 0, 1, 2, 3, 4, 5, 6
ROWS = 7


@jit
def refine(
    ptr: np.ndarray,
    tail: np.ndarray,
    accepting: np.ndarray,
    states: np.ndarray,
    state_counts: np.ndarray,
    edges: np.ndarray,
    edge_counts: np.ndarray,
    watch: np.ndarray,
) -> None:
    """Refine the partitions of states, one set at first, and of edges, by label. ptr: int64 [n + 1]
    and tail: int32 [m], the edges into each state; accepting: bool [n]; all states are live."""
    for s in range(accepting.size):
        if accepting[s]:
            _mark(states, state_counts, s)
    _split(states, state_counts)
    splitter, block = 0, 1
    while splitter < edge_counts[0] and not stopped(watch):
        for index in range(edges[FIRST, splitter], edges[PAST, splitter]):
            if index & 15 == 0 and poll(watch):  # a step is as short as a poll
                break
            into: Any = np.int64(tail[edges[ELEMENT, index]])
            _mark(states, state_counts, into)
        _split(states, state_counts)
        splitter += 1
        while block < state_counts[0]:
            for index in range(states[FIRST, block], states[PAST, block]):
                if index & 15 == 0 and poll(watch):
                    break
                s = states[ELEMENT, index]
                for edge in range(ptr[s], ptr[s + 1]):
                    _mark(edges, edge_counts, edge)
            _split(edges, edge_counts)
            block += 1


@inner
def _mark(partition: np.ndarray, counts: np.ndarray, element: int) -> None:
    """Move an element to the front of its set, among the marked ones."""
    which, here = partition[SET, element], partition[WHERE, element]
    there = partition[FIRST, which] + partition[_MARKS, which]
    if here < there:
        return
    other = partition[ELEMENT, there]
    partition[ELEMENT, here], partition[WHERE, other] = other, here
    partition[ELEMENT, there], partition[WHERE, element] = element, there
    if partition[_MARKS, which] == 0:
        partition[_TOUCHED, counts[1]] = which
        counts[1] += 1
    partition[_MARKS, which] += 1


@inner
def _split(partition: np.ndarray, counts: np.ndarray) -> None:
    """Cut each set into its marked and its other elements; the smaller part becomes a new set."""
    for t in range(counts[1]):
        which = partition[_TOUCHED, t]
        first, past = partition[FIRST, which], partition[PAST, which]
        cut = first + partition[_MARKS, which]
        partition[_MARKS, which] = 0
        if cut == past:
            continue
        new = counts[0]
        counts[0] += 1
        if cut - first <= past - cut:
            partition[FIRST, new], partition[PAST, new] = first, cut
            partition[FIRST, which] = cut
        else:
            partition[FIRST, new], partition[PAST, new] = cut, past
            partition[PAST, which] = cut
        for index in range(partition[FIRST, new], partition[PAST, new]):
            partition[SET, partition[ELEMENT, index]] = new
    counts[1] = 0


# The trie of sorted byte strings, data[ptr[i]:ptr[i + 1]] (uint8; int64), and its equal subtrees.
# A string has a kind, int32 from 1 on, which is that of the node where it ends; others have kind 0.


@jit
def trie(
    data: np.ndarray, ptr: np.ndarray, kinds: np.ndarray, watch: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(parent int32 [n], label int32 [n], kind int32 [n]) of the nodes; node 0 is the root."""
    parent, label = np.zeros(data.size + 1, np.int32), np.zeros(data.size + 1, np.int32)
    kind, used = np.zeros(data.size + 1, np.int32), 1
    path, depth = np.zeros(data.size + 1, np.int32), 0
    for i in range(ptr.size - 1):
        string, shared = data[ptr[i] : ptr[i + 1]], 0
        while shared < min(depth, string.size) and label[path[shared + 1]] == string[shared]:
            shared += 1
        for d in range(shared, string.size):
            if poll(watch):
                break
            parent[used], label[used], path[d + 1] = path[d], string[d], used
            used += 1
        depth = string.size
        kind[path[depth]] = kinds[i]
    return parent[:used].copy(), label[:used].copy(), kind[:used].copy()


@jit
def subtrees(
    parent: np.ndarray, label: np.ndarray, kind: np.ndarray, watch: np.ndarray
) -> tuple[np.ndarray, int]:
    """(state of each node int32 [n], number of states), equal for nodes with equal subtrees.

    Children come after their parents, so going backwards the states of the children are known:
    a node is its kind and the list of (label, state) of its children. State 0 is not used.
    """
    n = parent.size
    state, count = np.zeros(n, np.int32), 1
    child, sibling = np.zeros(n, np.int32), np.zeros(n, np.int32)  # 0 ends a list: the root
    table, keys = np.zeros(table_size(n + 1), np.int32), np.empty(n, np.uint64)
    for node in range(n - 1, -1, -1):
        if poll(watch):
            break
        key, below = mix(kind[node]), child[node]
        while below != 0:
            key = mix(key + np.uint64(label[below]) + (np.uint64(state[below]) << np.uint64(8)))
            below = sibling[below]
        keys[node], slot = key, first_slot(key, table)
        while table[slot] != 0:
            other = table[slot] - 1
            if keys[other] == key and _alike(label, kind, state, child, sibling, node, other):
                break
            slot = next_slot(slot, table)
        if table[slot] == 0:
            table[slot], state[node] = node + 1, count
            count += 1
        state[node] = state[table[slot] - 1]
        if node > 0:
            sibling[node], child[parent[node]] = child[parent[node]], node
    return state, count


@inlined
def _alike(
    label: np.ndarray,
    kind: np.ndarray,
    state: np.ndarray,
    child: np.ndarray,
    sibling: np.ndarray,
    a: int,
    b: int,
) -> bool:
    """Whether two nodes have the same kind and the same children."""
    if kind[a] != kind[b]:
        return False
    a, b = child[a], child[b]
    while a != 0 and b != 0 and label[a] == label[b] and state[a] == state[b]:
        a, b = sibling[a], sibling[b]
    return a == 0 and b == 0
