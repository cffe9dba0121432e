"""The ids that lead on from a configuration where no boundary can come, for `_kernels.dead_sets`;
and one among them that may follow an id, its witness."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata._kernels import kernel
from bpe_automata._kernels.collapsed import Collapsed
from bpe_automata._kernels.edges import Vocabulary, edges, text_after
from bpe_automata._kernels.fewest_tokens import NEVER
from bpe_automata._kernels.geometry import (
    ForbiddenSets,
    forbid_after,
    holds,
    keep,
    listed,
    placed,
    take_out,
    which_follow,
)
from bpe_automata._kernels.hashing import EMPTY, slot_of
from bpe_automata._kernels.links import known_step
from bpe_automata._kernels.masks import known_lively, status_of, witness_slot
from bpe_automata._kernels.product import (
    ALIVE,
    DEAD,
    IN_VAIN,
    PARTLY,
    UNKNOWN,
    Product,
    configuration_key,
    intern_state_pair,
    key_number,
    key_state_pair,
)
from bpe_automata._kernels.references import by_reference
from bpe_automata._kernels.settled import UNSETTLED, Settled, lacks, settled_at
from bpe_automata._kernels.status import status_at
from bpe_automata._kernels.trie import walk
from bpe_automata._kernels.watch import poll, stopped

_MUCH = 16  # bytes: a state that reads so many, or more, reads much
SHALLOW = 2  # bytes: where a state reads much, ids of at most this length are looked at first
_MOST_LOOKED_FOR = 16  # ids that lead to one configuration, each of which gets its own search
_MOST_LOOKED_FOR_LONG = 2  # the same, where the state reads much and long ids are to be searched
_MOST_OPENED = 64  # configurations that one search for a chain may open


@by_reference
class Tokens(NamedTuple):
    """What is asked of the tokenizer.

    vocabulary: its ids by their bytes. class_of int32 [n_ids]: the class of each id; bound_after
    int32 [rows, n_classes]: the hypothesis set after an id of a class that is read without a
    boundary before it, -1 where it cannot be; row_of int32 [n_sets]: which row is that of a
    hypothesis set, -1 while it is not computed. alone, none: what `edges` takes where no vocabulary
    is collapsed: bool [256], all True, and a collapsed vocabulary of nothing."""

    vocabulary: Vocabulary
    alone: np.ndarray
    none: Collapsed
    row_of: np.ndarray
    bound_after: np.ndarray
    class_of: np.ndarray


@kernel
def leading_ids(
    key: int, deepest: int, tokens: Tokens, w: Product
) -> tuple[np.ndarray, np.ndarray]:
    """key: of a configuration whose hypothesis set has a known row. Returns, of its ids of at most
    `deepest` bytes, (int64 [k], those that surely lead on; int64 [n, 2], (id, key of the
    configuration that it leads to) for those of which that is not known)."""
    state_pair, number = key_state_pair(key), key_number(key)
    configurations, statuses = w.memo.configurations, w.memo.status
    state, bound_after = w.memo.state[state_pair], tokens.bound_after[tokens.row_of[number]]
    found, _, _ = edges(
        state, w.memo.text_state[state_pair], w.sets.utf8_row[number], tokens.alone, w.dfa.steps,
        tokens.none, tokens.vocabulary, deepest, NEVER, w.watch,
    )  # fmt: skip
    sure, rows = np.empty(len(found), np.int64), np.empty((len(found), 2), np.int64)
    n_sure, n_rows = 0, 0
    for i in range(len(found)):
        q, a, after, token = found[i, 0], found[i, 1], bound_after[found[i, 2]], found[i, 3]
        if after < 0:
            continue
        status = UNKNOWN
        if a == 0:  # looked up here, as most tokens need no more: a call costs as much again
            status = statuses[slot_of(configurations, configuration_key(q, after))]
        if status == UNKNOWN:
            status = status_of(q, a, after, w)
            if stopped(w.watch):
                break
        if status == PARTLY:
            target = intern_state_pair(q, a, w)
            status = known_lively(token, target, after, tokens.vocabulary.trie, w)
            if status == UNKNOWN:
                rows[n_rows, 0], rows[n_rows, 1] = token, configuration_key(target, after)
                n_rows += 1
        if status == ALIVE:
            sure[n_sure] = token
            n_sure += 1
    return sure[:n_sure].copy(), rows[:n_rows].copy()


@kernel
def leading_among(
    some: np.ndarray, key: int, tokens: Tokens, w: Product
) -> tuple[np.ndarray, np.ndarray]:
    """`leading_ids` for some ids (int64) alone; none where the configuration is not at a
    character's end in state 0 of the text automaton."""
    state_pair, number, trie = key_state_pair(key), key_number(key), tokens.vocabulary.trie
    ids, n_ids = np.empty(len(some), np.int64), 0
    rows, n_rows = np.empty((len(some), 2), np.int64), 0
    bound_after = tokens.bound_after[tokens.row_of[number]]
    for token in some:
        after = bound_after[tokens.class_of[token]]
        if after < 0 or w.memo.text_state[state_pair] != 0 or w.sets.utf8_row[number] != 0:
            continue
        data = trie.data[trie.start[token] : trie.start[token + 1]]
        q = walk(w.dfa.steps, w.memo.state[state_pair], data)
        a = text_after(0, 0, data, w.reading.utf8, w.added.next)
        if q == 0 or a < 0:
            continue
        target = intern_state_pair(q, a, w)
        status = status_at(target, after, w)
        if status == ALIVE:
            ids[n_ids] = token
            n_ids += 1
        elif status == PARTLY:
            rows[n_rows, 0], rows[n_rows, 1] = token, configuration_key(target, after)
            n_rows += 1
    return ids[:n_ids], rows[:n_rows]


