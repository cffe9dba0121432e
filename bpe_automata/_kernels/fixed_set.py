"""States with no dead ids, shown by one witness: a shortest accepted string for each first byte.

A tokenizer without a pretokenizer never has a boundary, so it keeps one hypothesis set, the fixed
set, and a state of the product is a DFA state. An accepted string has a canonical spelling. Its
first id n leads to acceptance, so only ids that n may not follow can be dead. Where the first ids
of these strings leave no candidate, the state is ALIVE.

The first ids are found backwards: t is the first id of  bytes(t) v  iff  the first id of v may
follow t.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata._kernels import kernel
from bpe_automata._kernels.distance import NEVER
from bpe_automata._kernels.geometry import Pairs, all_positions, breaks, exceeds, forbid, keep
from bpe_automata._kernels.links import Steps, step
from bpe_automata._kernels.references import by_reference
from bpe_automata._kernels.trie import Trie

NONE = -1
_NOT_YET, _NO_ID = 0, 1
_LONGEST = 1 << 20  # bytes of a shortest text that is spelled


@by_reference
class FixedSet(NamedTuple):
    """number: the fixed set, NONE if the tokenizer has none. Of its trie: token int32 [nodes], the
    reachable id there that keeps the set and the text automaton's state 0, or NONE; root int32
    [256], the node of each first byte, or NONE. order: uint8 [256], the bytes, sorted by how many
    ids may not stand before them, ascending. loose: bool [n_ids], ids that every id may follow.
    apart: has every byte inside a character an id of its own that may stand beside every id?
    Of the DFA, most of it never written to: distance int32 [n_states], bytes to acceptance; first
    int32 [n_states], 2 + the first id of the shortest text, _NO_ID where it has no text in the
    fixed set, _NOT_YET; step int32 [n_states], 1 + that text's first byte, or _NOT_YET; leading
    int32 [n_states, k], 1 + each of a few ids that lead on, then 0.
    """

    number: int
    trie: Trie
    token: np.ndarray
    root: np.ndarray
    order: np.ndarray
    loose: np.ndarray
    apart: bool
    distance: np.ndarray
    first: np.ndarray
    step: np.ndarray
    leading: np.ndarray


@kernel
def candidates_left(
    state: int,
    remember: bool,
    begins: np.ndarray,
    steps: Steps,
    s: FixedSet,
    p: Pairs,
) -> int:
    """Do the texts from `state` leave candidates for dead ids there? 0: none, more: some,
    NONE: no text was found, which says nothing. begins: bool [256], the first bytes of texts that
    are looked at. remember: fill in `leading`; then `begins` must hold all bytes."""
    left, last, n_leading = NONE, NONE, 0
    candidates = all_positions(len(p.before.order))
    forbidden = np.empty_like(candidates)
    for byte in s.order:
        after = step(state, byte, steps)
        if not begins[byte] or after == 0 or s.distance[after] == NEVER:
            continue
        _spell(after, steps, s, p)
        token = _first_id(byte, after, steps, s, p)
        if token in (NONE, last):
            continue
        last = token
        forbid(token, p.birth, 1, p.before, forbidden)
        if remember and exceeds(candidates, forbidden) and n_leading < s.leading.shape[1]:
            s.leading[state, n_leading] = token + 1
            n_leading += 1
        if not keep(candidates, forbidden):
            return 0
        left = 1
    return left


@kernel
def surely_lively(token: int, state: int, s: FixedSet, p: Pairs) -> bool:
    """May some id that is known to lead on from `state` follow `token`? (No is no answer.)"""
    for lead in s.leading[state]:
        if lead == 0:
            return False
        if not breaks(token, lead - 1, p):
            return True
    return False


@kernel
def _spell(state: int, steps: Steps, s: FixedSet, p: Pairs) -> None:
    """Fill in `first` and `step` along the shortest text from `state`: as many steps as its
    distance, which each makes smaller by one. A very long one is left alone."""
    path = np.empty(min(s.distance[state], _LONGEST) + 1, np.int32)
    count = 0
    while s.distance[state] > 0 and s.first[state] == _NOT_YET and count < len(path):
        path[count] = state
        count += 1
        for byte in s.order:
            after = step(state, byte, steps)
            if s.distance[after] == s.distance[state] - 1:
                s.step[state] = np.int32(byte) + 1
                break
        if s.step[state] == _NOT_YET:
            count -= 1  # no step comes nearer: what distances say is not so
            break
        state = step(state, s.step[state] - 1, steps)
    for i in range(count - 1, -1, -1):
        byte = s.step[path[i]] - 1
        after = step(path[i], byte, steps)
        s.first[path[i]] = _first_id(byte, after, steps, s, p) + 2


@kernel
def _first_id(byte: int, after: int, steps: Steps, s: FixedSet, p: Pairs) -> int:
    """The first id of `byte` and the shortest text from `after`, which is spelled; NONE: it is not
    steady. One step down the trie at a time."""
    node = s.root[byte]
    while node != NONE:
        token = s.token[node]
        if token != NONE:
            if s.distance[after] == 0:
                return token
            then = s.first[after]
            if then > _NO_ID and not breaks(token, then - 2, p):
                return token
        if s.distance[after] == 0 or s.step[after] == _NOT_YET:
            return NONE
        byte = s.step[after] - 1
        node, after = _child(node, byte, s.trie), step(after, byte, steps)
    return NONE


@kernel
def _child(node: int, byte: int, trie: Trie) -> int:
    """The node under `node` for a byte, NONE if there is none."""
    depth, child, end = trie.depth[node] + 1, node + 1, trie.skip[node]
    while child < end and trie.depth[child] == depth:
        if trie.label[child] == byte:
            return child
        child = trie.skip[child]
    return NONE
