"""What the kernels of the core have in common: arrays in, arrays out, plain numba.

A *configuration* is (q, a, H): a state of the byte DFA, a state of the text automaton, and a
hypothesis set. Its status is a matter of two ANDs of bits (see `status`):

    ALIVE    whatever the last id was, some text goes on from it to acceptance
    DEAD     no text goes on to acceptance
    PARTLY   it may depend on what the last id would merge with, or more than one character decides
    LATER    PARTLY, in the loop of a slice, where a search was given up

What is PARTLY is settled by `search`, exactly, so a status may be PARTLY where it need not be.

The arrays come in plain tuples, which kernels take apart (a call with named tuples takes 20 times
as long):

    steps    trans int32 [states, columns], byte_class uint8 [256], behind int32: where bytes lead,
             see `links.known_step`
    text     utf8 int32 [rows, 256], next int32 [texts, atoms], told bool [texts, 2]: UTF-8 and the
             text automaton; of each of its states: may a text end there? is it harmless? (From a
             harmless state every text of steady atoms can be read, and may end.)
    chars    atoms int32 [atoms, 2], into uint64 [4, coarse + 1, words], end uint64 [words], after
             uint64 [2, n, coarse, words], fragments int32: the coarse atom that each belongs to,
             and is it steady; which hypotheses a coarse atom may follow: with a boundary into a
             universal one, with one where the text may end then, with one, without one (behind
             them all, those that any atom may follow); those with which a text may end; the
             hypotheses after an atom, without and with a boundary before it; the tokens that are
             nothing but the last bytes of a character
    states   accepting bool [states], good uint8 [states], known uint8 [states], looks uint64
             [states, 3, words], far int32 [states]: see `leads_home` and `look_ahead`; far: bytes
             to acceptance (of a linked automaton perhaps fewer)
    sets     bits uint64 [sets, 4, words], utf8_row int32 [sets], at int32 [sets], after int32
             [rows, 2, classes]: of each hypothesis set the hypotheses after which a boundary may
             come, or none, and inside a character those before it, without and with a boundary
             there; of those that are known (at >= 0) the sets after each token class, with a
             boundary before the token and without
    trie     nodes int32 [nodes, 7], start int32, data uint8: the vocabulary; of each node its
             label, depth, skip, token, class, text state behind and first atom
    added    from, behind, after_row int32, after int32 [rows, n], texts int32 [n, 3], data uint8:
             the states before and after an added token of each state (of length 0: itself), the row
             of each text state, and the text states after each token; its id (-1: it may not come)
             and the bytes data[begin:end] of each
    pairs    ids int32 [ids + 1, 5], merges int32 [m, 3], order int32, slots int64, values int32:
             which pairs are broken: see `_kernels.geometry`, for what may not come before an id;
             the id at each position; hash table of the ranks
    memo     slots int64, values int32: hash table of configurations; met int64 [n, 4]: of each its
             key, the ids that are not known to be live there (see `search`), its status, and the
             most bytes of ids by which an id was found to be live, until one led to a
             configuration that is ALIVE; counts int64 [3]: configurations, rows, the most of those
             bytes; rows uint64 [rows, words]: ids by position; hints int32 [rows of utf8]: see
             `complete`
    visited  failed int64, its count; seen, stamps, listed int64, now int64 [2]: the pairs that are
             known to be dead, and those of one search
    kit      base (steps, text, chars, states), sets, trie, added, pairs
    scratch  room of a thread: see `tables.Scratch`
    work     memo, kit, scratch, visited, deepest int, quota int64 [1]: the longest id's bytes, and
             how many calls of `candidates` are left
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bpe_automata._kernels import inlined, inner, jit
from bpe_automata._kernels.links import known_step

Arrays = tuple[Any, ...]
Int = Any  # int64 inside kernels, which are also called with int

ALIVE, DEAD, PARTLY, LATER = 1, 2, 3, 4
SLOTS, VALUES, MET, COUNTS, ROWS, HINTS = 0, 1, 2, 3, 4, 5  # of `memo`
KEY, OPEN, STATUS, DETOUR = 0, 1, 2, 3  # columns of `memo.met`
FAILED, N_FAILED, SEEN, STAMPS, LISTED, NOW = 0, 1, 2, 3, 4, 5  # of `visited`
FOUND, PATH, WANTED, NEED, OPENED = 0, 1, 2, 3, 4  # of `scratch`
NUMBERS, FRAMES, OTHER, PAIRS, OUT = 5, 6, 7, 8, 9
LABEL, DEPTH, SKIP, TOKEN, KLASS, TEXT, FIRST = 0, 1, 2, 3, 4, 5, 6  # of `trie.nodes`
BREAKS, BINDS, WITHIN = 0, 1, 2  # of `sets.bits`
ENDS, HARMLESS = 0, 1  # of `text.told`
COARSE, STEADY = 0, 1  # of `chars.atoms`
DONE, NEED_STEPS, NEED_SET, NEED_ROOM, NEED_TIME = 0, 1, 2, 3, 4
NEED_CONFIGURATIONS, NEED_ROWS, NEED_VISITED, NEED_SEARCH = 5, 6, 7, 8
NO_TOKEN = -1
BEGINNING = 0  # the hypothesis set at the beginning of a text
COMPLETE, UNDER_WAY = 2, 1


@inner
def want(number: Int, wanted: np.ndarray) -> None:
    """Note that a step is wanted: wanted[0] counts those that are listed behind it, the last place
    how often this was called."""
    n = wanted[0] + 1
    wanted[-1] += 1
    if n < len(wanted) - 1 and (n == 1 or wanted[n - 1] != number):
        wanted[n] = number
        wanted[0] = n


@jit
def walk(state: Int, data: np.ndarray, steps: Arrays, wanted: np.ndarray) -> Int:
    """The state after some bytes, 0 where there is none or a step is wanted."""
    trans, byte_class, behind = steps
    for byte in data:
        state = known_step(state, byte_class[byte], trans, behind)
        if state <= 0:
            if state < 0:
                want(-1 - state, wanted)
            return 0
    return state


@jit
def text_after(
    text: Int, utf8_row: Int, data: np.ndarray, utf8: np.ndarray, next_: np.ndarray
) -> Int:
    """State of the text automaton after bytes, from a UTF-8 row; -1 where no text goes on so."""
    entry = np.int64(utf8_row)
    for byte in data:
        entry = np.int64(utf8[entry if entry > 0 else 0, byte])
        if entry == -1:
            return -1
        if entry < -1:
            text = np.int64(next_[text, -2 - entry])
            if text < 0:
                return -1
    return text


@inlined
def meets(one: np.ndarray, other: np.ndarray) -> bool:
    for w in range(len(one)):  # noqa: SIM110 - a loop is compiled
        if one[w] & other[w]:
            return True
    return False
