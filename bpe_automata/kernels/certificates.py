"""Which nodes are ALIVE, for many hypothesis sets at once.

The certificate of a hypothesis set is what shows its nodes to be ALIVE (see `world.shown_status`):
that a text can end there, and texts that lead on. A certificate holds at a DFA state if that is so
from there, in state 0 of the text automaton, and in another state that reads its texts as state 0
does. Hundreds of sets have a few dozen certificates, so in a region of many states it costs much
less to ask for these than for the nodes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata.kernels import kernel
from bpe_automata.kernels.hashing import EMPTY, mix, slot_of
from bpe_automata.kernels.references import by_reference
from bpe_automata.kernels.split_characters import is_free
from bpe_automata.kernels.text_search import reads
from bpe_automata.kernels.watch import poll, stopped
from bpe_automata.kernels.world import World

ODD, NO_SET, _NONE = -1, -2, -1
_CERTIFICATES, ROWS, _CALL, _COLUMNS = 0, 1, 2, 3  # in `Certificates.counts`


@by_reference
class Certificates(NamedTuple):
    """Of one product. of_set int32 [n_sets]: the certificate of each set, -1 if none is known. keys
    int64, values int32: hash table of certificates; shown int32 [n, ways, 3] as in `world.Sets`,
    ends, whole bool [n]: can a text end, does it begin at a character's end? at int32 [n_states]:
    the row of each state, -1 for none; asked, holds int64 [rows, n / 64]: bits of the certificates
    that were looked at, and that hold; column int32 [UTF-8 rows]: of each one that sets with a
    certificate have, -1 for none; seen int64 [rows, columns]: the last call that has looked at all
    that it needs, negative where not all of it holds; texts int32 [states of the text automaton]:
    how many certificates that state reads as state 0 does, the first ones, -1: not all. counts
    int64 [4]: certificates, rows (one too many where there was no room), calls, columns."""

    of_set: np.ndarray
    keys: np.ndarray
    values: np.ndarray
    shown: np.ndarray
    ends: np.ndarray
    whole: np.ndarray
    at: np.ndarray
    asked: np.ndarray
    holds: np.ndarray
    column: np.ndarray
    seen: np.ndarray
    texts: np.ndarray
    counts: np.ndarray


@kernel
def needed(
    after_sides: tuple[np.ndarray, np.ndarray], c: Certificates, w: World
) -> tuple[int, np.ndarray, np.ndarray]:
    """What the nodes of a row need. after_sides: int32 [kinds], the sets after tokens of each kind.
    Returns (the number of the call; int64 [columns, n / 64], the certificates of all sets, as bits;
    int32 [kinds], the column of their sets; ODD where one has no certificate or no column, NO_SET).
    """
    need = np.zeros((c.seen.shape[1], c.asked.shape[1]), np.int64)
    columns = np.full(len(after_sides[0]), NO_SET, np.int32)
    c.counts[_CALL] += 1
    for after in after_sides:
        for kind in range(len(after)):
            number = after[kind]
            if number < 0 or columns[kind] == ODD:
                continue
            known, row = c.of_set[number], w.sets.row[number]
            if known < 0:
                known = _certificate(number, c, w)
            if known >= 0 and c.column[row] < 0 and c.counts[_COLUMNS] < len(need):
                c.column[row] = c.counts[_COLUMNS]
                c.counts[_COLUMNS] += 1
            column = c.column[row]
            if known < 0 or column < 0 or (columns[kind] >= 0 and columns[kind] != column):
                columns[kind] = ODD
                continue
            columns[kind] = column
            need[column, known >> 6] |= np.int64(1) << (known & 63)
    return c.counts[_CALL], need, columns


@kernel
def all_alive(state: int, column: int, need: np.ndarray, c: Certificates, w: World) -> bool:
    """Are all nodes ALIVE that a DFA state has with the sets of a column that are needed, as their
    certificates hold?"""
    k = c.at[state]
    if k < 0:
        if c.counts[ROWS] >= len(c.asked):
            c.counts[ROWS] = len(c.asked) + 1  # there is no room
            return False
        k = c.at[state] = c.counts[ROWS]
        c.counts[ROWS] += 1
    if abs(c.seen[k, column]) != c.counts[_CALL]:
        hold = _all_hold(state, k, need[column], c, w)
        c.seen[k, column] = c.counts[_CALL] if hold else -c.counts[_CALL]
    return c.seen[k, column] > 0


@kernel
def reads_alike(text: int, c: Certificates, w: World) -> bool:
    """Do all certificates that hold at a DFA state hold in this state of the text automaton too?"""
    k = c.texts[text]
    while 0 <= k < c.counts[_CERTIFICATES]:
        alike = w.added.ends[text] or not c.ends[k]
        for i in range(c.shown.shape[1]):
            if c.shown[k, i, 1] == 0:
                break
            atom = c.shown[k, i, 2]
            alike &= w.added.next[text, atom] == w.added.next[0, atom]
        k = k + 1 if alike else -1
    c.texts[text] = k
    return k >= 0


@kernel
def _certificate(number: int, c: Certificates, w: World) -> int:
    """The number of what now shows nodes of a set to be ALIVE; _NONE where nothing does, or there
    is no room for it. What it is a certificate of stays so, whatever is found later."""
    shown, ends = w.sets.shown[number], w.sets.ends[number]
    if w.sets.given_up[number] or (shown[0, 1] == 0 and not ends):
        return _NONE
    whole, key = w.sets.row[number] == 0, np.uint64(2 * ends + (w.sets.row[number] == 0))
    for i in range(len(shown)):
        if shown[i, 1] == 0:
            break
        for j in range(3):
            key = mix(key ^ np.uint64(shown[i, j]))
    digest = np.int64(key >> np.uint64(1))
    slot = slot_of(c.keys, digest)  # type: ignore[arg-type]
    if c.keys[slot] == EMPTY:
        k = c.counts[_CERTIFICATES]
        if k == len(c.ends):
            return _NONE
        c.keys[slot], c.values[slot] = digest, k
        c.shown[k], c.ends[k], c.whole[k] = shown, ends, whole
        c.counts[_CERTIFICATES] += 1
    k = c.values[slot]
    if c.ends[k] != ends or c.whole[k] != whole:
        return _NONE
    for i in range(len(shown)):
        for j in range(3):
            if c.shown[k, i, j] != shown[i, j]:
                return _NONE
        if shown[i, 1] == 0:
            break
    c.of_set[number] = k
    return k


@kernel
def _all_hold(state: int, row: int, need: np.ndarray, c: Certificates, w: World) -> bool:
    """Do all certificates of some bits hold at a state?"""
    for word in range(len(need)):
        left = need[word] & ~c.asked[row, word]
        for bit in range(64):
            if left == 0:
                break
            if not (left >> bit) & 1:
                continue
            left &= ~(np.int64(1) << bit)
            holds = _holds(state, 64 * word + bit, c, w)
            if poll(w.watch) or stopped(w.watch) or w.memo.n_places[0] > len(w.memo.state):
                return False  # nothing that was found may be kept
            c.asked[row, word] |= np.int64(1) << bit
            if holds:
                c.holds[row, word] |= np.int64(1) << bit
        if need[word] & ~c.holds[row, word]:
            return False
    return True


@kernel
def _holds(state: int, k: int, c: Certificates, w: World) -> bool:
    """Does a certificate hold at a state?"""
    if w.dfa.accepting[state] and c.ends[k]:
        return True
    for i in range(c.shown.shape[1]):
        code = c.shown[k, i, 1]
        if code == 0:
            return i > 0
        if w.added.next[0, c.shown[k, i, 2]] != 0:
            return False
        q, packed, hypothesis = state, c.shown[k, i, 0], (code >> 2) - 1
        for _ in range(code & 3):
            q = w.dfa.trans[q, w.dfa.byte_class[packed & 0xFF]]
            packed >>= 8
        if q == 0:
            return False
        leads = reads(q, hypothesis, w) if c.whole[k] else is_free(q, hypothesis, w)
        if not leads:
            return False
    return True
