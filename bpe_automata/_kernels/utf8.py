"""From a minimal DFA over atoms of code points to the minimal DFA over the bytes of UTF-8.

    accepts(w) <=> w is well-formed UTF-8 (RFC 3629) and the character DFA accepts its decoding

The continuation bytes of all characters form three levels of 64-way nodes. A node is *what the
next bytes select*: a vector of 64 atoms (one byte to go) or of 64 nodes. Equal nodes are shared, so
a few nodes stand for all 1.1 million code points. An inner state of the byte DFA is a node seen
from a character state q: the vector of states that q goes to. Interning those vectors keeps the
DFA minimal, because inner states with 1, 2 or 3 bytes to go, and character states, can never have
the same nonempty language.
"""

from __future__ import annotations

import numpy as np

from bpe_automata._kernels import jit
from bpe_automata._kernels.hashing import first_slot, longer, mix, next_slot, rehashed, table_size
from bpe_automata._kernels.watch import poll

# starts, atom_of, nodes, is_leaf, hash table, uniform nodes [level, atom], number of nodes
Tree = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@jit
def byte_table(
    trans: np.ndarray,
    accepting: np.ndarray,
    start: int,
    starts: np.ndarray,
    atom_of: np.ndarray,
    max_bytes: int,
    watch: np.ndarray,
) -> tuple[bool, np.ndarray, np.ndarray, np.ndarray, int]:
    """The byte DFA of a minimal, trimmed character DFA whose columns are pairwise different.

    trans: int32 [n, n_atoms]; accepting: bool [n]; starts, atom_of: int32, the atom of each
    interval of code points (surrogates must lie in the atom whose column is dead, atom 0).
    Returns (ok, trans int32 [m, n_classes], byte_class uint8 [256], accepting bool [m], start),
    where ok is False if the table would take more than `max_bytes`.
    """
    nodes, is_leaf, lead = _tree(starts, atom_of, trans.shape[1])
    byte_class, some_byte = _byte_classes(nodes, lead)
    table = _instantiate(trans, nodes, is_leaf, lead, some_byte, max_bytes, watch)
    if table.size == 0:
        return False, table, byte_class, accepting, start
    final = np.zeros(table.shape[0], np.bool_)
    final[: accepting.size] = accepting
    table, final, start = numbered(table, final, start, watch)
    return True, table, byte_class, final, start


# ---------------------------------------------------------------- the tree of code points


