"""Where many tokens lead from one state: `trie.walk` for each of them; and what they lead to in the
end.

Tokens come as CSR of every id's bytes, start int32 [n_ids + 1] and data uint8, beside the ids that
are asked for, int64.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata.kernels import kernel
from bpe_automata.kernels.distance import distances_by_head
from bpe_automata.kernels.hashing import grown
from bpe_automata.kernels.references import by_reference
from bpe_automata.kernels.trie import Trie
from bpe_automata.kernels.watch import poll


@by_reference
class Spelled(NamedTuple):
    """What ids may be read. kinds: int32 [nodes of the trie], 0: left out; added: int64, added
    tokens; added_from, after_added: int32 [n_states], where these are read from (0: not here), and
    what the state where they end stands for then."""

    trie: Trie
    kinds: np.ndarray
    added: np.ndarray
    added_from: np.ndarray
    after_added: np.ndarray


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
def settle_alive(
    trans: np.ndarray,
    byte_class: np.ndarray,
    alive: np.ndarray,
    open_: np.ndarray,
    spelled: Spelled,
    watch: np.ndarray,
) -> None:
    """Make those of the states `open_` (int32) alive from which tokens lead on to an alive one.

    alive: bool [n_states]. Each open state is asked once where tokens lead, and each pair of open
    states that a token joins is followed once, backwards from what is alive.
    """
    n = len(alive)
    seen, found = np.full(n, -1, np.int32), np.empty(n, np.int32)
    tails, heads, count = np.empty(64, np.int32), np.empty(64, np.int32), 0
    for state in open_:
        if poll(watch):
            return
        n_found = _leads_to(state, trans, byte_class, alive, spelled, seen, found)
        alive[state] = n_found < 0
        for k in range(n_found):
            tails, heads = grown(tails, count), grown(heads, count)
            tails[count], heads[count] = state, found[k]
            count += 1
    ptr = np.zeros(n + 2, np.int64)
    for k in range(count):
        ptr[heads[k] + 2] += 1
    ptr = ptr.cumsum()
    by_head = np.empty(count, np.int32)
    for k in range(count):
        by_head[ptr[heads[k] + 1]] = tails[k]
        ptr[heads[k] + 1] += 1
    far = distances_by_head(ptr[: n + 1].copy(), by_head, alive)
    for state in open_:
        alive[state] = far[state] >= 0


@kernel
def _leads_to(
    state: int,
    trans: np.ndarray,
    byte_class: np.ndarray,
    alive: np.ndarray,
    spelled: Spelled,
    seen: np.ndarray,
    found: np.ndarray,
) -> int:
    """-1: some token leads to an alive state; else how many states, now in `found`, tokens lead to.
    seen: int32 [n_states], scratch: for each state the last one that leads there."""
    trie, count = spelled.trie, 0
    path = np.empty(trie.deepest + 1, np.int32)
    path[0], node = state, 0
    while node < len(trie.label):
        depth = trie.depth[node]
        after = trans[path[depth - 1], byte_class[trie.label[node]]]
        if after == 0:
            node = trie.skip[node]
            continue
        path[depth] = after
        if spelled.kinds[node] != 0 and alive[after]:
            return -1
        if spelled.kinds[node] != 0 and seen[after] != state:
            seen[after], found[count] = state, after
            count += 1
        node += 1
    for token in spelled.added:
        here = spelled.added_from[state]
        for at in range(trie.start[token], trie.start[token + 1]):
            here = trans[here, byte_class[trie.data[at]]]
            if here == 0:
                break
        after = spelled.after_added[here]
        if alive[after]:
            return -1
        if after != 0 and seen[after] != state:
            seen[after], found[count] = state, after
            count += 1
    return count
