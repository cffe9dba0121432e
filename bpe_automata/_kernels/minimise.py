"""Minimisation of a partial DFA by refining two partitions, of its states and of its edges.

    p ~ q  <=>  L(p) == L(q)            (L(p): what leads from p to an accepting state)

Two states stay together while the edges that leave them lie in the same sets of edges; two edges
stay together while they have the same label and their heads stay together. Splitting always
renames the smaller half, so an edge is moved O(log n) times: O(m log m) for m edges, whatever the
size of the alphabet (A. Valmari, "Fast brief practical DFA minimization", IPL 112, 2012).

Edges come sorted by head: the edges into state s are number ptr[s] to ptr[s+1]. Only edges between
live states (reachable, and able to reach acceptance) count; the dead state has none.
"""

from __future__ import annotations

import numpy as np

from bpe_automata._kernels import jit
from bpe_automata._kernels.hashing import first_slot, mix, next_slot, table_size
from bpe_automata._kernels.utf8 import numbered
from bpe_automata._kernels.watch import poll, stopped

# Rows of a partition: its elements grouped by set; where an element is; the set of an element;
# and for each set its first index, the index past its last one, how many elements are marked, and
# the list of sets that have marks. counts holds the number of sets, and of sets with marks.
_ELEMENT, _WHERE, _SET, _FIRST, _PAST, _MARKS, _TOUCHED = 0, 1, 2, 3, 4, 5, 6
_ROWS = 7


@jit
def minimise(
    trans: np.ndarray, accepting: np.ndarray, start: int, watch: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int, np.ndarray]:
    """The minimal trimmed DFA of a complete one, over a minimal alphabet.

    trans: int32 [n, k] with row 0 (dead) all 0; accepting: bool [n]; start: a state.
    Returns (trans int32 [m, j], accepting bool [m], start, column int32 [k]): the new columns are
    pairwise different, column[a] is the new one of the old column a, and state 0 is dead.
    """
    reached = _reachable(trans, start, watch)
    ptr, tail, label = _edges_by_head(trans, reached, watch)
    live = _live(ptr, tail, accepting & reached, watch)
    number = np.full(live.size, -1, np.int32)
    number[live] = np.arange(live.sum())
    ptr, tail, label = _live_edges(ptr, tail, label, live, number, watch)
    block, n_blocks = blocks(ptr, tail, label, trans.shape[1], accepting[live], watch)
    if stopped(watch):
        return trans, accepting, start, block
    target, k = np.zeros(live.size, np.int32), 0
    for s in range(live.size):
        if live[s]:
            target[s] = block[k] + 1
            k += 1
    small = np.zeros((n_blocks + 1, trans.shape[1]), np.int32)
    final = np.zeros(n_blocks + 1, np.bool_)
    for s in range(live.size):
        if poll(watch):
            break
        if live[s] and not small[target[s]].any():
            final[target[s]] = accepting[s]
            for a in range(trans.shape[1]):
                small[target[s], a] = target[trans[s, a]]
    column, n_columns = equal_columns(small, watch)
    return _keep_columns(small, column, n_columns, watch), final, target[start], column


@jit
def _reachable(trans: np.ndarray, start: int, watch: np.ndarray) -> np.ndarray:
    """bool [n], without the dead state."""
    reached = np.zeros(trans.shape[0], np.bool_)
    reached[0] = reached[start] = True
    stack, top = np.empty(trans.shape[0], np.int32), 1
    stack[0] = start
    while top > 0 and not poll(watch):
        top -= 1
        for target in trans[stack[top]]:
            if not reached[target]:
                reached[target], stack[top] = True, target
                top += 1
    reached[0] = False
    return reached


