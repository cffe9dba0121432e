"""The row of a DFA state in the lift: the ids whose bytes lead to one of some states."""

from __future__ import annotations

import numpy as np

from bpe_automata.kernels import kernel
from bpe_automata.kernels.collapsed import Collapsed, clear_beginning, clear_group
from bpe_automata.kernels.edges import ALL, Vocabulary, edges
from bpe_automata.kernels.fewest_tokens import NEVER


@kernel
def lift_row(
    state: int,
    alone: np.ndarray,
    trans: np.ndarray,
    byte_class: np.ndarray,
    alive: np.ndarray,
    collapsed: Collapsed,
    full: np.ndarray,
    vocabulary: Vocabulary,
    watch: np.ndarray,
) -> np.ndarray:
    """Packed int32 ids of the trie's tokens that lead from `state` to an alive state.

    alive: bool [n_states]; the dead state 0 is not alive. full: the collapsed trie's `full_row`, if
    there is one; the other arguments as of `edges`, over the text automaton of one state.
    """
    trie = vocabulary.trie
    tokens, states, apart = edges(
        state, 0, 0, alone, trans, byte_class, collapsed, vocabulary, ALL, NEVER, watch
    )
    bits = np.zeros((len(trie.start) + 30) >> 5, np.int32)
    if len(states) > 0:
        bits[:] = full[: len(bits)]
        for group in range(len(collapsed.node)):
            if not alive[states[collapsed.node[group]]]:
                clear_group(bits, collapsed, group)
        clear_beginning(apart, trie, bits)
    for i in range(len(tokens)):
        if alive[tokens[i, 0]]:
            token = tokens[i, 3]
            bits[token >> 5] |= np.int32(1) << np.int32(token & 31)
    return bits
