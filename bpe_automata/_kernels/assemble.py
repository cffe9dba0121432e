"""Subset construction over a network of DFAs, letters and hubs.

    L(set) = union of L(node) over its nodes

A node is a hub, which reads nothing and has silent edges; or a letter, which reads one column; or
a state of one copy of a block, that is, of a DFA with an exit: where it accepts, a silent edge
leads to the exit. Blocks keep their own tables, which all copies share, so that most sets of nodes
have one node and cost one look into a table for each column.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata._kernels import inner, jit
from bpe_automata._kernels.hashing import first_slot, mix, next_slot
from bpe_automata._kernels.watch import poll, stopped

DONE, FULL = 0, 1
STATES, EXPANDED, EPOCH = 0, 1, 2  # the counters
_NONE, _NO_ROOM = -1, -2


class Network(NamedTuple):
    """Nodes are numbered: hubs, then letters, then the states of each copy.

    edge_ptr, edge_to: int32, silent edges of the hubs; accepts: bool of each hub. letter, follow:
    int32, column and next node of each letter. copy_of: int32 of each state, its copy; base, block,
    leave: int32 of each copy, the node of its state 0, its block, its exit. table: int32, the rows
    of all blocks, one after another; table_at, width, final_at: int64, where a block begins in it,
    its columns, and where it begins in `final`, uint8 of each state: 0, or 1 if it accepts, or 2 if
    it moreover reads nothing. column: int32 [block, column here], the column there.
    """

    edge_ptr: np.ndarray
    edge_to: np.ndarray
    accepts: np.ndarray
    letter: np.ndarray
    follow: np.ndarray
    copy_of: np.ndarray
    base: np.ndarray
    block: np.ndarray
    leave: np.ndarray
    table: np.ndarray
    table_at: np.ndarray
    width: np.ndarray
    final: np.ndarray
    final_at: np.ndarray
    column: np.ndarray


class Subsets(NamedTuple):
    """What is known so far. State s has the nodes pool[ptr[s]:ptr[s+1]]; state 0 is dead.

    trans: int32 [room, columns]; accepting: bool [room]; keys: uint64 [room], hashes; ptr: int32
    [room]; slots: int32, hash table of states; pool: int32. single: int32 [nodes], the state of the
    closure of one node, -1 if it is dead, 0 if not known; seen: int32 [nodes], the last closure
    that a node was in. counts: int64 [3]. All are zeros at first.
    """

    trans: np.ndarray
    accepting: np.ndarray
    keys: np.ndarray
    ptr: np.ndarray
    slots: np.ndarray
    pool: np.ndarray
    single: np.ndarray
    seen: np.ndarray
    counts: np.ndarray


class Scratch(NamedTuple):
    """stack, found: int32 [nodes], a closure at work and its nodes. Of each column, for the list of
    nodes that it leads to: head int32, where the list begins, total uint64, a hash; first int32,
    columns whose lists are all different. moved: int32 [256], states by the columns of a block."""

    stack: np.ndarray
    found: np.ndarray
    head: np.ndarray
    total: np.ndarray
    first: np.ndarray
    moved: np.ndarray


@jit
def begin(net: Network, sets: Subsets, scratch: Scratch, start: int) -> int:
    """Make the dead state and the closure of `start`; the state of that."""
    sets.counts[STATES] = sets.counts[EXPANDED] = 1
    return _single(net, sets, scratch, start)


@jit
def expand(net: Network, sets: Subsets, scratch: Scratch, most: int, watch: np.ndarray) -> int:
    """Rows of more states, until all are DONE, there are more than `most`, or an array is FULL."""
    counts, lists = sets.counts, np.empty((2, 4096), np.int32)
    while counts[EXPANDED] < counts[STATES] <= most and not poll(watch):
        if not _rows_of_copies(net, sets, scratch, most, watch):
            return FULL
        if counts[EXPANDED] == counts[STATES] or stopped(watch):
            break  # stopped, the next state may still be one of a copy
        state = counts[EXPANDED]
        first, past = sets.ptr[state], sets.ptr[state + 1]
        if past - first == 1:
            whole = _row_of_letter(net, sets, scratch, state, sets.pool[first])
        else:
            cells = _most_cells(net, sets, first, past)
            if cells > lists.shape[1]:
                lists = np.empty((2, 2 * cells), np.int32)
            _reach(net, sets, scratch, lists, first, past)
            whole = _row_of_lists(net, sets, scratch, lists, state, watch)
        if not whole:
            return FULL
        counts[EXPANDED] += 1
    return DONE


@inner
def _rows_of_copies(
    net: Network, sets: Subsets, scratch: Scratch, most: int, watch: np.ndarray
) -> bool:
    """Rows of the next states that have one node each, of a copy, while there are any; False if
    there was no room. Nearly all rows are such, so they are made in one loop, with nothing looked
    up twice."""
    states_from, counts, columns = len(net.accepts) + len(net.letter), sets.counts, net.column
    trans, single, ptr, moved = sets.trans, sets.single, sets.ptr, scratch.moved
    while counts[EXPANDED] < counts[STATES] <= most and not poll(watch):
        state = counts[EXPANDED]
        node = sets.pool[ptr[state]]
        if ptr[state + 1] - ptr[state] != 1 or node < states_from:
            break
        copy = net.copy_of[node - states_from]
        block, base = net.block[copy], net.base[copy]
        row, final_at = net.table_at[block] + (node - base) * net.width[block], net.final_at[block]
        for k in range(net.width[block]):
            target = net.table[row + k]
            to = single[base + target] if target != 0 else 0
            if target != 0 and to <= 0:
                if to == 0 and net.final[final_at + target] == 0:
                    to = _only(sets.pool, ptr, single, counts, base + target)
                else:
                    to = _single(net, sets, scratch, base + target)
                if to == _NO_ROOM:
                    return False
            moved[k] = to
        for c in range(trans.shape[1]):
            trans[state, c] = moved[columns[block, c]]
        counts[EXPANDED] += 1
    return True


@inner
def _row_of_letter(net: Network, sets: Subsets, scratch: Scratch, state: int, node: int) -> bool:
    """The row of a state with one node, a letter; False if there was no room."""
    letter = node - len(net.accepts)
    to = _single(net, sets, scratch, net.follow[letter])
    sets.trans[state, net.letter[letter]] = to
    return to != _NO_ROOM


@inner
def _most_cells(net: Network, sets: Subsets, first: int, past: int) -> int:
    """No fewer than the nodes that the set leads to, over all columns."""
    states_from, cells = len(net.accepts) + len(net.letter), 0
    for at in range(first, past):
        cells += 1 if sets.pool[at] < states_from else sets.trans.shape[1]
    return cells


@inner
def _reach(
    net: Network, sets: Subsets, scratch: Scratch, lists: np.ndarray, first: int, past: int
) -> None:
    """List for each column the nodes that the set leads to. lists: rows next cell, node."""
    hubs, states_from = len(net.accepts), len(net.accepts) + len(net.letter)
    scratch.head[:] = -1
    scratch.total[:] = 0
    used = 0
    for at in range(first, past):
        node = sets.pool[at]
        if node < states_from:
            letter = node - hubs
            used = _push(scratch, lists, net.letter[letter], net.follow[letter], used)
            continue
        copy = net.copy_of[node - states_from]
        block, base = net.block[copy], net.base[copy]
        row = net.table_at[block] + (node - base) * net.width[block]
        for c in range(sets.trans.shape[1]):
            target = net.table[row + net.column[block, c]]
            if target != 0:
                used = _push(scratch, lists, c, base + target, used)


@inner
def _push(scratch: Scratch, lists: np.ndarray, column: int, node: int, used: int) -> int:
    lists[0, used], lists[1, used] = scratch.head[column], node
    scratch.head[column] = used
    scratch.total[column] += mix(node)
    return used + 1


@inner
def _row_of_lists(
    net: Network,
    sets: Subsets,
    scratch: Scratch,
    lists: np.ndarray,
    state: int,
    watch: np.ndarray,
) -> bool:
    """The row of a state whose lists are made; False if there was no room. Columns with the same
    list are worked out once."""
    different = 0
    for c in range(len(scratch.head)):
        if scratch.head[c] < 0 or poll(watch):
            continue
        same = -1
        for k in range(different):
            if _alike(scratch, lists, scratch.first[k], c):
                same = scratch.first[k]
                break
        if same < 0:
            sets.trans[state, c] = _closure(net, sets, scratch, lists, scratch.head[c])
            if sets.trans[state, c] == _NO_ROOM:
                return False
            scratch.first[different] = c
            different += 1
        else:
            sets.trans[state, c] = sets.trans[state, same]
    return True


@inner
def _alike(scratch: Scratch, lists: np.ndarray, a: int, b: int) -> bool:
    """Whether the lists of two columns are the same."""
    if scratch.total[a] != scratch.total[b]:
        return False
    x, y = scratch.head[a], scratch.head[b]
    while x >= 0 and y >= 0 and lists[1, x] == lists[1, y]:
        x, y = lists[0, x], lists[0, y]
    return x < 0 and y < 0


@inner
def _single(net: Network, sets: Subsets, scratch: Scratch, node: int) -> int:
    """The state of the closure of one node, 0 if dead, or _NO_ROOM."""
    if sets.single[node] == 0:
        sets.counts[EPOCH] += 1
        count, accepts = _close(net, sets, scratch, node, 0)
        state = _intern(sets, scratch, count, accepts)
        if state == _NO_ROOM:
            return _NO_ROOM
        sets.single[node] = state if state > 0 else _NONE
    return max(sets.single[node], 0)


@inner
def _closure(net: Network, sets: Subsets, scratch: Scratch, lists: np.ndarray, at: int) -> int:
    """The state of the closure of a list of nodes, 0 if dead, or _NO_ROOM."""
    if lists[0, at] < 0:
        return _single(net, sets, scratch, lists[1, at])
    sets.counts[EPOCH] += 1
    count, accepts = 0, False
    while at >= 0:
        if sets.seen[lists[1, at]] != sets.counts[EPOCH]:
            count, final = _close(net, sets, scratch, lists[1, at], count)
            accepts = accepts or final
        at = lists[0, at]
    return _intern(sets, scratch, count, accepts)


@inner
def _close(
    net: Network, sets: Subsets, scratch: Scratch, node: int, count: int
) -> tuple[int, bool]:
    """Add to `found` what `node`, not yet seen, leads to silently: (new count, is one accepting?).

    Nodes that read nothing are not kept: what they lead to is. Each is on the stack once an epoch.
    """
    hubs, states_from = len(net.accepts), len(net.accepts) + len(net.letter)
    epoch, accepts, top = sets.counts[EPOCH], False, 1
    scratch.stack[0], sets.seen[node] = node, epoch
    while top > 0:
        top -= 1
        node = scratch.stack[top]
        if node < hubs:
            accepts = accepts or net.accepts[node]
            for edge in range(net.edge_ptr[node], net.edge_ptr[node + 1]):
                to = net.edge_to[edge]
                if sets.seen[to] != epoch:
                    sets.seen[to], scratch.stack[top] = epoch, to
                    top += 1
            continue
        final = 0
        if node >= states_from:
            copy = net.copy_of[node - states_from]
            final = net.final[net.final_at[net.block[copy]] + node - net.base[copy]]
            to = net.leave[copy]
            if final > 0 and sets.seen[to] != epoch:
                sets.seen[to], scratch.stack[top] = epoch, to
                top += 1
        if final < 2:
            scratch.found[count] = node
            count += 1
    return count, accepts


@inner
def _intern(sets: Subsets, scratch: Scratch, count: int, accepts: bool) -> int:
    """The state of the set that was found, all of it seen in this epoch; 0 if dead, or _NO_ROOM."""
    if count == 0 and not accepts:
        return 0
    if count == 1 and not accepts:
        return _alone(sets, scratch)
    key = np.uint64(accepts)
    for k in range(count):
        key += mix(scratch.found[k])
    slot = first_slot(key, sets.slots)
    while sets.slots[slot] != 0:
        state = sets.slots[slot]
        if sets.keys[state] == key and _is_found(sets, state, count, accepts):
            return state
        slot = next_slot(slot, sets.slots)
    state = _new(sets, scratch, count)
    if state != _NO_ROOM:
        sets.slots[slot], sets.keys[state], sets.accepting[state] = state, key, accepts
    return state


@inner
def _alone(sets: Subsets, scratch: Scratch) -> int:
    """The same for one node, with no hash: as the set is closed, it is the closure of the node."""
    node = scratch.found[0]
    state = sets.single[node]
    if state <= 0:
        state = _new(sets, scratch, 1)
        sets.single[node] = max(state, 0)
    return state


@inner
def _only(
    pool: np.ndarray, ptr: np.ndarray, single: np.ndarray, counts: np.ndarray, node: int
) -> int:
    """The new state of a node that nothing silent leads out of, or _NO_ROOM: most states of long
    strings are such, and need no closure."""
    state = counts[STATES]
    begins = ptr[state]
    if state + 2 > len(ptr) - 1 or begins + 1 > len(pool):
        return _NO_ROOM
    pool[begins] = node
    ptr[state + 1] = begins + 1
    counts[STATES] += 1
    single[node] = state
    return state


@inner
def _new(sets: Subsets, scratch: Scratch, count: int) -> int:
    """A new state of the set that was found, or _NO_ROOM."""
    state = sets.counts[STATES]
    begins = sets.ptr[state]
    if state + 2 > len(sets.keys) or begins + count > len(sets.pool):
        return _NO_ROOM
    for k in range(count):
        sets.pool[begins + k] = scratch.found[k]
    sets.ptr[state + 1] = begins + count
    sets.counts[STATES] += 1
    return state


@inner
def _is_found(sets: Subsets, state: int, count: int, accepts: bool) -> bool:
    first, past = sets.ptr[state], sets.ptr[state + 1]
    if past - first != count or sets.accepting[state] != accepts:
        return False
    for at in range(first, past):  # noqa: SIM110 - numba compiles a loop better
        if sets.seen[sets.pool[at]] != sets.counts[EPOCH]:
            return False
    return True
