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

from bpe_automata.kernels import kernel
from bpe_automata.kernels.hashing import mix
from bpe_automata.kernels.watch import poll, stopped

# Rows of a partition: its elements grouped by set; where an element is; the set of an element;
# and for each set its first place, the place past its last one, how many elements are marked, and
# the list of sets that have marks. counts holds the number of sets, and of sets with marks.
_ELEMENT, _WHERE, _SET, _FIRST, _PAST, _MARKS, _TOUCHED = 0, 1, 2, 3, 4, 5, 6
_ROWS = 7


@kernel
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


@kernel
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


@kernel
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


@kernel
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


@kernel
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


@kernel
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
        for place in range(edges[_FIRST, splitter], edges[_PAST, splitter]):
            if poll(watch):
                break
            _mark(states, state_counts, tail[edges[_ELEMENT, place]])
        _split(states, state_counts)
        splitter += 1
        while block < state_counts[0]:
            for place in range(states[_FIRST, block], states[_PAST, block]):
                if poll(watch):
                    break
                s = states[_ELEMENT, place]
                for edge in range(ptr[s], ptr[s + 1]):
                    _mark(edges, edge_counts, edge)
            _split(edges, edge_counts)
            block += 1
    return states[_SET, :n].copy(), state_counts[0] if m + n > 0 else 0


@kernel
def _one_set(size: int) -> tuple[np.ndarray, np.ndarray]:
    """The partition of 0..size-1 into one set (none if size is 0)."""
    partition = np.zeros((_ROWS, size + 1), np.int32)
    partition[_ELEMENT, :] = partition[_WHERE, :] = np.arange(size + 1)
    partition[_PAST, 0] = size
    return partition, np.array([min(size, 1), 0])


@kernel
def _sets_by_label(
    label: np.ndarray, n_labels: int, watch: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The partition of the edges by label."""
    partition, counts = _one_set(label.size)
    first = np.zeros(n_labels + 1, np.int64)
    for a in label:
        first[a + 1] += 1
    first = first.cumsum()
    place, number = first.copy(), np.zeros(n_labels, np.int32)
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
        partition[_ELEMENT, place[a]], partition[_WHERE, edge] = edge, place[a]
        partition[_SET, edge] = number[a]
        place[a] += 1
    return partition, counts


@kernel
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


@kernel
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
        for place in range(partition[_FIRST, new], partition[_PAST, new]):
            partition[_SET, partition[_ELEMENT, place]] = new
    counts[1] = 0


@kernel
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


@kernel
def _equal(trans: np.ndarray, a: int, b: int) -> bool:
    for s in range(trans.shape[0]):  # noqa: SIM110 - numba compiles a loop better
        if trans[s, a] != trans[s, b]:
            return False
    return True


@kernel
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
