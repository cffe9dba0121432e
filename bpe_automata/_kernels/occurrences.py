"""Where banned texts begin in a token, and how far later tokens bring them.

A thread is one banned text that has begun: the state of the DFA of banned texts and that of the DFA
of what must follow one, as one number. It is complete once a banned text has ended and what must
follow has been seen.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata._kernels import jit
from bpe_automata._kernels.hashing import longer
from bpe_automata._kernels.watch import poll

DEAD, COMPLETE = 0, -1


class Dfa(NamedTuple):
    """trans: int32 [n, k], row 0 dead; byte_class: [256]; accepting: bool [n]; start: a state."""

    trans: np.ndarray
    byte_class: np.ndarray
    accepting: np.ndarray
    start: int


class Search(NamedTuple):
    """banned: the texts; follows: the character that must follow one, looked at only if `whole`;
    before: the texts after which one may begin."""

    banned: Dfa
    follows: Dfa
    before: Dfa
    whole: bool


@jit
def thread_after(search: Search, thread: int, data: np.ndarray) -> int:
    """A thread after the bytes `data`: itself, DEAD or COMPLETE."""
    banned, follows = search.banned, search.follows
    wide = len(follows.trans)
    state, waiting = thread // wide, thread % wide
    for byte in data:
        state = banned.trans[state, banned.byte_class[byte]]
        waiting = follows.trans[waiting, follows.byte_class[byte]]
        if follows.accepting[waiting]:
            return COMPLETE
        if banned.accepting[state]:
            if not search.whole:
                return COMPLETE
            waiting = follows.start
        if state == 0 and waiting == 0:
            return DEAD
    return state * wide + waiting


@jit
def begun(search: Search, context: int, data: np.ndarray, watch: np.ndarray) -> np.ndarray:
    """int32: the threads that begin in the bytes `data`, COMPLETE among them. context: where
    `search.before` is after all text that comes before."""
    found, count = np.empty(len(data), np.int32), 0
    banned, before = search.banned, search.before
    first = banned.start * len(search.follows.trans)
    for k in range(len(data)):
        if poll(watch):
            break
        begins = before.accepting[context]
        if begins and banned.trans[banned.start, banned.byte_class[data[k]]] != 0:
            thread = thread_after(search, first, data[k:])
            if thread != DEAD:
                found[count] = thread
                count += 1
        context = before.trans[context, before.byte_class[data[k]]]
    return found[:count].copy()


@jit
def all_begun(
    search: Search,
    context: int,
    start: np.ndarray,
    data: np.ndarray,
    tokens: np.ndarray,
    watch: np.ndarray,
) -> np.ndarray:
    """int32 [m, 2]: (token, thread) for all that begins in one of the tokens (int64), whose bytes
    are data[start[token]:start[token + 1]]."""
    rows, count = np.empty((64, 2), np.int32), 0
    for token in tokens:
        for thread in begun(search, context, data[start[token] : start[token + 1]], watch):
            if count == len(rows):
                rows = longer(rows.ravel(), 4 * count).reshape((-1, 2))
            rows[count, 0], rows[count, 1] = token, thread
            count += 1
    return rows[:count].copy()


@jit
def all_after(
    search: Search,
    thread: int,
    start: np.ndarray,
    data: np.ndarray,
    tokens: np.ndarray,
    watch: np.ndarray,
) -> np.ndarray:
    """int32 [m, 2]: (token, thread) for each of the tokens that a thread can read."""
    rows, count = np.empty((64, 2), np.int32), 0
    for token in tokens:
        if poll(watch):
            break
        after = thread_after(search, thread, data[start[token] : start[token + 1]])
        if after != DEAD:
            if count == len(rows):
                rows = longer(rows.ravel(), 4 * count).reshape((-1, 2))
            rows[count, 0], rows[count, 1] = token, after
            count += 1
    return rows[:count].copy()
