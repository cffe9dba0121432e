"""The dead sets of many nodes of one hypothesis set in one call: see `constructions.relevance`.

    dead(node) = { r : every id that leads on from the node is forbidden after r }

A depth-first search over the nodes that ids lead to. The suspects of a node, ids that may be dead
there, are narrowed down by what costs least: a few ids that are known to lead on, then those that
lead to ALIVE nodes, then those that lead to nodes that are settled. An id that leads to another
node can matter only if it may follow a suspect that is left, and then that node is settled first.

Nodes that this cannot settle, those that need one on a cycle or one of another set, are left to
`constructions.relevance`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata.kernels import kernel
from bpe_automata.kernels.beside import (
    all_places,
    exceeds,
    forbid,
    how_many,
    keep,
    listed,
    places_of,
)
from bpe_automata.kernels.bits import members
from bpe_automata.kernels.collapsed import Collapsed
from bpe_automata.kernels.growing import grown_rows
from bpe_automata.kernels.product_row import Nodes, product_row
from bpe_automata.kernels.steady import Steady
from bpe_automata.kernels.suspects import Half
from bpe_automata.kernels.trie import Trie
from bpe_automata.kernels.watch import poll
from bpe_automata.kernels.world import (
    ALIVE,
    PARTLY,
    UNKNOWN,
    Dfa,
    Memo,
    World,
    known_status,
)

NOTHING, UNSETTLED = -1, -2
_UNDER_WAY, _LEFT = -3, -4
_NONE = -1  # no place
_PLACE, _BEGIN, _NEXT, _END = 0, 1, 2, 3  # of a frame: its open ids in the pool
_FEWER = 4  # of a frame: are there fewer suspects than when its open ids were listed?
_FEW = 64  # ids of a node that are looked at without more ado
_OFTEN = 16  # tokens between two looks at which side has fewer


class Tokens(NamedTuple):
    """Of the tokenizer and a hypothesis set: trie, nodes, collapsed (nothing), free_after and
    bound_after as in `product_row`; after: what may not follow an id."""

    trie: Trie
    nodes: Nodes
    collapsed: Collapsed
    free_after: np.ndarray
    bound_after: np.ndarray
    after: Half


class Beside(NamedTuple):
    """What may not come before and after an id, as in `kernels.beside`, and how to find it. birth
    int32 [n_ids]; left_at, right_at int32 [n_ids]: the place of an id as the one that comes before,
    or after. Suspects are sets of the former."""

    before: Half
    after: Half
    birth: np.ndarray
    left_at: np.ndarray
    right_at: np.ndarray


@kernel
def dead_sets(
    places: np.ndarray, number: int, tokens: Tokens, w: World
) -> tuple[np.ndarray, np.ndarray]:
    """Settle the nodes (place, number) for each of `places` (int64), and those that they need; best
    with those nearest to acceptance first.

    Returns (found int32 by place: NOTHING where no id is dead, UNSETTLED where it is not known, or
    else a row of, dead int64 [rows, words]: sets of `kernels.beside` in `w.pairs.before.order`).
    Each place has one frame in all, and each turn begins or ends one, or passes an open id of it.
    """
    found = np.full(len(w.memo.state), UNSETTLED, np.int32)
    before, birth, after = w.pairs.before, w.pairs.birth, tokens.after
    left_at, right_at = places_of(before.order, len(birth)), places_of(after.order, len(birth))
    beside = Beside(before, after, birth, left_at, right_at)
    everything = all_places(len(before.order))
    frames, suspects = np.empty((32, 5), np.int64), np.empty((32, len(everything)), np.int64)
    dead, n_dead = np.empty_like(suspects), 0
    pool = np.empty((64, 2), np.int64)
    for place in places:
        needed, n_frames, n_pool = place if found[place] == UNSETTLED else _NONE, 0, 0
        while (needed != _NONE or n_frames > 0) and not poll(w.watch):
            if needed != _NONE:
                if n_frames == len(frames):
                    frames, suspects = grown_rows(frames), grown_rows(suspects)
                frame, left = frames[n_frames], suspects[n_frames]
                frame[_PLACE], frame[_BEGIN], frame[_NEXT] = needed, n_pool, n_pool
                frame[_FEWER] = 0
                found[needed], left[:] = _UNDER_WAY, everything
                if number == w.steady.number and w.memo.added[needed] == 0:
                    _take_out_leading(w.steady.leading[w.memo.state[needed]], left, beside)
                rows = _begun(needed, number, found, dead, left, beside, tokens, w)
                while n_pool + len(rows) > len(pool):
                    pool = grown_rows(pool)
                pool[n_pool : n_pool + len(rows)] = rows
                n_pool += len(rows)
                frame[_END] = n_pool
                n_frames += 1
            frame, left = frames[n_frames - 1], suspects[n_frames - 1]
            verdict, needed = _advanced(frame, found, dead, left, pool, beside, w.watch)
            if needed != _NONE:
                continue
            n_frames, n_pool = n_frames - 1, frame[_BEGIN]
            found[frame[_PLACE]] = verdict
            if verdict == UNSETTLED:
                if n_dead == len(dead):
                    dead = grown_rows(dead)
                dead[n_dead], found[frame[_PLACE]] = left, n_dead
                n_dead += 1
    for at in range(len(found)):
        found[at] = max(found[at], UNSETTLED)
    return found, dead[:n_dead]


@kernel
def _begun(
    place: int,
    number: int,
    found: np.ndarray,
    dead: np.ndarray,
    suspects: np.ndarray,
    beside: Beside,
    tokens: Tokens,
    w: World,
) -> np.ndarray:
    """Take out of the suspects what all that is known to lead on leaves. Returns int64 [n, 2], what
    may take out more: (id, place), _NONE for one of another set."""
    ids, rows = _ids_of(place, number, tokens, w)
    _take_out(ids, suspects, beside, w.watch)
    lively, n_lively = np.empty(len(rows), np.int64), 0
    others, n_others = np.empty((len(rows), 2), np.int64), 0
    for i in range(len(rows)):
        token, target = rows[i, 0], rows[i, 1]
        if _is_lively(token, target, found, dead, beside):
            lively[n_lively] = token
            n_lively += 1
        elif target == _NONE or found[target] <= UNSETTLED:
            others[n_others, 0], others[n_others, 1] = token, target
            n_others += 1
    _take_out(lively[:n_lively], suspects, beside, w.watch)
    others = others[:n_others]
    return others[_which_follow(others[:, 0].copy(), suspects, beside, w.watch)]


@kernel
def _ids_of(place: int, number: int, tokens: Tokens, w: World) -> tuple[np.ndarray, np.ndarray]:
    """(int64, the ids that lead on for sure; int64 [n, 2], those of which it is not known and the
    place that each leads to, _NONE with one of another set)."""
    if number == w.steady.number and w.memo.added[place] == 0:
        known, sure, rows = _steady_ids(
            w.memo.state[place], number, tokens.trie, tokens.nodes.kind, w.dfa, w.memo, w.steady
        )
        if known:
            return sure, rows
    _, bound, open_ = product_row(
        place,
        number,
        tokens.trie.deepest,
        tokens.trie,
        tokens.nodes,
        tokens.collapsed,
        tokens.collapsed.ids,
        tokens.free_after,
        tokens.bound_after,
        w,
    )
    rows = np.empty((len(open_), 2), np.int64)
    for i in range(len(open_)):
        rows[i, 0] = open_[i, 0]
        rows[i, 1] = open_[i, 1] if open_[i, 2] == number else _NONE
    return members(bound), rows


@kernel
def _steady_ids(
    state: int, number: int, trie: Trie, kinds: np.ndarray, dfa: Dfa, memo: Memo, steady: Steady
) -> tuple[bool, np.ndarray, np.ndarray]:
    """The same for a DFA state where all ids keep the set, and are few: (is that so, ...)."""
    trans, byte_class, label, depths = dfa.trans, dfa.byte_class, trie.label, trie.depth
    sure, rows = np.empty(_FEW, np.int64), np.empty((_FEW, 2), np.int64)
    path, n_sure, n_rows = np.empty(trie.deepest + 1, np.int32), 0, 0
    path[0], node = state, 0
    while node < len(label):
        depth = depths[node]
        after = trans[path[depth - 1], byte_class[label[node]]]
        if after == 0:
            node = trie.skip[node]
            continue
        path[depth], kind, token = after, kinds[node], steady.token[node]
        node += 1
        if kind == 0:
            continue
        status = known_status(after, number, memo)
        if token < 0 or status == UNKNOWN or max(n_sure, n_rows) == _FEW:
            return False, sure[:0], rows[:0]
        if status == ALIVE:
            sure[n_sure] = token
            n_sure += 1
        elif status == PARTLY:
            rows[n_rows, 0], rows[n_rows, 1] = token, after
            n_rows += 1
    return True, sure[:n_sure], rows[:n_rows]


@kernel
def _take_out_leading(tokens: np.ndarray, suspects: np.ndarray, beside: Beside) -> None:
    """`_take_out` by the few ids (int32, -1: none) that are known to lead on from a steady node."""
    forbidden = np.empty(len(suspects), np.int64)
    for token in tokens:
        if token >= 0:
            forbid(token, beside.birth, 1, beside.before, forbidden)
            keep(suspects, forbidden)


@kernel
def _take_out(tokens: np.ndarray, suspects: np.ndarray, beside: Beside, watch: np.ndarray) -> None:
    """Take out of the suspects every id that some of `tokens` (int64) may follow."""
    forbidden, count = np.empty(len(suspects), np.int64), 0
    for i in range(len(tokens)):
        if poll(watch):
            return
        if i % _OFTEN == 0:
            count = how_many(suspects)
        if count <= len(tokens) - i:
            _take_out_singly(tokens[i:].copy(), suspects, beside, watch)
            return
        forbid(tokens[i], beside.birth, 1, beside.before, forbidden)
        keep(suspects, forbidden)


@kernel
def _take_out_singly(
    tokens: np.ndarray, suspects: np.ndarray, beside: Beside, watch: np.ndarray
) -> None:
    """The same where there are fewer suspects than tokens."""
    order = beside.after.order
    forbidden = np.empty((len(order) + 63) >> 6, np.int64)
    followers = np.zeros_like(forbidden)
    for token in tokens:
        at = beside.right_at[token]
        followers[at >> 6] |= np.int64(1) << (at & 63)
    for suspect in listed(suspects):
        if poll(watch):
            return
        forbid(beside.before.order[suspect], beside.birth, 0, beside.after, forbidden)
        if exceeds(followers, forbidden):
            suspects[suspect >> 6] &= ~(np.int64(1) << (suspect & 63))


@kernel
def _which_follow(
    tokens: np.ndarray, suspects: np.ndarray, beside: Beside, watch: np.ndarray
) -> np.ndarray:
    """bool: which of `tokens` (int64) may follow some suspect?"""
    found = np.zeros(len(tokens), np.bool_)
    if how_many(suspects) > len(tokens):
        forbidden = np.empty(len(suspects), np.int64)
        for i in range(len(tokens)):
            if poll(watch):
                break
            forbid(tokens[i], beside.birth, 1, beside.before, forbidden)
            found[i] = exceeds(suspects, forbidden)
        return found
    forbidden = np.empty((len(beside.after.order) + 63) >> 6, np.int64)
    for suspect in listed(suspects):
        if poll(watch):
            break
        forbid(beside.before.order[suspect], beside.birth, 0, beside.after, forbidden)
        for i in range(len(tokens)):
            at = beside.right_at[tokens[i]]
            found[i] |= (forbidden[at >> 6] >> (at & 63)) & 1 == 0
    return found


@kernel
def _is_lively(
    token: int, target: int, found: np.ndarray, dead: np.ndarray, beside: Beside
) -> bool:
    """Is it known that the id leads on to acceptance at a place?"""
    if target == _NONE or found[target] <= UNSETTLED:
        return False
    row, at = found[target], beside.left_at[token]
    return row == NOTHING or not (dead[row, at >> 6] >> (at & 63)) & 1


@kernel
def _advanced(
    frame: np.ndarray,
    found: np.ndarray,
    dead: np.ndarray,
    suspects: np.ndarray,
    pool: np.ndarray,
    beside: Beside,
    watch: np.ndarray,
) -> tuple[int, int]:
    """(verdict, the place that must be settled before, or _NONE).

    Verdicts: NOTHING is dead; UNSETTLED: the suspects are the dead set, new; _UNDER_WAY: not known
    before that place is; _LEFT: this search cannot tell."""
    forbidden, birth, before = np.empty(len(suspects), np.int64), beside.birth, beside.before
    if not keep(suspects, suspects):
        return NOTHING, _NONE
    while frame[_NEXT] < frame[_END] and not poll(watch):
        token, target = pool[frame[_NEXT], 0], pool[frame[_NEXT], 1]
        unknown = target != _NONE and found[target] == UNSETTLED
        if unknown and not frame[_FEWER]:
            return _UNDER_WAY, target
        if unknown or _is_lively(token, target, found, dead, beside):
            forbid(token, birth, 1, before, forbidden)
            if unknown and exceeds(suspects, forbidden):
                return _UNDER_WAY, target
            if not unknown and not keep(suspects, forbidden):
                return NOTHING, _NONE
            frame[_FEWER] = 1
        frame[_NEXT] += 1
    for i in range(frame[_BEGIN], frame[_END]):
        if poll(watch):
            break
        token, target = pool[i, 0], pool[i, 1]
        if target == _NONE or found[target] <= UNSETTLED:
            forbid(token, birth, 1, before, forbidden)
            if exceeds(suspects, forbidden):
                return _LEFT, _NONE
    return UNSETTLED, _NONE
