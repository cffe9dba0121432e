"""Masks by kernels: which ids a state of the product can read, with certainty or only perhaps."""

from __future__ import annotations

import numpy as np

from bpe_automata._kernels import kernel
from bpe_automata._kernels.collapsed import Collapsed, clear_beginning, clear_group
from bpe_automata._kernels.edges import ALL, Vocabulary, edges, text_after
from bpe_automata._kernels.fewest_tokens import NEVER
from bpe_automata._kernels.fixed_set import surely_lively
from bpe_automata._kernels.hashing import slot_of
from bpe_automata._kernels.product import (
    ALIVE,
    DEAD,
    IN_VAIN,
    UNKNOWN,
    Product,
    Witnesses,
    added_step,
    configuration_key,
    intern_state_pair,
    known_status,
    quick_status,
    set_ends,
)
from bpe_automata._kernels.status import (
    NO_SET,
    ODD,
    Certificates,
    all_alive,
    needed,
    reads_alike,
    status_at,
)
from bpe_automata._kernels.text_search import reads
from bpe_automata._kernels.trie import Trie, walk
from bpe_automata._kernels.watch import poll, stopped


@kernel
def readable_ids(
    state_pair: int,
    number: int,
    alone: np.ndarray,
    collapsed: Collapsed,
    full: np.ndarray,
    certificates: Certificates,
    free_after: np.ndarray,
    bound_after: np.ndarray,
    vocabulary: Vocabulary,
    w: Product,
) -> tuple[np.ndarray, np.ndarray]:
    """The ids readable at a configuration, by whether there is a boundary at the joint before them.

    alone, collapsed: as of `edges`; full: the collapsed trie's `full_row`; certificates: what is
    known of those that its configurations need. free_after, bound_after: int32 [n_classes], the set
    after a token of each class with and without a boundary at the joint (-1: none).

    Returns (both, open): packed int32 ids that are known to lead on, as their configuration is
    ALIVE or a known id may follow them there, free ones (also added tokens), then bound ones; and
    rows (id, state pair, set, is it free) of int32 for those at a PARTLY configuration of which it
    is not known yet.
    """
    q0, a0, trie = w.memo.state[state_pair], w.memo.text_state[state_pair], vocabulary.trie
    n_words, after_sides = (len(trie.start) + 30) >> 5, (free_after, bound_after)
    tokens, states, apart = edges(
        q0, a0, w.sets.utf8_row[number], alone, w.dfa.steps, collapsed,
        vocabulary, ALL, NEVER, w.watch,
    )  # fmt: skip
    if len(states) > 0:
        both = full.copy()
        clear_beginning(apart, trie, both[:n_words])
        clear_beginning(apart, trie, both[n_words:])
        groups = _partly_groups(states, collapsed, certificates, after_sides, both, w)
    else:
        both, groups = np.zeros(2 * n_words, np.int32), np.empty(0, np.int32)
    single = _partly_tokens(tokens, after_sides, both, w)
    room = len(single)
    for item in groups:
        room += collapsed.start[(item >> 1) + 1] - collapsed.start[item >> 1]
    # Room for all: numba counts references wherever a loop replaces an array.
    open_, n_open = np.empty((room, 4), np.int32), 0
    for i in range(len(groups) + len(single)):
        if poll(w.watch):
            break
        if i < len(groups):
            group, side = groups[i] >> 1, groups[i] & 1
            q, a = states[collapsed.node[group]], collapsed.text[group]
            token_class = collapsed.token_class[group]
            ids = collapsed.ids[collapsed.start[group] : collapsed.start[group + 1]]
        else:
            item, side = single[i - len(groups)] >> 1, single[i - len(groups)] & 1
            q, a, token_class = tokens[item, 0], tokens[item, 1], tokens[item, 2]
            ids = tokens[item, 3:]
        after, p = after_sides[side][token_class], intern_state_pair(q, a, w)
        for token in ids:
            if i < len(groups) and len(apart) > 0 and apart[trie.data[trie.start[token]]]:
                continue
            # Where many ids lead to a configuration that is only PARTLY open, nearly all of them
            # are lively, and one pair shows it; the rest is left to `_constructions.relevance`.
            lively = known_lively(token, p, after, trie, w)
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
def _partly_groups(
    states: np.ndarray,
    collapsed: Collapsed,
    certificates: Certificates,
    after_sides: tuple[np.ndarray, np.ndarray],
    both: np.ndarray,
    w: Product,
) -> np.ndarray:
    """Take out of `both`, packed free and bound ids, the groups whose configurations are not ALIVE.
    Returns int32, 2 * group + side, of those whose configurations are PARTLY."""
    configurations, statuses, n_words = w.memo.configurations, w.memo.status, len(both) >> 1
    found, n = np.empty(2 * len(collapsed.node), np.int32), 0
    columns = needed(after_sides, certificates, w)
    need, holds = certificates.need, certificates.holds
    for g in range(len(collapsed.node)):
        token_class, a, q = collapsed.token_class[g], collapsed.text[g], states[collapsed.node[g]]
        column = columns[token_class]
        if a < 0 or column == NO_SET:
            continue
        if column != ODD and q != 0 and (a == 0 or reads_alike(a, certificates, w)):
            missing = np.int64(0)  # looked up here, as most groups need no more
            for word in range(need.shape[1]):
                missing |= need[column, word] & ~holds[q, word]
            if missing == 0 or all_alive(q, column, certificates, w):
                continue
        for side in range(2):
            after = after_sides[side][token_class]
            if after < 0:
                continue
            status = DEAD if q == 0 else UNKNOWN
            if q != 0 and a == 0:
                status = statuses[slot_of(configurations, configuration_key(q, after))]
            if status == UNKNOWN:
                status = status_of(q, a, after, w)
            if status == ALIVE:
                continue
            if stopped(w.watch):
                return found[:n]
            clear_group(both[side * n_words :], collapsed, g)
            if status != DEAD:
                found[n] = 2 * g + side
                n += 1
    return found[:n]


