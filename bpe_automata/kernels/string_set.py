"""The minimal DFA of a finite set of byte strings: their trie, minimised.

L = { strings[0], strings[1], ... }
"""

from __future__ import annotations

import numpy as np

from bpe_automata.kernels import kernel
from bpe_automata.kernels.hashing import first_slot, mix, next_slot, table_size
from bpe_automata.kernels.minimise import equal_columns
from bpe_automata.kernels.utf8 import numbered
from bpe_automata.kernels.watch import poll


@kernel
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


@kernel
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


@kernel
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


@kernel
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


@kernel
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