@kernel
def reads_much(state: int, w: Product) -> bool:
    """Does a DFA state read so many bytes that not all ids are looked at first?"""
    count = 0
    for byte in range(256):
        count += known_step(state, w.dfa.steps.byte_class[byte], w.dfa.steps) != 0
    return count >= _MUCH


@kernel
def add_witnessed(
    rows: np.ndarray,
    free: np.ndarray,
    bound: np.ndarray,
    known: Settled,
    tokens: Tokens,
    forbidden_sets: ForbiddenSets,
    w: Product,
) -> np.ndarray:
    """For each open row look for one id that may follow it and surely leads on; if there is one,
    set the row's id in `free` or `bound`, packed int32. rows: as `readable_ids` has them, those
    that lead to one configuration side by side; `Tokens.row_of` says of all their sets where they
    are. Returns bool [n], which are left undecided: without a look where their configuration is
    settled, where it reads much and more than _MOST_LOOKED_FOR rows lead to it, as `settle` costs
    less then, and once the table of statuses is half full."""
    undecided, begin, room = np.ones(len(rows), np.bool_), 0, len(w.memo.configurations) >> 1
    while begin < len(rows) and w.memo.n_configurations[0] < room and not is_void(w):
        key, end = configuration_key(rows[begin, 1], rows[begin, 2]), begin
        while end < len(rows) and configuration_key(rows[end, 1], rows[end, 2]) == key:
            end += 1
        much = reads_much(w.memo.state[key_state_pair(key)], w)
        if settled_at(key, known) == UNSETTLED and (not much or end - begin <= _MOST_LOOKED_FOR):
            given = rows[begin:end, 0].astype(np.int64), key, known, tokens, forbidden_sets
            if end - begin <= _MOST_LOOKED_FOR:
                found = _followed(*given, much, w)
            else:
                found = _followed_together(*given, w)
            for i in range(begin, end):
                bits = bound
                if rows[i, 3]:
                    bits = free
                if found[i - begin] == ALIVE:
                    bits[rows[i, 0] >> 5] |= np.int32(1) << np.int32(rows[i, 0] & 31)
                undecided[i] = found[i - begin] == UNKNOWN
        begin = end
    return undecided


@kernel
def _followed(
    some: np.ndarray,
    key: int,
    known: Settled,
    tokens: Tokens,
    forbidden_sets: ForbiddenSets,
    much: bool,
    w: Product,
) -> np.ndarray:
    """uint8: of some ids (int64) that lead to a configuration, ALIVE where one that may follow
    leads on, DEAD where none does, UNKNOWN; a follower is remembered as a witness. much: does the
    configuration read much? Then long followers are looked for only where at most
    _MOST_LOOKED_FOR_LONG ids lead there: as witnesses they serve other states too."""
    number, deepest = key_number(key), tokens.vocabulary.trie.deepest
    found = np.full(len(some), UNKNOWN, np.uint8)
    forbidden = np.empty((len(forbidden_sets.after.order) + 63) >> 6, np.int64)
    right_at = forbidden_sets.right_at
    after, open_ = tokens.bound_after[tokens.row_of[number]], len(some)
    length = SHALLOW if much and w.sets.utf8_row[number] == 0 else deepest
    while open_ > 0:
        ids, maybe = leading_ids(key, length, tokens, w)
        for i in range(len(some)):
            if is_void(w):
                found[:] = UNKNOWN
                return found
            if found[i] != UNKNOWN:
                continue
            forbid_after(some[i], forbidden_sets, forbidden)
            follower = first_allowed(ids, forbidden, right_at)
            if follower >= 0:
                found[i] = ALIVE
                follower_class = tokens.class_of[follower]
                _remember_witness(some[i], number, follower, after[follower_class], w)
            elif length == deepest and first_allowed(maybe[:, 0], forbidden, right_at) < 0:
                found[i] = DEAD
                if not _any_follows(after, tokens.class_of, forbidden, right_at):
                    _remember_witness(some[i], number, -1, -1, w)
            elif length == deepest:
                found[i] = _by_chains(some[i], maybe, known, tokens, forbidden_sets, w)
                if found[i] == UNKNOWN and much and not is_void(w):
                    _remember_witness(some[i], number, IN_VAIN, -1, w)
            open_ -= found[i] != UNKNOWN or (much and _in_vain(some[i], number, w))
        if length == deepest or len(some) > _MOST_LOOKED_FOR_LONG:
            break
        length = deepest
    return found


