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

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bpe_automata._budget import Budget
from bpe_automata._kernels.products import instantiate
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.minimise import numbered

_BLOCKS = 0x110000 >> 6  # of 64 code points


class Tree(NamedTuple):
    """nodes: int32 [v, 64], what each byte after a node selects: an atom where is_leaf, bool [v],
    else a node of a smaller number; node 0 selects nothing. lead: int32 [256], of first bytes: an
    atom, or minus a node."""

    nodes: np.ndarray
    is_leaf: np.ndarray
    lead: np.ndarray


def byte_table(
    trans: np.ndarray,
    accepting: np.ndarray,
    start: int,
    starts: np.ndarray,
    atom_of: np.ndarray,
    budget: Budget,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """The byte DFA of a minimal, trimmed character DFA whose columns are pairwise different.

    trans: int32 [n, n_atoms]; accepting: bool [n]; start: a state; starts, atom_of: int32, the
    first code point of each interval, and its atom (surrogates must lie in the atom whose column is
    dead, atom 0).
    Returns (trans int32 [m, n_classes], byte_class uint8 [256], accepting bool [m], start). Raises
    BudgetExceededError.
    """
    given = (np.asarray(column, np.int32).tobytes() for column in (starts, atom_of))
    tree, byte_class, some_byte = _read(*given)
    table = instantiate(trans, *tree, some_byte, budget)
    final = np.zeros(len(table), np.bool_)
    final[: accepting.size] = accepting
    table, final, start = numbered(table, final, start)
    return table, byte_class, final, start


@lru_cache(maxsize=64)
def _read(starts: bytes, atom_of: bytes) -> tuple[Tree, np.ndarray, np.ndarray]:
    """The tree, and its `_byte_classes`: nobody writes to these."""
    tree = code_points(np.frombuffer(starts, np.int32), np.frombuffer(atom_of, np.int32))
    return tree, *_byte_classes(tree)


def code_points(starts: np.ndarray, atom_of: np.ndarray) -> Tree:
    """The tree of the UTF-8 of all code points. No overlong form leads anywhere."""
    nodes, numbers = [np.zeros(64, np.int32)], [dict[bytes, int](), dict[bytes, int]()]

    def intern(children: np.ndarray, is_leaf: bool) -> int:
        memo = numbers[is_leaf]
        key = children.tobytes()
        if key not in memo:
            memo[key] = len(nodes) if children.any() else 0
            if memo[key]:
                nodes.append(children)
                leaves.append(is_leaf)
        return memo[key]

    leaves = [False]
    mixed = np.unique(starts[starts & 63 != 0] >> 6)  # blocks of more than one atom
    mixed = mixed[mixed > 1]
    first = (starts + 63) >> 6  # the first block that begins in each interval
    atom = np.repeat(atom_of, np.diff(first, append=_BLOCKS))  # of the block's first code point
    atom[:2] = atom[mixed] = 0  # ASCII has no continuation bytes
    uniform = np.zeros(atom.max() + 1, np.int32)
    for one in np.flatnonzero(np.bincount(atom)).tolist():
        uniform[one] = intern(np.full(64, one, np.int32), True)
    leaf = uniform[atom]
    points = (mixed[:, None] << 6) + np.arange(64)
    rows = atom_of[np.searchsorted(starts, points, "right") - 1].astype(np.int32)
    leaf[mixed] = [intern(row, True) for row in rows]
    lead = np.zeros(256, np.int32)
    lead[:0x80] = atom_of[np.searchsorted(starts, np.arange(0x80), "right") - 1]
    lead[0xC2:0xE0] = -leaf[2:32]
    two = leaf.reshape(-1, 64).copy()
    two[0, :32] = 0  # overlong
    middle = np.array([intern(row, False) for row in two], np.int32)
    lead[0xE0:0xF0] = -middle[:16]
    three = np.zeros((5, 64), np.int32)
    three.reshape(-1)[: len(middle)] = middle
    three[0, :16] = 0  # overlong
    lead[0xF0:0xF5] = [-intern(row, False) for row in three]
    return Tree(np.array(nodes), np.array(leaves), lead)


def _byte_classes(tree: Tree) -> tuple[np.ndarray, np.ndarray]:
    """Bytes that lead to the same state from every state, numbered by the first of them:
    (byte_class uint8 [256], one byte of each class int32 [n_classes])."""
    selected, classes = np.ascontiguousarray(tree.nodes.T), dict[tuple[int, bytes], int]()
    byte_class, some_byte = np.empty(256, np.uint8), list[int]()
    for byte, lead in enumerate(tree.lead.tolist()):
        follows = 0x80 <= byte < 0xC0 and selected[byte & 63].any()
        key = lead, selected[byte & 63].tobytes() if follows else b""
        if key not in classes:
            classes[key] = len(classes)
            some_byte.append(byte)
        byte_class[byte] = classes[key]
    return byte_class, np.array(some_byte, np.int32)


def bytes_to_go(dfa: ByteDFA) -> np.ndarray:
    """int8 [n_states]: bytes that the character needs which has begun at each state. dfa: trimmed,
    of well-formed UTF-8."""
    inside = dfa.trans[:, np.unique(dfa.byte_class[0x80:0xC0])].max(axis=1)  # the state after one
    missing = np.zeros(dfa.n_states, np.int8)
    for _ in range(3):
        missing = np.where(inside > 0, 1 + missing[inside], 0).astype(np.int8)
    return missing
