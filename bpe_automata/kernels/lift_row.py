"""The row of a DFA state in the lift: the ids whose bytes lead to one of some states."""

from __future__ import annotations

import numpy as np

from bpe_automata.kernels import kernel
from bpe_automata.kernels.collapsed import (
    Collapsed,
    beginnings,
    clear_below,
    clear_group,
    states_after,
)
from bpe_automata.kernels.trie import Trie


@kernel
def lift_row(
    trie: Trie,
    collapsed: Collapsed,
    full: np.ndarray,
    trans: np.ndarray,
    byte_class: np.ndarray,
    alive: np.ndarray,
    state: int,
) -> np.ndarray:
    """Packed int32 ids of the trie's tokens that lead from `state` to an alive state.

    collapsed: the trie for a region that the state is in, see `kernels.collapsed`, or nothing;
    full: its `full_row`, if there is one.
    alive: bool [n_states]; the dead state 0 is not alive.
    """
    n_ids = len(trie.start) - 1
    bits = np.zeros((n_ids + 31) >> 5, np.int32)
    path = np.empty(trie.deepest + 1, np.int32)
    path[0] = state
    worth, begin, apart = False, np.empty(0, np.int32), np.empty(0, np.bool_)
    if len(collapsed.label) > 0:
        begin, apart, worth = beginnings(state, collapsed, trans, byte_class, trie)
    if not worth:
        _walk(0, len(trie.label), path, trie, trans, byte_class, alive, bits)
        return bits
    bits[:] = full[: len(bits)]
    states = states_after(state, begin, collapsed, trans, byte_class)
    for group in range(len(collapsed.node)):
        if not alive[states[collapsed.node[group]]]:
            clear_group(bits, collapsed, group)
    for i in range(len(collapsed.leaving)):
        node, q = collapsed.leaving[i], states[collapsed.left_at[i]]
        if q == 0:
            continue
        path[trie.depth[node] - 1] = q
        _walk(node, trie.skip[node], path, trie, trans, byte_class, alive, bits)
    node = 0
    while node < len(trie.label):
        if apart[trie.label[node]]:
            clear_below(node, trie, bits)
            _walk(node, trie.skip[node], path, trie, trans, byte_class, alive, bits)
        node = trie.skip[node]
    return bits


@kernel
def _walk(
    node: int,
    end: int,
    path: np.ndarray,
    trie: Trie,
    trans: np.ndarray,
    byte_class: np.ndarray,
    alive: np.ndarray,
    bits: np.ndarray,
) -> None:
    """Set the ids of a part of the trie, `path` being the states above it."""
    while node < end:
        depth = trie.depth[node]
        after = trans[path[depth - 1], byte_class[trie.label[node]]]
        if after == 0:
            node = trie.skip[node]
            continue
        path[depth] = after
        token = trie.token[node]
        if token >= 0 and alive[after]:
            bits[token >> 5] |= np.int32(1) << np.int32(token & 31)
        node += 1