@kernel
def _partly_tokens(
    tokens: np.ndarray, after_sides: tuple[np.ndarray, np.ndarray], both: np.ndarray, w: Product
) -> np.ndarray:
    """Set in `both`, packed free and bound ids, the tokens (of `edges`) whose configurations are
    ALIVE. Returns int32, 2 * (the row in `tokens`) + side, of those whose configurations are
    PARTLY."""
    configurations, statuses, n_words = w.memo.configurations, w.memo.status, len(both) >> 1
    some, n = np.zeros(len(tokens), np.uint8), 0
    for i in range(len(tokens)):
        q, a, token_class, token = tokens[i, 0], tokens[i, 1], tokens[i, 2], tokens[i, 3]
        for side in range(2):
            after = after_sides[side][token_class]
            if after < 0:
                continue
            status = UNKNOWN
            if a == 0:  # looked up here, as most tokens need no more: a call costs as much again
                status = statuses[slot_of(configurations, configuration_key(q, after))]
            if status == UNKNOWN:
                status = status_of(q, a, after, w)
            if status == ALIVE:
                both[side * n_words + (token >> 5)] |= np.int32(1) << np.int32(token & 31)
            elif stopped(w.watch):
                return np.empty(0, np.int32)
            elif status != DEAD:
                some[i] |= 1 << side
                n += 1
    found, n = np.empty(n, np.int32), 0
    for i in range(len(some)):
        for side in range(2 if some[i] != 0 else 0):
            if some[i] >> side & 1:
                found[n] = 2 * i + side
                n += 1
    return found


@kernel
def status_of(state: int, text: int, number: int, w: Product) -> int:
    """Of the configuration at a DFA state and a state of the text automaton."""
    state_pair = intern_state_pair(state, text, w)
    status = quick_status(state, number, w) if text == 0 else UNKNOWN
    if text != 0:
        status = known_status(state_pair, number, w.memo)
    return status_at(state_pair, number, w) if status == UNKNOWN else status


@kernel
def known_lively(token: int, state_pair: int, number: int, trie: Trie, w: Product) -> int:
    """What one remembered follower shows of an id at a configuration: ALIVE, it is not dead there;
    DEAD, no id may follow it at all; UNKNOWN."""
    state, a = w.memo.state[state_pair], w.memo.text_state[state_pair]
    if number == w.fixed_set.number and a == 0:
        return ALIVE if surely_lively(token, state, w.fixed_set, w.pairs) else UNKNOWN
    key = configuration_key(token, number)
    at = witness_slot(key, w.witnesses)
    if w.witnesses.key[at] != key:
        return UNKNOWN
    n, after = w.witnesses.id[at], w.witnesses.after[at]
    if n < 0:
        return UNKNOWN if n == IN_VAIN else DEAD
    data = trie.data[trie.start[n] : trie.start[n + 1]]
    q = walk(w.dfa.steps, state, data)
    a = text_after(a, w.sets.utf8_row[number], data, w.reading.utf8, w.added.next)
    if q == 0 or a < 0 or status_at(intern_state_pair(q, a, w), after, w) != ALIVE:
        return UNKNOWN
    return ALIVE


@kernel
def witness_slot(key: int, witnesses: Witnesses) -> int:
    """Where the witness for a key belongs; the number of slots is a power of two."""
    return ((key * -7046029254386353131) >> 20) & (len(witnesses.key) - 1)


@kernel
def _read_added(state: int, added: int, bits: np.ndarray, w: Product) -> None:
    """Set the added tokens that lead on to acceptance."""
    for k in range(len(w.added.ids)):
        a, q = added_step(state, added, k, w)
        if a >= 0 and q != 0 and reads(intern_state_pair(q, a, w), 0, w):
            token = w.added.ids[k]
            bits[token >> 5] |= np.int32(1) << np.int32(token & 31)