@jit
def _tree(
    starts: np.ndarray, atom_of: np.ndarray, n_atoms: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(nodes int32 [v, 64], is_leaf bool [v], lead int32 [256]).

    Node 0 selects nothing; a child has a smaller number than its parents. lead[b] > 0 is an atom,
    lead[b] < 0 minus a node, 0 nothing.
    """
    capacity = 3 * (starts.size + n_atoms) + 16
    nodes = np.zeros((capacity, 64), np.int32)
    is_leaf = np.zeros(capacity, np.bool_)
    table = np.zeros(table_size(capacity), np.int32)
    uniform = np.full((4, n_atoms), -1, np.int32)
    uniform[:, 0] = 0
    tree = (starts, atom_of, nodes, is_leaf, table, uniform, np.ones(1, np.int64))
    lead = np.zeros(256, np.int32)
    for b in range(0x80):
        lead[b] = atom_of[_interval(starts, b)]
    for b in range(0xC2, 0xE0):
        lead[b] = -_leaf(tree, (b - 0xC0) << 6)
    for b in range(0xE0, 0xF0):
        lead[b] = -_middle(tree, (b - 0xE0) << 12, 32 if b == 0xE0 else 0)
    for b in range(0xF0, 0xF5):
        first, past = 16 if b == 0xF0 else 0, 16 if b == 0xF4 else 64
        lead[b] = -_top(tree, (b - 0xF0) << 18, first, past)
    used = tree[6][0]
    return nodes[:used], is_leaf[:used], lead


@jit
def _interval(starts: np.ndarray, code_point: int) -> int:
    """The number of the interval that holds a code point."""
    low, high = 0, starts.size
    while high - low > 1:
        middle = (low + high) >> 1
        if starts[middle] <= code_point:
            low = middle
        else:
            high = middle
    return low


@jit
def _leaf(tree: Tree, base: int) -> int:
    """The node of the 64 code points from `base` on."""
    starts, atom_of = tree[0], tree[1]
    i = _interval(starts, base)
    if i + 1 == starts.size or starts[i + 1] >= base + 64:
        return _uniform(tree, 1, atom_of[i])
    children = np.empty(64, np.int32)
    for j in range(64):
        if i + 1 < starts.size and starts[i + 1] == base + j:
            i += 1
        children[j] = atom_of[i]
    return _intern(tree, children, True)


@jit
def _uniform(tree: Tree, level: int, atom: int) -> int:
    """The node with `level` bytes to go that selects `atom` whatever follows."""
    uniform = tree[5]
    for depth in range(1, level + 1):
        if uniform[depth, atom] < 0:
            child = atom if depth == 1 else uniform[depth - 1, atom]
            uniform[depth, atom] = _intern(tree, np.full(64, child, np.int32), depth == 1)
    return uniform[level, atom]


@jit
def _middle(tree: Tree, base: int, first: int) -> int:
    """The node with two bytes to go of 4096 code points, without the children before `first`."""
    starts, atom_of = tree[0], tree[1]
    i = _interval(starts, base + (first << 6))
    whole = i + 1 == starts.size or starts[i + 1] >= base + 4096
    if whole and (atom_of[i] == 0 or first == 0):
        return _uniform(tree, 2, atom_of[i])
    children = np.zeros(64, np.int32)
    for j in range(first, 64):
        children[j] = _leaf(tree, base + (j << 6))
    return _intern(tree, children, False)


@jit
def _top(tree: Tree, base: int, first: int, past: int) -> int:
    """The node with three bytes to go, with the children from `first` to before `past`."""
    starts, atom_of = tree[0], tree[1]
    i = _interval(starts, base + (first << 12))
    whole = i + 1 == starts.size or starts[i + 1] >= base + (past << 12)
    if whole and (atom_of[i] == 0 or past - first == 64):
        return _uniform(tree, 3, atom_of[i])
    children = np.zeros(64, np.int32)
    for j in range(first, past):
        children[j] = _middle(tree, base + (j << 12), 0)
    return _intern(tree, children, False)


@jit
def _intern(tree: Tree, children: np.ndarray, leaf: bool) -> int:
    """The node with these children; node 0 if it selects nothing."""
    _, _, nodes, is_leaf, table, _, used = tree
    if not children.any():
        return 0
    key = mix(leaf)
    for child in children:
        key = mix(key + np.uint64(child))
    slot = first_slot(key, table)
    while table[slot] != 0:
        node = int(table[slot])
        if is_leaf[node] == leaf and (nodes[node] == children).all():
            return node
        slot = next_slot(slot, table)
    node = used[0]
    used[0] += 1
    table[slot], is_leaf[node] = node, leaf
    nodes[node] = children
    return node


# ---------------------------------------------------------------- bytes that act alike


@jit
def _byte_classes(nodes: np.ndarray, lead: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number by first byte: (byte_class uint8 [256], one byte of each class int32 [n_classes])."""
    byte_class, some_byte, count = np.empty(256, np.uint8), np.empty(256, np.int32), 0
    keys, silent = np.zeros(64, np.uint64), np.ones(64, np.bool_)
    for v in range(nodes.shape[0]):
        for j in range(64):
            keys[j] = mix(keys[j] + np.uint64(nodes[v, j]))
            silent[j] = silent[j] and nodes[v, j] == 0
    for b in range(256):
        c = 0
        while c < count and not _alike(nodes, lead, keys, silent, b, some_byte[c]):
            c += 1
        byte_class[b] = c
        if c == count:
            some_byte[count] = b
            count += 1
    return byte_class, some_byte[:count].copy()


@jit
def _alike(
    nodes: np.ndarray, lead: np.ndarray, keys: np.ndarray, silent: np.ndarray, a: int, b: int
) -> bool:
    """Whether two bytes lead to the same place from everywhere."""
    follows_a = 0x80 <= a < 0xC0 and not silent[a & 63]
    follows_b = 0x80 <= b < 0xC0 and not silent[b & 63]
    if lead[a] != lead[b] or follows_a != follows_b:
        return False
    if not follows_a:
        return True
    if keys[a & 63] != keys[b & 63]:
        return False
    return (nodes[:, a & 63] == nodes[:, b & 63]).all()


# ---------------------------------------------------------------- rows of the byte DFA


@jit
def _instantiate(
    trans: np.ndarray,
    nodes: np.ndarray,
    is_leaf: np.ndarray,
    lead: np.ndarray,
    some_byte: np.ndarray,
    max_bytes: int,
    watch: np.ndarray,
) -> np.ndarray:
    """One row per character state, then one per distinct (node, character state) vector.

    No rows at all if they would take more than `max_bytes`.
    """
    follow = np.flatnonzero((some_byte >= 0x80) & (some_byte < 0xC0))
    n, n_classes = trans.shape[0], some_byte.size
    rows = np.zeros((2 * n + nodes.shape[0] + 1, n_classes), np.int32)
    table, keys = np.zeros(table_size(rows.shape[0]), np.int32), np.zeros(rows.shape[0], np.uint64)
    used, seen = n, np.zeros(nodes.shape[0], np.int32)
    for q in range(1, n):
        if used + nodes.shape[0] + 1 > rows.shape[0]:
            capacity = 2 * rows.shape[0] + nodes.shape[0]
            if 4 * n_classes * (capacity + rows.shape[0]) > max_bytes:
                return rows[:0]
            rows = longer(rows.ravel(), capacity * n_classes).reshape((capacity, n_classes))
            table, keys = rehashed(table, keys, capacity), longer(keys, capacity)
        for v in range(1, nodes.shape[0]):
            if poll(watch):
                return rows[:0]
            for c in follow:
                child = nodes[v, some_byte[c] & 63]
                rows[used, c] = trans[q, child] if is_leaf[v] else seen[child]
            seen[v] = _row(rows, follow, used, keys, table)
            used = max(used, seen[v] + 1)
        for column in range(n_classes):
            first = lead[some_byte[column]]
            rows[q, column] = trans[q, first] if first >= 0 else seen[-first]
    return rows[:used]


@jit
def _row(
    rows: np.ndarray, follow: np.ndarray, used: int, keys: np.ndarray, table: np.ndarray
) -> int:
    """The state whose row equals the candidate row number `used` (which it becomes, if new)."""
    key, dead = np.uint64(0), True
    for c in follow:
        dead = dead and rows[used, c] == 0
        key = key * np.uint64(0x9E3779B97F4A7C15) + np.uint64(rows[used, c])
    if dead:
        return 0
    key = mix(key)
    slot = first_slot(key, table)
    while table[slot] != 0:
        state = int(table[slot])
        if keys[state] == key and (rows[state] == rows[used]).all():
            return state
        slot = next_slot(slot, table)
    table[slot], keys[used] = used, key
    return used


# ---------------------------------------------------------------- canonical numbering


@jit
def numbered(
    trans: np.ndarray, accepting: np.ndarray, start: int, watch: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int]:
    """(trans, accepting, start): the states within reach of `start` in breadth-first order, columns
    in order; the others go away. Dead is 0."""
    number = _breadth_first(trans, start, watch)
    table, final = _renumber(trans, accepting, number, watch)
    return table, final, number[start]


@jit
def _breadth_first(trans: np.ndarray, start: int, watch: np.ndarray) -> np.ndarray:
    """The number of each state."""
    number, queue = np.zeros(trans.shape[0], np.int32), np.empty(trans.shape[0], np.int32)
    if start == 0:
        return number
    number[start], queue[0], count, done = 1, start, 1, 0
    while done < count and not poll(watch):
        for target in trans[queue[done]]:
            if target != 0 and number[target] == 0:
                queue[count] = target
                count += 1
                number[target] = count
        done += 1
    return number


@jit
def _renumber(
    trans: np.ndarray, accepting: np.ndarray, number: np.ndarray, watch: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Rename the states; those numbered 0 go away (they are the dead state or unreachable)."""
    size = number.max() + 1
    table, final = np.zeros((size, trans.shape[1]), np.int32), np.zeros(size, np.bool_)
    for s in range(trans.shape[0]):
        if poll(watch):
            break
        if number[s] != 0:
            final[number[s]] = accepting[s]
            for c in range(trans.shape[1]):
                table[number[s], c] = number[trans[s, c]]
    return table, final
