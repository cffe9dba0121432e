"""Subset construction: states of the DFA are sets of nodes of a network with silent edges.

    L(set) = union of L(node) over its nodes

Two things differ from the textbook. Sets are interned by a hash that does not depend on order, so
nothing is sorted. And a node is dropped if a stronger one is in the set: in x{m,n} the same node of
an *earlier* optional copy can do all that the later copy can (one more repeat may follow), so only
the earliest copy is kept. Without this, `.{0,200}b.{0,200}` has 2**200 sets; with it, 20,503.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bpe_automata._kernels import inlined, inner, jit
from bpe_automata._kernels.hashing import (
    first_slot,
    lengthened,
    mix,
    next_slot,
    rehashed,
    table_size,
)
from bpe_automata._kernels.watch import poll

DONE, OUT_OF_STATES, OUT_OF_MEMORY = 0, 1, 2
_NO_ROOM, _NO_CELLS = -1, -2
_STATES, _EPOCH, _WRITTEN, _CELLS = 0, 1, 2, 3  # the counters
# Rows of the scratch array, one column per node; behind _NEAR and _FAR, when each was noted.
_SEEN, _SET, _STACK, _IN_SET, _NEAR, _FAR = 0, 1, 2, 3, 4, 6
_SCRATCH_ROWS = 8


class Network(NamedTuple):
    """Node v reads a column of class reads[e] and is at node to[e] then, for e in first[v] ..
    first[v + 1] - 1; it reads nothing and is at node silent[e], for e in silent_first[v] ..
    silent_first[v + 1] - 1; it ends if accepts[v]. All int32, but `accepts` bool.

    near[v]: the distance back to the same node in the first copy of the innermost bounded repeat;
    far[v]: the same for the next repeat around it; -1 where there is none. The columns of class c
    are columns[class_first[c]:class_first[c + 1]]."""

    first: np.ndarray
    reads: np.ndarray
    to: np.ndarray
    silent_first: np.ndarray
    silent: np.ndarray
    accepts: np.ndarray
    near: np.ndarray
    far: np.ndarray
    class_first: np.ndarray
    columns: np.ndarray


class Sets(NamedTuple):
    """What is known so far. State s has the nodes pool[first[s]:first[s + 1]]; state 0 is dead.

    trans: int32 [room, columns]; accepting: bool [room]; keys: uint64 [room], hashes; first: int32
    [room + 1]; slots: int32, the hash table of states; pool: int32; alone: int32 [nodes], the state
    of what one node leads to silently, -1 if not known; counts: int64 [4]: states, sets looked at,
    states whose rows are written, and cells that the next one needs."""

    trans: np.ndarray
    accepting: np.ndarray
    keys: np.ndarray
    first: np.ndarray
    slots: np.ndarray
    pool: np.ndarray
    alone: np.ndarray
    counts: np.ndarray


class Lists(NamedTuple):
    """Of each column, the list of nodes that a set leads to: where it begins in the cells, -1 if it
    is empty, int32, and a hash, uint64; slots: int32, a hash table of 1 + columns. Cells are int32
    [2, room], rows next cell and node."""

    head: np.ndarray
    total: np.ndarray
    slots: np.ndarray


def determinize(
    net: Network, start: int, n_columns: int, max_states: int, max_bytes: int, watch: np.ndarray
) -> tuple[int, np.ndarray, np.ndarray]:
    """(DONE, or what ran out; trans int32 [states, n_columns], accepting bool [states]): all sets
    that node `start` leads to. State 0 is dead; state 1 is the start, unless that is dead."""
    room, n_nodes = 64, len(net.accepts)
    sets = Sets(
        np.zeros((room, n_columns), np.int32),
        np.zeros(room, np.bool_),
        np.zeros(room, np.uint64),
        np.zeros(room + 1, np.int32),
        np.zeros(table_size(room), np.int32),
        np.zeros(4 * room + n_nodes, np.int32),
        np.full(n_nodes, -1, np.int32),
        np.array([1, 0, 0, 0]),
    )
    lists = Lists(
        np.empty(n_columns, np.int32),
        np.empty(n_columns, np.uint64),
        np.empty(table_size(n_columns), np.int32),
    )
    cells, scratch = np.empty((2, 1024), np.int32), np.zeros((_SCRATCH_ROWS, n_nodes), np.int32)
    cells[:, 0] = -1, start
    while True:
        status = _explore(net, sets, lists, cells, scratch, max_states, max_bytes, watch)
        if status == _NO_CELLS:
            cells = np.empty((2, 2 * sets.counts[_CELLS]), np.int32)
        elif status != _NO_ROOM:
            break
        else:
            room = 3 * (4 * (sets.trans.size + sets.pool.size) + 17 * sets.keys.size)
            if room > max_bytes:  # what there is now, and twice as much
                status = OUT_OF_MEMORY
                break
            sets = _roomier(sets)
    states = sets.counts[_STATES]
    return status, sets.trans[:states], sets.accepting[:states]


def _roomier(sets: Sets) -> Sets:
    """The same with twice the room for states if there is none for another, and else for nodes."""
    if sets.counts[_STATES] < len(sets.keys):
        return sets._replace(pool=lengthened(sets.pool, 2 * len(sets.pool)))
    room = 2 * len(sets.keys)
    keys = lengthened(sets.keys, room)
    return sets._replace(
        trans=lengthened(sets.trans, room),
        accepting=lengthened(sets.accepting, room),
        keys=keys,
        first=lengthened(sets.first, room + 1),
        slots=rehashed(sets.slots, keys, room),
    )


@jit
def _explore(
    net: Network,
    sets: Sets,
    lists: Lists,
    cells: np.ndarray,
    scratch: np.ndarray,
    max_states: int,
    max_bytes: int,
    watch: np.ndarray,
) -> int:
    """Write the rows of states until all are written, or something runs out: it is called again
    then, with more of it."""
    counts = sets.counts
    if counts[_WRITTEN] == 0:
        _closure(net, sets, scratch, cells, np.int64(0))
        counts[_WRITTEN] = 1
    while counts[_WRITTEN] < counts[_STATES] and not poll(watch):
        state = counts[_WRITTEN]
        nodes = sets.pool[sets.first[state] : sets.first[state + 1]]
        counts[_CELLS] = _cells(net, nodes)
        if counts[_STATES] > max_states:
            return OUT_OF_STATES
        if 8 * counts[_CELLS] > max_bytes:
            return OUT_OF_MEMORY
        if counts[_CELLS] > cells.shape[1]:
            return _NO_CELLS
        _reach(net, nodes, lists, cells, watch)
        if not _row(net, sets, scratch, lists, cells, state, watch):
            return _NO_ROOM
        counts[_WRITTEN] += 1
    return DONE


@inlined
def _cells(net: Network, nodes: np.ndarray) -> int:
    """How many cells the lists of a set need."""
    needed = 0
    for node in nodes:
        for edge in range(net.first[node], net.first[node + 1]):
            needed += net.class_first[net.reads[edge] + 1] - net.class_first[net.reads[edge]]
    return needed


@inlined
def _reach(
    net: Network, nodes: np.ndarray, lists: Lists, cells: np.ndarray, watch: np.ndarray
) -> None:
    """List for each column the nodes that a set leads to."""
    lists.head[:] = -1
    lists.total[:] = 0
    used = 0
    for node in nodes:
        if poll(watch):
            break
        for edge in range(net.first[node], net.first[node + 1]):
            to, c = net.to[edge], net.reads[edge]
            key = mix(to)
            for k in range(net.class_first[c], net.class_first[c + 1]):
                column = net.columns[k]
                cells[0, used], cells[1, used] = lists.head[column], to
                lists.head[column] = used
                lists.total[column] += key
                used += 1


@inlined
def _row(
    net: Network,
    sets: Sets,
    scratch: np.ndarray,
    lists: Lists,
    cells: np.ndarray,
    state: int,
    watch: np.ndarray,
) -> bool:
    """Write the row of a state whose lists are made; False if there was no room. What several
    columns list alike is worked out once."""
    lists.slots[:] = 0
    for column in range(len(lists.head)):
        if column & 15 == 0 and poll(watch):
            return True
        if lists.head[column] < 0:
            continue
        slot = first_slot(lists.total[column], lists.slots)
        while lists.slots[slot] != 0 and not _alike(lists, cells, lists.slots[slot] - 1, column):
            slot = next_slot(slot, lists.slots)
        if lists.slots[slot] == 0:
            lists.slots[slot] = 1 + column
            begin = np.int64(lists.head[column])
            sets.trans[state, column] = _closure(net, sets, scratch, cells, begin)
            if sets.trans[state, column] == _NO_ROOM:
                return False
        sets.trans[state, column] = sets.trans[state, lists.slots[slot] - 1]
    return True


@inlined
def _alike(lists: Lists, cells: np.ndarray, a: int, b: int) -> bool:
    """Whether two columns list the same nodes, in the same order."""
    if lists.total[a] != lists.total[b]:
        return False
    x, y = lists.head[a], lists.head[b]
    while x >= 0 and y >= 0 and cells[1, x] == cells[1, y]:
        x, y = cells[0, x], cells[0, y]
    return x < 0 and y < 0


@inner
def _closure(net: Network, sets: Sets, scratch: np.ndarray, cells: np.ndarray, at: Any) -> int:
    """The state of all that a list of nodes, from cell `at` on, leads to silently; or _NO_ROOM."""
    first, is_alone = cells[1, at], cells[0, at] < 0
    if is_alone and sets.alone[first] >= 0:
        return sets.alone[first]
    sets.counts[_EPOCH] += 1
    count: Any = np.int64(0)
    while at >= 0:
        count = _close(net, scratch, sets.counts[_EPOCH], cells[1, at], count)
        at = cells[0, at]
    count = _prune(net, scratch, sets.counts[_EPOCH], count)
    state = _intern(net, sets, scratch, count)
    if is_alone and state != _NO_ROOM:
        sets.alone[first] = state
    return state


@inlined
def _close(net: Network, scratch: np.ndarray, epoch: int, node: int, count: int) -> int:
    """Add to the set what `node` leads to silently, of it the nodes that read or accept; the new
    count."""
    if scratch[_SEEN, node] == epoch:
        return count
    scratch[_SEEN, node], scratch[_STACK, 0], top = epoch, node, 1
    while top > 0:
        top -= 1
        node = scratch[_STACK, top]
        if net.accepts[node] or net.first[node] < net.first[node + 1]:
            scratch[_SET, count] = node
            count += 1
        for edge in range(net.silent_first[node], net.silent_first[node + 1]):
            to = net.silent[edge]
            if scratch[_SEEN, to] != epoch:
                scratch[_SEEN, to], scratch[_STACK, top] = epoch, to
                top += 1
    return count


@inlined
def _prune(net: Network, scratch: np.ndarray, epoch: int, count: int) -> int:
    """Keep the nodes that no other node of the set dominates, and mark them; their count."""
    for k in range(count):
        node = scratch[_SET, k]
        for row in (_NEAR, _FAR):  # how near the nearest copy in the set is, noted at the first
            distance = net.near[node] if row == _NEAR else net.far[node]
            first = node - distance
            if distance >= 0 and (
                scratch[row + 1, first] != epoch or distance < scratch[row, first]
            ):
                scratch[row, first], scratch[row + 1, first] = distance, epoch
    kept = 0
    for k in range(count):
        node = scratch[_SET, k]
        near, far = net.near[node], net.far[node]
        if near > 0 and scratch[_NEAR, node - near] < near:
            continue
        if far > 0 and scratch[_FAR, node - far] < far:
            continue
        scratch[_SET, kept], scratch[_IN_SET, node] = node, epoch
        kept += 1
    return kept


@inlined
def _intern(net: Network, sets: Sets, scratch: np.ndarray, count: int) -> int:
    """The state of the set in scratch, a new one if need be; or _NO_ROOM."""
    if count == 0:
        return 0
    key = np.uint64(0)
    for k in range(count):
        key += mix(scratch[_SET, k])
    slot = first_slot(key, sets.slots)
    while sets.slots[slot] != 0:
        state = int(sets.slots[slot])
        nodes = sets.pool[sets.first[state] : sets.first[state + 1]]
        if sets.keys[state] == key and _same(scratch, sets.counts[_EPOCH], count, nodes):
            return state
        slot = next_slot(slot, sets.slots)
    state, used = sets.counts[_STATES], sets.first[sets.counts[_STATES]]
    if state == len(sets.keys) or used + count > len(sets.pool):
        return _NO_ROOM
    sets.counts[_STATES] += 1
    sets.slots[slot], sets.keys[state], sets.first[state + 1] = state, key, used + count
    for k in range(count):
        node = scratch[_SET, k]
        sets.pool[used + k] = node
        sets.accepting[state] |= net.accepts[node]
    return state


@inlined
def _same(scratch: np.ndarray, epoch: int, count: int, nodes: np.ndarray) -> bool:
    """Whether `nodes` are the set in scratch; both hold each node once."""
    if nodes.size != count:
        return False
    for node in nodes:  # noqa: SIM110 - numba compiles a loop better than a generator
        if scratch[_IN_SET, node] != epoch:
            return False
    return True
