"""The row of a node: which ids can be read there, and where that is settled at once."""

from __future__ import annotations

import numpy as np

from bpe_automata.kernels import kernel
from bpe_automata.kernels.certificates import (
    NO_SET,
    ODD,
    Certificates,
    all_alive,
    needed,
    reads_alike,
)
from bpe_automata.kernels.collapsed import Collapsed, clear_beginning, clear_group
from bpe_automata.kernels.edges import ALL, Vocabulary, edges, text_after
from bpe_automata.kernels.fewest_tokens import NEVER
from bpe_automata.kernels.hashing import look_up, slot_of
from bpe_automata.kernels.node_status import node_status
from bpe_automata.kernels.steady import surely_lively
from bpe_automata.kernels.text_search import reads
from bpe_automata.kernels.trie import Trie, walk
from bpe_automata.kernels.watch import poll
from bpe_automata.kernels.world import (
    ALIVE,
    DEAD,
    IN_VAIN,
    UNKNOWN,
    AtOnce,
    Memo,
    Witnesses,
    World,
    added_step,
    at_once,
    intern_place,
    known_status,
    node_key,
    set_ends,
    status_at_once,
)


@kernel
def product_row(
    place: int,
    number: int,
    alone: np.ndarray,
    collapsed: Collapsed,
    full: np.ndarray,
    certificates: Certificates,
    free_after: np.ndarray,
    bound_after: np.ndarray,
    vocabulary: Vocabulary,
    w: World,
) -> tuple[np.ndarray, np.ndarray]:
    """The ids readable at a node, by whether there is a boundary at the joint before them.

    alone, collapsed: as of `edges`; full: the collapsed trie's `full_row`; certificates: what
    is known of those that its nodes need. free_after, bound_after: int32 [n_classes], the set after
    a token of each class with and without a boundary at the joint (-1: none).

    Returns (both, open): packed int32 ids that are known to lead on, as their node is ALIVE or a
    known id may follow them there, free ones (also added tokens), then bound ones; and rows (id,
    place, set, is it free) of int32 for those at a PARTLY node of which it is not known yet.
    """
    q0, a0, trie = w.memo.state[place], w.memo.added[place], vocabulary.trie
    n_words, after_sides = (len(trie.start) + 30) >> 5, (free_after, bound_after)
    tokens, states, apart = edges(
        q0, a0, w.sets.row[number], alone, w.dfa.trans, w.dfa.byte_class, collapsed, vocabulary,
        ALL, NEVER, w.watch,
    )  # fmt: skip
    if len(states) > 0:
        both = full.copy()
        clear_beginning(apart, trie, both[:n_words])
        clear_beginning(apart, trie, both[n_words:])
        groups = _open_groups(states, collapsed, certificates, after_sides, both, w)
    else:
        both, groups = np.zeros(2 * n_words, np.int32), np.empty(0, np.int32)
    slow = _open_tokens(tokens, after_sides, both, at_once(w), w.memo)
    room = len(slow)
    for item in groups:
        room += collapsed.start[(item >> 1) + 1] - collapsed.start[item >> 1]
    # Room for all: numba counts references wherever a loop replaces an array.
    open_, n_open, known = np.empty((room, 4), np.int32), 0, at_once(w)
    for i in range(len(groups) + len(slow)):
        if poll(w.watch):
            break
        if i < len(groups):
            group, side = groups[i] >> 1, groups[i] & 1
            q, a, kind = states[collapsed.node[group]], collapsed.text[group], collapsed.kind[group]
            ids = collapsed.ids[collapsed.start[group] : collapsed.start[group + 1]]
        else:
            item, side = slow[i - len(groups)] >> 1, slow[i - len(groups)] & 1
            q, a, kind = tokens[item, 0], tokens[item, 1], tokens[item, 2]
            ids = tokens[item, 3:]
        after = after_sides[side][kind]
        # Looked up before it is asked for: a call hands over all of `w`.
        p = q if a == 0 else intern_place(q, a, w)
        status = status_at_once(q, after, known) if a == 0 else known_status(p, after, w.memo)
        if status == UNKNOWN:
            status = node_status(p, after, w)
        if status == DEAD:
            continue
        for token in ids:
            if i < len(groups) and len(apart) > 0 and apart[trie.data[trie.start[token]]]:
                continue
            # Where many ids lead to a node that is only PARTLY open, nearly all of them are lively,
            # and one pair shows it; the rest is left to `constructions.relevance`.
            lively = ALIVE if status == ALIVE else known_lively(token, p, after, trie, w)
            if lively == ALIVE:
                both[side * n_words + (token >> 5)] |= np.int32(1) << np.int32(token & 31)
            if lively != UNKNOWN:
                continue
            open_[n_open, 0], open_[n_open, 1], open_[n_open, 2] = token, p, after
            open_[n_open, 3] = 1 - side
            n_open += 1
    if set_ends(number, w):
        _read_added(q0, a0, both, w)
    return both, open_[:n_open].copy()


