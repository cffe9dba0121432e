"""Where many tokens lead from one state: `trie.walk` and the text automaton, for each of them.

Tokens come as CSR of every id's bytes, start int32 [n_ids + 1] and data uint8, beside the ids that
are asked for, int64.
"""

from __future__ import annotations

import numpy as np

from bpe_automata.kernels import kernel


@kernel
def states_after(
    trans: np.ndarray,
    byte_class: np.ndarray,
    state: int,
    start: np.ndarray,
    data: np.ndarray,
    tokens: np.ndarray,
) -> np.ndarray:
    """int32: the byte DFA's state after each token; 0 (dead) stays 0."""
    found = np.empty(len(tokens), np.int32)
    for k in range(len(tokens)):
        here = state
        for at in range(start[tokens[k]], start[tokens[k] + 1]):
            here = trans[here, byte_class[data[at]]]
            if here == 0:
                break
        found[k] = here
    return found


@kernel
def texts_after(
    utf8: np.ndarray,
    text_next: np.ndarray,
    text: int,
    row: int,
    start: np.ndarray,
    data: np.ndarray,
    tokens: np.ndarray,
) -> np.ndarray:
    """int32: the text automaton's state after each token, -1 where no text goes on so. `row`: the
    UTF-8 row of the character that is being read."""
    found = np.empty(len(tokens), np.int32)
    for k in range(len(tokens)):
        here, entry = text, row
        for at in range(start[tokens[k]], start[tokens[k] + 1]):
            entry = utf8[max(entry, 0), data[at]]
            if entry < -1:
                here = text_next[here, -2 - entry]
            if entry == -1 or here < 0:
                here = -1
                break
        found[k] = here
    return found