@kernel
def _followed_together(
    some: np.ndarray,
    key: int,
    known: Settled,
    tokens: Tokens,
    forbidden_sets: ForbiddenSets,
    w: Product,
) -> np.ndarray:
    """The same where many ids lead to a configuration; without witnesses."""
    left = placed(some, forbidden_sets.left_at, len(forbidden_sets.before.order))
    found, length = np.full(len(some), ALIVE, np.uint8), SHALLOW
    while True:
        ids, maybe = leading_ids(key, length, tokens, w)
        take_out(ids, left, forbidden_sets, w.watch)
        if length == tokens.vocabulary.trie.deepest or not keep(left, left):
            break
        length = tokens.vocabulary.trie.deepest
    # What is not taken out is dead, unless a chain leads on.
    last = listed(left)
    chains = len(last) > 0 and which_follow(maybe[:, 0].copy(), left, forbidden_sets, w.watch).any()
    for i in range(len(some) if len(last) > 0 else 0):
        at = forbidden_sets.left_at[some[i]]
        if not holds(left, at):
            continue
        found[i] = UNKNOWN if chains else DEAD
        if chains and len(last) <= _MOST_LOOKED_FOR:
            found[i] = _by_chains(some[i], maybe, known, tokens, forbidden_sets, w)
    if is_void(w):
        found[:] = UNKNOWN
    return found


@kernel
def _by_chains(
    token: int,
    maybe: np.ndarray,
    known: Settled,
    tokens: Tokens,
    forbidden_sets: ForbiddenSets,
    w: Product,
) -> int:
    """Does a chain of ids, each of which may follow the one before, surely lead on after `token`?
    maybe: of `leading_ids`, the first ids of chains and where they lead. A search in depth, which
    opens at most _MOST_OPENED configurations that read little: names and words of several ids
    usually take a few. ALIVE, DEAD, or UNKNOWN where that does not say."""
    waiting, n_waiting = np.empty((4 * _MOST_OPENED, 2), np.int64), 0
    forbidden = np.empty((len(forbidden_sets.after.order) + 63) >> 6, np.int64)
    right_at = forbidden_sets.right_at
    forbid_after(token, forbidden_sets, forbidden)
    for _ in range(_MOST_OPENED):
        for i in range(len(maybe)):
            if holds(forbidden, right_at[maybe[i, 0]]):
                continue
            row = settled_at(maybe[i, 1], known)
            if lacks(maybe[i, 0], row, known.dead, forbidden_sets.left_at):
                return ALIVE
            if row == UNSETTLED:
                if n_waiting == len(waiting):
                    return UNKNOWN
                waiting[n_waiting] = maybe[i]
                n_waiting += 1
        if n_waiting == 0:
            return DEAD
        n_waiting -= 1
        token, key = waiting[n_waiting]
        if tokens.row_of[key_number(key)] < 0:
            return UNKNOWN
        much = reads_much(w.memo.state[key_state_pair(key)], w)
        length = SHALLOW if much else tokens.vocabulary.trie.deepest
        ids, maybe = leading_ids(key, length, tokens, w)
        if is_void(w):
            return UNKNOWN
        forbid_after(token, forbidden_sets, forbidden)
        if first_allowed(ids, forbidden, right_at) >= 0:
            return ALIVE
        if much:
            return UNKNOWN
    return UNKNOWN


@kernel
def _in_vain(token: int, number: int, w: Product) -> bool:
    """Was a long follower looked for before, where none led on?"""
    key = configuration_key(token, number)
    at = witness_slot(key, w.witnesses)
    return bool(w.witnesses.key[at] == key and w.witnesses.id[at] == IN_VAIN)


@kernel
def first_allowed(ids: np.ndarray, forbidden: np.ndarray, right_at: np.ndarray) -> int:
    """The first of some ids that may follow, -1 if there is none."""
    for token in ids:
        if not holds(forbidden, right_at[token]):
            return token
    return -1


@kernel
def _any_follows(
    after: np.ndarray, class_of: np.ndarray, forbidden: np.ndarray, right_at: np.ndarray
) -> bool:
    """May some id follow, of those with a set after them?"""
    for token in range(len(class_of)):
        at = right_at[token]
        if after[class_of[token]] >= 0 and at >= 0 and not holds(forbidden, at):
            return True
    return False


@kernel
def _remember_witness(token: int, number: int, follower: int, after: int, w: Product) -> None:
    """See `product.Witnesses`."""
    key = configuration_key(token, number)
    at = witness_slot(key, w.witnesses)
    w.witnesses.key[at] = EMPTY
    w.witnesses.id[at], w.witnesses.after[at] = follower, after
    w.witnesses.key[at] = key


@kernel
def is_void(w: Product) -> bool:
    """Was the search stopped, or was there no room for a state pair? Then what was found is
    nothing."""
    return poll(w.watch) or stopped(w.watch) or w.memo.n_state_pairs[0] > len(w.memo.state)
