"""Characters split between tokens: can they be completed whatever the last id was?

These kernels settle most configurations inside a character at once. What they leave open is settled
by `_constructions.relevance`.
"""

from __future__ import annotations

import numpy as np

from bpe_automata._kernels import kernel
from bpe_automata._kernels.geometry import breaks
from bpe_automata._kernels.links import step
from bpe_automata._kernels.product import (
    ALIVE,
    DEAD,
    MOST_SHOWN,
    UNKNOWN,
    Added,
    Dfa,
    Fragments,
    Memo,
    Product,
    Reading,
    Sets,
    intern_state_pair,
    known_at_end,
    step_range,
)
from bpe_automata._kernels.text_search import ascii_steps, reads
from bpe_automata._kernels.watch import poll, stopped

_STEPS = 1000  # tries after which the question is left open


@kernel
def completed(state_pair: int, utf8_row: int, number: int, w: Product) -> bool:
    """Inside a character that some text completes and leads on from: does every id that can have
    led here have a way to do so, after which the text can end or a boundary come, or that ends in
    an id that may stand beside every id? (No is no proof of the contrary.)"""
    if w.fixed_set.apart and _binds(number, w):
        return True
    if w.sets.given_up[number]:
        return False
    covers = w.fragments.covers[utf8_row]
    ways, n = np.full((2 * covers.shape[1], covers.shape[2]), -1, np.int32), 0
    for i in range(w.fragments.open_start[utf8_row], w.fragments.open_start[utf8_row + 1]):
        if poll(w.watch):
            return False
        last, followed = w.fragments.open_ids[i], False
        for k in range(n):
            if not breaks(last, w.fragments.ids[ways[k, 0]], w.pairs):
                followed = True
                break
        if not followed:
            if n == len(ways) or not _completes(state_pair, utf8_row, last, number, ways[n], w):
                if not stopped(w.watch):
                    w.sets.given_up[number] = True
                    w.sets.shown[number] = 0
                return False
            n += 1
    if 0 < n <= covers.shape[1]:
        for at in range(len(covers) - 1, 0, -1):
            covers[at] = covers[at - 1]
        covers[0] = ways[: covers.shape[1]]
        covered(state_pair, utf8_row, number, w)
    return True


@kernel
def covered(state_pair: int, utf8_row: int, number: int, w: Product) -> bool:
    """Does a cover that is known (see `product.Fragments`) show that what `completed` asks is
    so?"""
    for cover in w.fragments.covers[utf8_row]:
        ready = cover[0, 0] >= 0
        for way in cover:
            if way[0] < 0 or not ready:
                break
            q, r, token = _read_way(
                w.memo.state[state_pair], utf8_row, way, w.dfa, w.reading, w.fragments
            )
            ready = q != 0 and r < -1 and _then_free(state_pair, -2 - r, q, number, token, w)
        if ready:
            if w.memo.text_state[state_pair] == 0 and not w.sets.given_up[number]:
                _show(state_pair, utf8_row, number, cover, w)
            return True
    return False


@kernel
def _show(state_pair: int, utf8_row: int, number: int, cover: np.ndarray, w: Product) -> None:
    """Write down the texts of a cover for the hypothesis set: see `product.Sets`."""
    shown = np.zeros_like(w.sets.shown[number])
    for i in range(len(shown)):
        if cover[i, 0] < 0:
            break
        q, r, _ = _read_way(
            w.memo.state[state_pair], utf8_row, cover[i], w.dfa, w.reading, w.fragments
        )
        packed, n_bytes = np.int64(0), 0
        for k in cover[i]:
            for at in range(w.fragments.start[max(k, 0)], w.fragments.start[k + 1]):
                packed |= np.int64(w.fragments.data[at]) << (8 * n_bytes)
                n_bytes += 1
        hypothesis = _known_free(q, -2 - r, number, w.reading, w.sets, w.memo)
        if hypothesis < 0 or n_bytes > MOST_SHOWN or w.added.next[0, -2 - r] != 0:
            return
        shown[i, 0], shown[i, 1] = packed, (hypothesis + 1) << 2 | n_bytes
        shown[i, 2] = -2 - r
    w.sets.shown[number] = shown


@kernel
def _read_way(
    state: int, utf8_row: int, way: np.ndarray, dfa: Dfa, reading: Reading, fragments: Fragments
) -> tuple[int, int, int]:
    """(DFA state, UTF-8 entry, last id) after fragments that follow one another."""
    token = -1
    for k in way:
        if k < 0 or utf8_row < 0 or state == 0:
            break
        state, utf8_row = _read_fragment(state, utf8_row, k, dfa, reading.utf8, fragments)
        token = fragments.ids[k]
    return state, utf8_row, token


@kernel
def _known_free(
    state: int, atom: int, number: int, reading: Reading, sets: Sets, memo: Memo
) -> int:
    """After this character: a hypothesis, from some member, with which the text is known to end or
    go on with a boundary; -1 if there is none."""
    n, n_coarse = len(reading.ends), (len(reading.step_start) - 1) // (2 * len(reading.ends))
    for m in range(sets.start[number], sets.start[number + 1]):
        index = (sets.boundary[m] * n + sets.hypothesis[m]) * n_coarse + reading.coarse[atom]
        for j in range(reading.step_start[index], reading.step_start[index + 1]):
            after = reading.step_to[j]
            if sets.may_bind[m] and memo.free[state, after] == ALIVE:
                return after
    return -1


