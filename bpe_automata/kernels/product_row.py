"""The row of a node: which ids can be read there, and where that is settled at once."""

from __future__ import annotations

from typing import NamedTuple

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
from bpe_automata.kernels.collapsed import (
    Collapsed,
    beginnings,
    clear_below,
    clear_group,
    states_after,
)
from bpe_automata.kernels.growing import grown_rows
from bpe_automata.kernels.hashing import look_up, slot_of
from bpe_automata.kernels.node_status import node_status
from bpe_automata.kernels.references import by_reference
from bpe_automata.kernels.steady import surely_lively
from bpe_automata.kernels.text_search import reads
from bpe_automata.kernels.trie import Trie, walk
from bpe_automata.kernels.watch import poll
from bpe_automata.kernels.world import (
    ALIVE,
    DEAD,
    IN_VAIN,
    UNKNOWN,
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

_TO_BE_READ = -2  # the token's text must be read to know the state after it


@by_reference
class Nodes(NamedTuple):
    """What each node of the trie stands for, int32 [nodes]: kind, the token's class (0: no token
    that can be read); text, state of the text automaton after the token from state 0 (-1: none);
    first, the atom of its first character (-1: it begins with a part of one)."""

    kind: np.ndarray
    text: np.ndarray
    first: np.ndarray


@kernel
def product_row(
    place: int,
    number: int,
    deepest: int,
    trie: Trie,
    nodes: Nodes,
    collapsed: Collapsed,
    full: np.ndarray,
    certificates: Certificates,
    free_after: np.ndarray,
    bound_after: np.ndarray,
    w: World,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The ids readable at a node, by whether there is a boundary at the joint before them; only
    those of at most `deepest` bytes, and added tokens only if it covers all of the trie.

    collapsed: the trie for a region that the DFA state is in, see `kernels.collapsed`, or nothing;
    full: its `full_row`; certificates: what is known of those that its nodes need.
    free_after, bound_after: int32 [n_classes], the set after a token of each class with and without
    a boundary at the joint (-1: none).

    Returns (free, bound, open): packed int32 ids that are known to lead on, as their node is ALIVE
    or a known id may follow them there (added tokens are free ones); and rows (id, place, set, is
    it free) of int32 for those at a PARTLY node of which it is not known yet.
    """
    q0, a0, row0 = w.memo.state[place], w.memo.added[place], w.sets.row[number]
    n_words = (len(trie.start) + 30) >> 5
    both, groups, slow, apart = _known_row(
        place, number, deepest, trie, nodes, collapsed, full, certificates, free_after,
        bound_after, w,
    )  # fmt: skip
    room = len(slow)
    for i in range(len(groups)):
        room += collapsed.start[groups[i, 0] + 1] - collapsed.start[groups[i, 0]]
    # Room for all: numba counts references wherever a loop replaces an array.
    open_, n_open, known = np.empty((room, 4), np.int32), 0, at_once(w)
    for i in range(len(groups) + len(slow)):
        if poll(w.watch):
            break
        if i < len(groups):
            group, q, side, after, a = groups[i]
            ids = collapsed.ids[collapsed.start[group] : collapsed.start[group + 1]]
        else:
            node, q, side, after, a = slow[i - len(groups)]
            ids = trie.token[node : node + 1]
            if a == _TO_BE_READ:
                data = trie.data[trie.start[ids[0]] : trie.start[ids[0] + 1]]
                a = after_text(a0, row0, data, w.reading.utf8, w.added.next)
        if a < 0:
            continue
        # Looked up before it is asked for: a call hands over all of `w`.
        p = q if a == 0 else intern_place(q, a, w)
        status = status_at_once(q, after, known) if a == 0 else known_status(p, after, w.memo)
        if status == UNKNOWN:
            status = node_status(p, after, w)
        if status == DEAD:
            continue
        for token in ids:
            if i < len(groups) and apart[trie.data[trie.start[token]]]:
                continue
            # Where many ids lead to a node that is only PARTLY open, nearly all of them are lively,
            # and one pair shows it; the rest is left to `constructions.relevance`.
            lively = ALIVE if status == ALIVE else _known_lively(token, p, after, trie, w)
            if lively == ALIVE:
                both[side * n_words + (token >> 5)] |= np.int32(1) << np.int32(token & 31)
            if lively != UNKNOWN:
                continue
            open_[n_open, 0], open_[n_open, 1], open_[n_open, 2] = token, p, after
            open_[n_open, 3] = 1 - side
            n_open += 1
    if deepest == trie.deepest and set_ends(number, w):
        _read_added(q0, a0, both, w)
    return both[:n_words].copy(), both[n_words:].copy(), open_[:n_open].copy()


@kernel
def _known_row(
    place: int,
    number: int,
    deepest: int,
    trie: Trie,
    nodes: Nodes,
    collapsed: Collapsed,
    full: np.ndarray,
    certificates: Certificates,
    free_after: np.ndarray,
    bound_after: np.ndarray,
    w: World,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """By the walk that is shorter: (the packed ids, free ones, then bound ones, whose nodes are
    known to be ALIVE; rows as in `_walk_row` of the groups and of the tokens of which it is not
    known; bool [256], the first bytes of tokens that are no part of their groups)."""
    q0, a0, row0 = w.memo.state[place], w.memo.added[place], w.sets.row[number]
    # Only a first character that state a0 of the text automaton reads otherwise than state 0 does
    # makes a token lead elsewhere than from state 0.
    otherwise = w.added.next[a0] != w.added.next[0]
    n_words, slow, n_slow = (len(trie.start) + 30) >> 5, np.empty((256, 5), np.int32), 0
    after_sides, path = (free_after, bound_after), np.empty(trie.deepest + 1, np.int32)
    path[0], worth = q0, False
    begin, apart = np.empty(0, np.int32), np.zeros(256, np.bool_)
    if len(collapsed.label) > 0 and row0 == 0 and deepest == trie.deepest:
        begin, apart, worth = beginnings(q0, collapsed, w.dfa.trans, w.dfa.byte_class, trie)
    if not worth:
        both = np.zeros(2 * n_words, np.int32)
        slow, n_slow = _walk_row(
            0, len(trie.label), path, a0 == 0, row0 == 0, otherwise, deepest, trie, nodes,
            after_sides, both, slow, n_slow, w,
        )  # fmt: skip
        return both, slow[:0], slow[:n_slow], apart
    both = full.copy()
    groups, slow, n_slow = _walk_collapsed(
        path, begin, a0 == 0, otherwise, trie, nodes, collapsed, certificates, after_sides, both,
        slow, w,
    )  # fmt: skip
    n_slow = _without(apart, slow[:n_slow], trie)
    node = 0
    while node < len(trie.label):
        if apart[trie.label[node]]:
            for side in range(2):
                clear_below(node, trie, both[side * n_words :])
            slow, n_slow = _walk_row(
                node, trie.skip[node], path, a0 == 0, True, otherwise, deepest, trie, nodes,
                after_sides, both, slow, n_slow, w,
            )  # fmt: skip
        node = trie.skip[node]
    return both, groups, slow[:n_slow], apart


@kernel
def _without(apart: np.ndarray, slow: np.ndarray, trie: Trie) -> int:
    """Leave out the rows of tokens that begin with a byte apart: how many are left?"""
    count = 0
    for i in range(len(slow)):
        if not apart[trie.data[trie.start[trie.token[slow[i, 0]]]]]:
            slow[count] = slow[i]
            count += 1
    return count


@kernel
def _walk_row(
    node: int,
    end: int,
    path: np.ndarray,
    clean: bool,
    at_character: bool,
    otherwise: np.ndarray,
    deepest: int,
    trie: Trie,
    nodes: Nodes,
    after_sides: tuple[np.ndarray, np.ndarray],
    both: np.ndarray,
    slow: np.ndarray,
    n_slow: int,
    w: World,
) -> tuple[np.ndarray, int]:
    """A walk over a part of the trie, `path` being the DFA states above it. What is known to be
    ALIVE is set at once in `both`, the packed ids (free ones, then bound ones); the rest is
    appended to `slow`, as rows (node, DFA state, is it bound, set, state of the text automaton or
    _TO_BE_READ). `clean`: the text automaton is in state 0 at the beginning; `at_character`: that
    is at a character's end.
    """
    while node < end:  # each turn but the last doubles the rows
        node, n_slow = _walk_on(
            node, end, path, clean, at_character, otherwise, deepest, trie, nodes, after_sides,
            both, slow, n_slow, w,
        )  # fmt: skip
        if node < end:
            slow = grown_rows(slow)
    return slow, n_slow


@kernel
def _walk_on(
    node: int,
    end: int,
    path: np.ndarray,
    clean: bool,
    at_character: bool,
    otherwise: np.ndarray,
    deepest: int,
    trie: Trie,
    nodes: Nodes,
    after_sides: tuple[np.ndarray, np.ndarray],
    both: np.ndarray,
    slow: np.ndarray,
    n_slow: int,
    w: World,
) -> tuple[int, int]:
    """The hot loop: as far as there is room for rows, two a node. (It replaces no array: numba
    would count references to it at each node.) Returns (the node to go on with, rows)."""
    trans, byte_class, n_text_states = w.dfa.trans, w.dfa.byte_class, len(w.added.next)
    keys, values, known_nodes, known = w.memo.keys, w.memo.values, w.memo.nodes, w.memo.status
    at_once_ = at_once(w)
    n_words = (len(trie.start) + 30) >> 5
    label, depths, skip, tokens = trie.label, trie.depth, trie.skip, trie.token
    kinds, texts, firsts = nodes.kind, nodes.text, nodes.first
    while node < end and n_slow + 2 <= len(slow):
        depth, here = depths[node], node
        q = trans[path[depth - 1], byte_class[label[node]]]
        if q == 0:
            node = skip[node]
            continue
        path[depth] = q
        kind, token, a, first = kinds[node], tokens[node], texts[node], firsts[node]
        node = skip[node] if depth == deepest else node + 1
        if kind == 0:
            continue
        if not at_character or (not clean and (first < 0 or otherwise[first])):
            a = _TO_BE_READ
        elif a < 0:
            continue
        p = q
        if a > 0:
            p = look_up(keys, values, np.int64(q) * n_text_states + a)
        for side in range(2):
            after = after_sides[side][kind]
            if after < 0:
                continue
            status = UNKNOWN
            if a >= 0 and p >= 0:
                status = known[slot_of(known_nodes, node_key(p, after))]
            if status == UNKNOWN and a == 0:
                status = status_at_once(q, after, at_once_)
            if status == ALIVE:
                both[side * n_words + (token >> 5)] |= np.int32(1) << np.int32(token & 31)
            elif status != DEAD:
                slow[n_slow, 0], slow[n_slow, 1], slow[n_slow, 2] = here, q, side
                slow[n_slow, 3], slow[n_slow, 4] = after, a
                n_slow += 1
    return node, n_slow


@kernel
def _walk_collapsed(
    path: np.ndarray,
    begin: np.ndarray,
    clean: bool,
    otherwise: np.ndarray,
    trie: Trie,
    nodes: Nodes,
    collapsed: Collapsed,
    certificates: Certificates,
    after_sides: tuple[np.ndarray, np.ndarray],
    both: np.ndarray,
    slow: np.ndarray,
    w: World,
) -> tuple[np.ndarray, np.ndarray, int]:
    """The same over the collapsed trie, from a character's end: what is not known to be ALIVE is
    taken out of `both`, the full row. Tokens whose first character the text automaton reads
    otherwise than in state 0 are to be apart. Returns (rows as in `slow`, of groups; `slow` and how
    many there are, from leaving bytes on)."""
    keys, values, known_nodes, known = w.memo.keys, w.memo.values, w.memo.nodes, w.memo.status
    at_once_, n_text_states = at_once(w), len(w.added.next)
    n_words, n_slow = (len(trie.start) + 30) >> 5, 0
    groups, n_groups = np.empty((2 * len(collapsed.node), 5), np.int32), 0
    states = states_after(path[0], begin, collapsed, w.dfa.trans, w.dfa.byte_class)
    call, need, rows = needed(after_sides, certificates, w)
    at, seen = certificates.at, certificates.seen
    for g in range(len(collapsed.node)):
        kind, a, q = collapsed.kind[g], collapsed.text[g], states[collapsed.node[g]]
        row = rows[kind]
        if a < 0 or row == NO_SET:
            continue
        if row != ODD and q != 0 and (a == 0 or reads_alike(a, certificates, w)):
            k = at[q]  # looked up here, as most groups need no more: a call costs as much again
            if k >= 0 and seen[k, row] == call:
                continue
            if all_alive(q, row, need, certificates, w):
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
                groups[n_groups, 0], groups[n_groups, 1], groups[n_groups, 2] = g, q, side
                groups[n_groups, 3], groups[n_groups, 4] = after, a
                n_groups += 1
    for i in range(len(collapsed.leaving)):
        node, q = collapsed.leaving[i], states[collapsed.left_at[i]]
        if q == 0:
            continue
        path[trie.depth[node] - 1] = q
        slow, n_slow = _walk_row(
            node, trie.skip[node], path, clean, True, otherwise, trie.deepest, trie, nodes,
            after_sides, both, slow, n_slow, w,
        )  # fmt: skip
    return groups[:n_groups], slow, n_slow


@kernel
def _known_lively(token: int, place: int, number: int, trie: Trie, w: World) -> int:
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
    a = after_text(a, w.sets.row[number], data, w.reading.utf8, w.added.next)
    if q == 0 or a < 0 or node_status(intern_place(q, a, w), after, w) != ALIVE:
        return UNKNOWN
    return ALIVE


@kernel
def witness_slot(key: int, witnesses: Witnesses) -> int:
    """Where the witness for a key belongs; the number of slots is a power of two."""
    return ((key * -7046029254386353131) >> 20) & (len(witnesses.key) - 1)


@kernel
def after_text(
    state: int, row: int, data: np.ndarray, utf8: np.ndarray, text_next: np.ndarray
) -> int:
    """State of the text automaton after these bytes, -1 where no text goes on so."""
    for byte in data:
        entry = utf8[row, byte]
        if entry == -1:
            return -1
        if entry < -1:
            state = text_next[state, -2 - entry]
            if state < 0:
                return -1
            entry = 0
        row = entry
    return state


@kernel
def _read_added(state: int, added: int, bits: np.ndarray, w: World) -> None:
    """Set the added tokens that lead on to acceptance."""
    for k in range(len(w.added.ids)):
        a, q = added_step(state, added, k, w)
        if a >= 0 and q != 0 and reads(intern_place(q, a, w), 0, w):
            token = w.added.ids[k]
            bits[token >> 5] |= np.int32(1) << np.int32(token & 31)