@kernel
def _open_groups(
    states: np.ndarray,
    collapsed: Collapsed,
    certificates: Certificates,
    after_sides: tuple[np.ndarray, np.ndarray],
    both: np.ndarray,
    w: World,
) -> np.ndarray:
    """Take out of `both`, packed free and bound ids, the groups whose nodes are not known to be
    ALIVE. Returns int32, 2 * group + side, of those that may be."""
    keys, values, known_nodes, known = w.memo.keys, w.memo.values, w.memo.nodes, w.memo.status
    at_once_, n_text_states = at_once(w), len(w.added.next)
    n_words, found, n = len(both) >> 1, np.empty(2 * len(collapsed.node), np.int32), 0
    call, need, columns = needed(after_sides, certificates, w)
    at, seen = certificates.at, certificates.seen
    for g in range(len(collapsed.node)):
        kind, a, q = collapsed.kind[g], collapsed.text[g], states[collapsed.node[g]]
        column = columns[kind]
        if a < 0 or column == NO_SET:
            continue
        if column != ODD and q != 0 and (a == 0 or reads_alike(a, certificates, w)):
            k = at[q]  # looked up here, as most groups need no more: a call costs as much again
            if k >= 0 and seen[k, column] == call:
                continue
            if all_alive(q, column, need, certificates, w):
                continue
        p = q
        if a > 0 and q != 0:
            p = look_up(keys, values, np.int64(q) * n_text_states + a)
        for side in range(2):
            after = after_sides[side][kind]
            if after < 0:
                continue
            status = DEAD if q == 0 else UNKNOWN
            if p > 0:
                status = known[slot_of(known_nodes, node_key(p, after))]
            if status == UNKNOWN and a == 0:
                status = status_at_once(q, after, at_once_)
            if status == ALIVE:
                continue
            clear_group(both[side * n_words :], collapsed, g)
            if status != DEAD:
                found[n] = 2 * g + side
                n += 1
    return found[:n]


@kernel
def _open_tokens(
    tokens: np.ndarray,
    after_sides: tuple[np.ndarray, np.ndarray],
    both: np.ndarray,
    at_once_: AtOnce,
    memo: Memo,
) -> np.ndarray:
    """Set in `both`, packed free and bound ids, the tokens (of `edges`) whose nodes are known to be
    ALIVE. Returns int32, 2 * (the row in `tokens`) + side, of those that may be."""
    keys, values, known_nodes, known = memo.keys, memo.values, memo.nodes, memo.status
    n_text_states, n_words = len(at_once_.text_next), len(both) >> 1
    found, n = np.empty(2 * len(tokens), np.int32), 0
    for i in range(len(tokens)):
        q, a, kind, token = tokens[i, 0], tokens[i, 1], tokens[i, 2], tokens[i, 3]
        p = q if a == 0 else look_up(keys, values, np.int64(q) * n_text_states + a)
        for side in range(2):
            after = after_sides[side][kind]
            if after < 0:
                continue
            status = UNKNOWN
            if p >= 0:
                status = known[slot_of(known_nodes, node_key(p, after))]
            if status == UNKNOWN and a == 0:
                status = status_at_once(q, after, at_once_)
            if status == ALIVE:
                both[side * n_words + (token >> 5)] |= np.int32(1) << np.int32(token & 31)
            elif status != DEAD:
                found[n] = 2 * i + side
                n += 1
    return found[:n]


@kernel
def known_lively(token: int, place: int, number: int, trie: Trie, w: World) -> int:
    """What one remembered follower shows of an id at a node: ALIVE, it is not dead there; DEAD, no
    id may follow it at all; UNKNOWN."""
    state, a = w.memo.state[place], w.memo.added[place]
    if number == w.steady.number and a == 0:
        return ALIVE if surely_lively(token, state, w.steady, w.pairs) else UNKNOWN
    key = node_key(token, number)
    at = witness_slot(key, w.witnesses)
    if w.witnesses.key[at] != key:
        return UNKNOWN
    n, after = w.witnesses.id[at], w.witnesses.after[at]
    if n < 0:
        return UNKNOWN if n == IN_VAIN else DEAD
    data = trie.data[trie.start[n] : trie.start[n + 1]]
    q = walk(w.dfa.trans, w.dfa.byte_class, state, data)
    a = text_after(a, w.sets.row[number], data, w.reading.utf8, w.added.next)
    if q == 0 or a < 0 or node_status(intern_place(q, a, w), after, w) != ALIVE:
        return UNKNOWN
    return ALIVE


@kernel
def witness_slot(key: int, witnesses: Witnesses) -> int:
    """Where the witness for a key belongs; the number of slots is a power of two."""
    return ((key * -7046029254386353131) >> 20) & (len(witnesses.key) - 1)


@kernel
def _read_added(state: int, added: int, bits: np.ndarray, w: World) -> None:
    """Set the added tokens that lead on to acceptance."""
    for k in range(len(w.added.ids)):
        a, q = added_step(state, added, k, w)
        if a >= 0 and q != 0 and reads(intern_place(q, a, w), 0, w):
            token = w.added.ids[k]
            bits[token >> 5] |= np.int32(1) << np.int32(token & 31)
