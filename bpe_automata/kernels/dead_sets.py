"""The dead sets of many nodes of one hypothesis set in one call: see `constructions.relevance`.

    dead(node) = { r : every id that leads on from the node is forbidden after r }

A depth-first search over the nodes that ids lead to. Nodes that it cannot settle, those that need
one on a cycle or one of another set, are left to `constructions.relevance`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata.kernels import kernel
from bpe_automata.kernels.bits import members
from bpe_automata.kernels.growing import grown, grown_rows
from bpe_automata.kernels.product_row import Nodes, product_row
from bpe_automata.kernels.suspects import Half, narrow
from bpe_automata.kernels.trie import Trie
from bpe_automata.kernels.world import World

NOTHING, UNSETTLED = -1, -2
_UNDER_WAY, _LEFT = -3, -4
_SHALLOW = 2  # bytes: where much can follow, tokens this short are looked at first
_MUCH = 8  # bytes


class Tokens(NamedTuple):
    """Of the tokenizer and a hypothesis set: trie, nodes, free_after and bound_after as in
    `product_row`; reachable: bool [n_ids]; after: what may not follow an id."""

    trie: Trie
    nodes: Nodes
    free_after: np.ndarray
    bound_after: np.ndarray
    reachable: np.ndarray
    after: Half


@kernel
def dead_sets(
    places: np.ndarray, number: int, tokens: Tokens, w: World
) -> tuple[np.ndarray, np.ndarray]:
    """Settle the nodes (place, number) for each of `places` (int64), and those that they need; best
    with those nearest to acceptance first.

    Returns (found int32 by place: NOTHING where no id is dead, UNSETTLED where it is not known, or
    else a row of, dead int32 [rows, n_words]: packed ids).
    """
    found = np.full(len(w.memo.state), UNSETTLED, np.int32)
    dead, n_dead = np.empty((32, (len(tokens.trie.start) + 30) >> 5), np.int32), 0
    stack = np.empty(64, np.int64)
    for place in places:
        stack[0], n_stack = place, 1
        while n_stack > 0:
            top = stack[n_stack - 1]
            if found[top] != UNSETTLED and found[top] != _UNDER_WAY:
                n_stack -= 1
                continue
            found[top] = _UNDER_WAY
            verdict, suspects, waiting = _tried(top, number, found, dead, tokens, w)
            if verdict != _UNDER_WAY:
                found[top] = verdict
                n_stack -= 1
            if verdict == UNSETTLED:
                if n_dead == len(dead):
                    dead = grown_rows(dead)
                dead[n_dead] = suspects
                found[top] = n_dead
                n_dead += 1
            for target in waiting:
                stack = grown(stack, n_stack)
                stack[n_stack] = target
                n_stack += 1
    for place in range(len(found)):
        found[place] = max(found[place], UNSETTLED)
    return found, dead[:n_dead]


@kernel
def _tried(
    place: int, number: int, found: np.ndarray, dead: np.ndarray, tokens: Tokens, w: World
) -> tuple[int, np.ndarray, np.ndarray]:
    """(verdict, the ids that no id so far follows, the places that must be settled before).

    Verdicts: NOTHING is dead; UNSETTLED: the ids are the dead set, new; _UNDER_WAY: places must be
    settled before; _LEFT: this search cannot tell."""
    suspects = np.full(dead.shape[1], -1, np.int32)
    if _fan_out(place, w) >= _MUCH and _row(place, number, _SHALLOW, suspects, tokens, w)[0] == 0:
        return NOTHING, suspects, np.empty(0, np.int64)
    count, open_rows = _row(place, number, tokens.trie.deepest, suspects, tokens, w)
    waiting, n_waiting = np.empty(len(open_rows), np.int64), 0
    lively, n_lively = np.empty(len(open_rows), np.int64), 0
    if count == 0:
        return NOTHING, suspects, waiting[:0]
    for i in range(len(open_rows)):
        token, target = open_rows[i, 0], open_rows[i, 1]
        at = found[target]
        if open_rows[i, 2] != number or at in (_UNDER_WAY, _LEFT):
            return _LEFT, suspects, waiting[:0]
        if at == UNSETTLED:
            waiting[n_waiting] = target
            n_waiting += 1
        elif at == NOTHING or not (dead[at, token >> 5] >> (token & 31)) & 1:
            lively[n_lively] = token
            n_lively += 1
    if n_waiting > 0:
        return _UNDER_WAY, suspects, waiting[:n_waiting]
    if _narrowed(lively[:n_lively], suspects, tokens, w) == 0:
        return NOTHING, suspects, waiting[:0]
    return UNSETTLED, suspects, waiting[:0]


@kernel
def _row(
    place: int, number: int, deepest: int, suspects: np.ndarray, tokens: Tokens, w: World
) -> tuple[int, np.ndarray]:
    """(how many suspects the ids leave that lead to ALIVE nodes, the ids that lead to others)."""
    _, bound, open_rows = product_row(
        place,
        number,
        deepest,
        tokens.trie,
        tokens.nodes,
        tokens.free_after,
        tokens.bound_after,
        w,
    )
    return _narrowed(members(bound), suspects, tokens, w), open_rows


@kernel
def _narrowed(ids: np.ndarray, suspects: np.ndarray, tokens: Tokens, w: World) -> int:
    birth, before = w.pairs.birth, w.pairs.before
    return narrow(ids, suspects, tokens.reachable, birth, before, tokens.after)


@kernel
def _fan_out(place: int, w: World) -> int:
    """How many bytes the DFA can read at a place."""
    count, state = 0, w.memo.state[place]
    for byte in range(256):
        count += w.dfa.trans[state, w.dfa.byte_class[byte]] != 0
    return count