@kernel
def surely_completed(
    state_pair: int, number: int, dfa: Dfa, reading: Reading, added: Added, sets: Sets, memo: Memo
) -> bool:
    """Inside a character, where `fixed_set.apart` holds: does the first character that can be read
    lead to acceptance, as far as is known, with no boundary before it? Then `completed` holds. (No
    is no answer.) It is read in three steps at most, as many as UTF-8 has rows in a row."""
    utf8_row, state = sets.utf8_row[number], memo.state[state_pair]
    entry = utf8_row
    if utf8_row == 0 or memo.text_state[state_pair] != 0:
        return False
    while entry > 0:
        utf8_row, entry = entry, -1
        for byte in range(0x80, 0xC0):
            after = step(state, byte, dfa.steps)
            if after != 0 and reading.utf8[utf8_row, byte] != -1:
                state, entry = after, reading.utf8[utf8_row, byte]
                break
    atom = -2 - entry
    if atom < 0 or added.next[0, atom] != 0:
        return False
    alive = False
    n, n_coarse = len(reading.ends), (len(reading.step_start) - 1) // (2 * len(reading.ends))
    for m in range(sets.start[number], sets.start[number + 1]):
        if not sets.may_bind[m]:
            return False
        index = sets.boundary[m] * n + sets.hypothesis[m]
        index = index * n_coarse + reading.coarse[atom]
        for j in range(reading.step_start[index], reading.step_start[index + 1]):
            alive |= known_at_end(state, reading.step_to[j], memo) == ALIVE
    return alive


@kernel
def _binds(number: int, w: Product) -> bool:
    """Can there be no boundary after each member of the set?"""
    return bool(w.sets.may_bind[w.sets.start[number] : w.sets.start[number + 1]].all())


@kernel
def _completes(
    state_pair: int, utf8_row: int, last: int, number: int, way: np.ndarray, w: Product
) -> bool:
    """The same for one id `last`: fill `way` with the fragments, -1 behind them. A depth-first
    search over as many as there is room for (a loop: recursive kernels cannot be kept on disk)."""
    states, rows, lasts = np.empty_like(way), np.empty_like(way), np.empty_like(way)
    tried = np.zeros_like(way)
    states[0], rows[0], lasts[0] = w.memo.state[state_pair], utf8_row, last
    depth, steps = 0, 0
    while depth >= 0 and steps < _STEPS:
        steps += 1
        if tried[depth] == len(w.fragments.ids):
            depth -= 1
            continue
        k = tried[depth]
        tried[depth] += 1
        q, r = _read_fragment(states[depth], rows[depth], k, w.dfa, w.reading.utf8, w.fragments)
        if q == 0 or r == -1:
            continue
        token = w.fragments.ids[k]
        if breaks(lasts[depth], token, w.pairs):
            continue
        if r >= 0 and depth + 1 < len(way):
            depth += 1
            states[depth], rows[depth], lasts[depth], tried[depth] = q, r, token, 0
        elif r < -1 and _then_free(state_pair, -2 - r, q, number, token, w):
            way[:] = -1
            way[: depth + 1] = tried[: depth + 1] - 1
            return True
    return False


@kernel
def _read_fragment(
    state: int, utf8_row: int, k: int, dfa: Dfa, utf8: np.ndarray, fragments: Fragments
) -> tuple[int, int]:
    """(DFA state, UTF-8 entry) after fragment k; state 0 where it is not readable as a whole."""
    for at in range(fragments.start[k], fragments.start[k + 1]):
        if utf8_row < 0 or state == 0:
            return 0, utf8_row
        state = step(state, fragments.data[at], dfa.steps)
        utf8_row = utf8[utf8_row, fragments.data[at]]
    return state, utf8_row


@kernel
def _then_free(state_pair: int, atom: int, state: int, number: int, token: int, w: Product) -> bool:
    """Having completed the character by `token`: from some member, can the text end or a boundary
    come, or any text at all where anything may follow the token?"""
    a = w.added.next[w.memo.text_state[state_pair], atom]
    if a < 0:
        return False
    p = intern_state_pair(state, a, w)
    for m in range(w.sets.start[number], w.sets.start[number + 1]):
        low, high = step_range(w.sets.boundary[m], w.sets.hypothesis[m], atom, w)
        for j in range(low, high):
            after = w.reading.step_to[j]
            if w.sets.may_bind[m] and (
                is_free(p, after, w) or (w.fixed_set.loose[token] and reads(p, after, w))
            ):
                return True
    return False


@kernel
def is_free(state_pair: int, hypothesis: int, w: Product) -> bool:
    """Can the text end at (state pair, hypothesis), or an ASCII character begin a new piece there
    and lead on? Memoised in `w.memo.free`."""
    if w.memo.free[state_pair, hypothesis] == UNKNOWN:
        q, a = w.memo.state[state_pair], w.memo.text_state[state_pair]
        free = w.dfa.accepting[q] and w.added.ends[a] and w.reading.ends[hypothesis]
        if not free:
            free = _begins_piece(q, a, hypothesis, w)
        if not free and stopped(w.watch):
            return False
        w.memo.free[state_pair, hypothesis] = ALIVE if free else DEAD
    return w.memo.free[state_pair, hypothesis] == ALIVE


@kernel
def _begins_piece(q: int, a: int, hypothesis: int, w: Product) -> bool:
    """Can an ASCII character begin a new piece here and lead on?"""
    atoms, states = ascii_steps(q, w)
    for i in range(len(atoms)):
        a2 = w.added.next[a, atoms[i]]
        low, high = step_range(1, hypothesis, atoms[i], w)
        for j in range(low, high):
            if a2 >= 0 and reads(intern_state_pair(states[i], a2, w), w.reading.step_to[j], w):
                return True
    return False