@jit
def _edges_by_head(
    trans: np.ndarray, reached: np.ndarray, watch: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(ptr int64 [n + 1], tail int32 [m], label int32 [m]) of the edges between reached states."""
    n, k = trans.shape
    ptr = np.zeros(n + 2, np.int64)
    for s in range(n):
        if poll(watch):
            break
        if reached[s]:
            for a in range(k):
                if trans[s, a] != 0:
                    ptr[trans[s, a] + 2] += 1
    ptr = ptr.cumsum()
    tail, label = np.empty(ptr[n + 1], np.int32), np.empty(ptr[n + 1], np.int32)
    for s in range(n):
        if poll(watch):
            break
        if reached[s]:
            for a in range(k):
                if trans[s, a] != 0:
                    at = ptr[trans[s, a] + 1]
                    tail[at], label[at] = s, a
                    ptr[trans[s, a] + 1] += 1
    return ptr[: n + 1].copy(), tail, label


@jit
def _live(
    ptr: np.ndarray, tail: np.ndarray, accepting: np.ndarray, watch: np.ndarray
) -> np.ndarray:
    """bool [n]: the states from which an accepting one can be reached."""
    live, stack, top = accepting.copy(), np.empty(accepting.size, np.int32), 0
    for s in range(live.size):
        if live[s]:
            stack[top] = s
            top += 1
    while top > 0 and not poll(watch):
        top -= 1
        s = stack[top]
        for edge in range(ptr[s], ptr[s + 1]):
            if not live[tail[edge]]:
                live[tail[edge]], stack[top] = True, tail[edge]
                top += 1
    return live


@jit
def _live_edges(
    ptr: np.ndarray,
    tail: np.ndarray,
    label: np.ndarray,
    live: np.ndarray,
    number: np.ndarray,
    watch: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The edges into live states, with states renamed by `number`. Works in place."""
    new_ptr, states, used = np.zeros(live.sum() + 1, np.int64), 0, 0
    for s in range(live.size):
        if poll(watch):
            break
        if live[s]:
            for edge in range(ptr[s], ptr[s + 1]):
                tail[used], label[used] = number[tail[edge]], label[edge]
                used += 1
            states += 1
            new_ptr[states] = used
    return new_ptr, tail[:used], label[:used]


@jit
def blocks(
    ptr: np.ndarray,
    tail: np.ndarray,
    label: np.ndarray,
    n_labels: int,
    accepting: np.ndarray,
    watch: np.ndarray,
) -> tuple[np.ndarray, int]:
    """The block of each state, all states being live: (int32 [n], number of blocks).

    ptr: int64 [n + 1]; tail, label: int32 [m], edges sorted by head; accepting: bool [n].
    """
    n, m = accepting.size, tail.size
    states, state_counts = _one_set(n)
    for s in range(n):
        if accepting[s]:
            _mark(states, state_counts, s)
    _split(states, state_counts)
    edges, edge_counts = _sets_by_label(label, n_labels, watch)
    splitter, block = 0, 1
    while splitter < edge_counts[0] and not stopped(watch):
        for index in range(edges[_FIRST, splitter], edges[_PAST, splitter]):
            if poll(watch):
                break
            _mark(states, state_counts, tail[edges[_ELEMENT, index]])
        _split(states, state_counts)
        splitter += 1
        while block < state_counts[0]:
            for index in range(states[_FIRST, block], states[_PAST, block]):
                if poll(watch):
                    break
                s = states[_ELEMENT, index]
                for edge in range(ptr[s], ptr[s + 1]):
                    _mark(edges, edge_counts, edge)
            _split(edges, edge_counts)
            block += 1
    return states[_SET, :n].copy(), state_counts[0] if m + n > 0 else 0


@jit
def _one_set(size: int) -> tuple[np.ndarray, np.ndarray]:
    """The partition of 0..size-1 into one set (none if size is 0)."""
    partition = np.zeros((_ROWS, size + 1), np.int32)
    partition[_ELEMENT, :] = partition[_WHERE, :] = np.arange(size + 1)
    partition[_PAST, 0] = size
    return partition, np.array([min(size, 1), 0])


@jit
def _sets_by_label(
    label: np.ndarray, n_labels: int, watch: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The partition of the edges by label."""
    partition, counts = _one_set(label.size)
    first = np.zeros(n_labels + 1, np.int64)
    for a in label:
        first[a + 1] += 1
    first = first.cumsum()
    index, number = first.copy(), np.zeros(n_labels, np.int32)
    counts[0] = 0
    for a in range(n_labels):
        if first[a + 1] > first[a]:
            number[a] = counts[0]
            partition[_FIRST, counts[0]], partition[_PAST, counts[0]] = first[a], first[a + 1]
            counts[0] += 1
    for edge in range(label.size):
        if poll(watch):
            break
        a = label[edge]
        partition[_ELEMENT, index[a]], partition[_WHERE, edge] = edge, index[a]
        partition[_SET, edge] = number[a]
        index[a] += 1
    return partition, counts


@jit
def _mark(partition: np.ndarray, counts: np.ndarray, element: int) -> None:
    """Move an element to the front of its set, among the marked ones."""
    which, here = partition[_SET, element], partition[_WHERE, element]
    there = partition[_FIRST, which] + partition[_MARKS, which]
    if here < there:
        return
    other = partition[_ELEMENT, there]
    partition[_ELEMENT, here], partition[_WHERE, other] = other, here
    partition[_ELEMENT, there], partition[_WHERE, element] = element, there
    if partition[_MARKS, which] == 0:
        partition[_TOUCHED, counts[1]] = which
        counts[1] += 1
    partition[_MARKS, which] += 1


@jit
def _split(partition: np.ndarray, counts: np.ndarray) -> None:
    """Cut each set into its marked and its other elements; the smaller part becomes a new set."""
    for t in range(counts[1]):
        which = partition[_TOUCHED, t]
        first, past = partition[_FIRST, which], partition[_PAST, which]
        cut = first + partition[_MARKS, which]
        partition[_MARKS, which] = 0
        if cut == past:
            continue
        new = counts[0]
        counts[0] += 1
        if cut - first <= past - cut:
            partition[_FIRST, new], partition[_PAST, new] = first, cut
            partition[_FIRST, which] = cut
        else:
            partition[_FIRST, new], partition[_PAST, new] = cut, past
            partition[_PAST, which] = cut
        for index in range(partition[_FIRST, new], partition[_PAST, new]):
            partition[_SET, partition[_ELEMENT, index]] = new
    counts[1] = 0


@jit
def equal_columns(trans: np.ndarray, watch: np.ndarray) -> tuple[np.ndarray, int]:
    """Number the distinct columns by first occurrence: (int32 [k], how many)."""
    n, k = trans.shape
    key, first = np.zeros(k, np.uint64), np.empty(k, np.int64)
    for s in range(n):
        if poll(watch):
            break
        for a in range(k):
            key[a] = mix(key[a] + np.uint64(trans[s, a]))
    number, count = np.zeros(k, np.int32), 0
    for a in range(k):
        if poll(watch):
            break
        c = 0
        while c < count and not (key[first[c]] == key[a] and _equal(trans, first[c], a)):
            c += 1
        number[a] = c
        if c == count:
            first[count] = a
            count += 1
    return number, count


@jit
def _equal(trans: np.ndarray, a: int, b: int) -> bool:
    for s in range(trans.shape[0]):  # noqa: SIM110 - numba compiles a loop better
        if trans[s, a] != trans[s, b]:
            return False
    return True


@jit
def _keep_columns(
    trans: np.ndarray, column: np.ndarray, n_columns: int, watch: np.ndarray
) -> np.ndarray:
    """The distinct columns of `trans`, numbered as `equal_columns` did."""
    small = np.empty((trans.shape[0], n_columns), np.int32)
    for s in range(trans.shape[0]):
        if poll(watch):
            break
        for a in range(trans.shape[1]):
            small[s, column[a]] = trans[s, a]
    return small


# The minimal DFA of a finite set of byte strings: their trie, minimised.
#
# L = { strings[0], strings[1], ... }


@jit
def dfa_of_strings(
    data: np.ndarray, ptr: np.ndarray, watch: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """(trans int32 [n, k], byte_class uint8 [256], accepting bool [n], start).

    String i is data[ptr[i]:ptr[i+1]] (uint8; int64). Strings are sorted, at least one, and leave
    some byte unused, as UTF-8 does.
    """
    parent, label, accepting = _trie(data, ptr, watch)
    state, n_states = _states(parent, label, accepting, watch)
    used = np.zeros(256, np.int32)
    for byte in label[1:]:
        used[byte] = 1
    column = np.where(used == 1, used.cumsum(), 0)  # column 0: bytes that lead nowhere
    table = np.zeros((n_states, used.sum() + 1), np.int32)
    final = np.zeros(n_states, np.bool_)
    for node in range(parent.size - 1, -1, -1):
        if poll(watch):
            break
        final[state[node]] = accepting[node]
        if node > 0:
            table[state[parent[node]], column[label[node]]] = state[node]
    byte_class, some_byte = _classes_by_first_byte(equal_columns(table, watch)[0], column)
    small = np.empty((n_states, some_byte.size), np.int32)
    for c in range(some_byte.size):
        small[:, c] = table[:, column[some_byte[c]]]
    small, final, start = numbered(small, final, state[0], watch)
    return small, byte_class, final, start


@jit
def _trie(
    data: np.ndarray, ptr: np.ndarray, watch: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(parent int32 [n], label int32 [n], accepting bool [n]) of the nodes; node 0 is the root."""
    parent, label = np.zeros(data.size + 1, np.int32), np.zeros(data.size + 1, np.int32)
    accepting, used = np.zeros(data.size + 1, np.bool_), 1
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
        accepting[path[depth]] = True
    return parent[:used].copy(), label[:used].copy(), accepting[:used].copy()


@jit
def _states(
    parent: np.ndarray, label: np.ndarray, accepting: np.ndarray, watch: np.ndarray
) -> tuple[np.ndarray, int]:
    """(state of each node int32 [n], number of states), equal for nodes with equal subtrees.

    Children come after their parents, so going backwards the states of the children are known:
    a node is its acceptance and the list of (label, state) of its children. State 0 is not used.
    """
    n = parent.size
    state, count = np.zeros(n, np.int32), 1
    child, sibling = np.zeros(n, np.int32), np.zeros(n, np.int32)  # 0 ends a list: the root
    table, keys = np.zeros(table_size(n + 1), np.int32), np.empty(n, np.uint64)
    for node in range(n - 1, -1, -1):
        if poll(watch):
            break
        key, below = mix(accepting[node]), child[node]
        while below != 0:
            key = mix(key + np.uint64(label[below]) + (np.uint64(state[below]) << np.uint64(8)))
            below = sibling[below]
        keys[node], slot = key, first_slot(key, table)
        while table[slot] != 0:
            other = table[slot] - 1
            if keys[other] == key and _alike(label, accepting, state, child, sibling, node, other):
                break
            slot = next_slot(slot, table)
        if table[slot] == 0:
            table[slot], state[node] = node + 1, count
            count += 1
        state[node] = state[table[slot] - 1]
        if node > 0:
            sibling[node], child[parent[node]] = child[parent[node]], node
    return state, count


@jit
def _alike(
    label: np.ndarray,
    accepting: np.ndarray,
    state: np.ndarray,
    child: np.ndarray,
    sibling: np.ndarray,
    a: int,
    b: int,
) -> bool:
    """Whether two nodes have the same acceptance and the same children."""
    if accepting[a] != accepting[b]:
        return False
    a, b = child[a], child[b]
    while a != 0 and b != 0 and label[a] == label[b] and state[a] == state[b]:
        a, b = sibling[a], sibling[b]
    return a == 0 and b == 0


@jit
def _classes_by_first_byte(number: np.ndarray, column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(class of each byte uint8 [256], first byte of each class), classes in order of first byte.

    number: the class of each column, in any order; column: the column of each byte.
    """
    renamed, count = np.full(number.size, -1, np.int64), 0
    byte_class, first = np.empty(256, np.uint8), np.empty(256, np.int64)
    for byte in range(256):
        old = number[column[byte]]
        if renamed[old] < 0:
            renamed[old], first[count] = count, byte
            count += 1
        byte_class[byte] = renamed[old]
    return byte_class, first[:count].copy()
