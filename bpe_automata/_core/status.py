"""Can a text go on from a configuration? Two ANDs of bits say so, nearly always.

B(q)    the hypotheses with which one character may follow, a boundary before it, such that
        acceptance is within reach then, whatever ids spell the rest
ALIVE   if the hypotheses of a set after which a boundary may come meet B(q), or the text may end
"""

from __future__ import annotations

import numpy as np

from bpe_automata._core.steps import (
    ALIVE,
    COMPLETE,
    DEAD,
    PARTLY,
    UNDER_WAY,
    Arrays,
    Int,
    known_step,
    meets,
    want,
)
from bpe_automata._kernels import inlined, inner
from bpe_automata._kernels.hashing import longer


@inner
def leads_home(q: Int, steps: Arrays, text: Arrays, chars: Arrays, states: Arrays) -> bool:
    """Is a state good: does some text of steady atoms lead to acceptance? (Along shortest texts
    alone, so perhaps one is overlooked.)"""
    trans, byte_class, behind = steps
    utf8, steady = text[0], chars[1]
    accepting, good, distance = states[0], states[1], states[6]
    if len(distance) == 0 or good[q] != 0:
        return good[q] == 1
    path = np.empty(64, np.int64)
    n, state, inside, found = 0, q, np.int64(0), False
    while True:
        if inside == 0:
            if accepting[state] or good[state] == 1:
                found = True
                break
            if n == len(path):
                path = longer(path, 2 * n)
            path[n] = state
            n += 1
        moved = False
        for byte in range(256):
            entry = np.int64(utf8[inside, byte])
            if entry == -1 or (entry < -1 and not steady[-2 - entry]):
                continue
            after = known_step(state, byte, trans, byte_class, behind)
            if after > 0 and distance[after] >= 0 and distance[after] < distance[state]:
                inside = entry if entry > 0 else np.int64(0)
                state, moved = after, True
                break
        if not moved:
            break
    for k in range(n):
        good[path[k]] = 1 if found else 2
    if found:
        good[q] = 1
    return found


@inlined
def is_good(q: Int, steps: Arrays, text: Arrays, chars: Arrays, states: Arrays) -> bool:
    """What `leads_home` says, without a call where it is known."""
    good = states[1][q]
    return good == 1 or (good == 0 and leads_home(q, steps, text, chars, states))


@inner
def look_ahead(
    q: Int, steps: Arrays, text: Arrays, chars: Arrays, states: Arrays, wanted: np.ndarray
) -> None:
    """Find B, U1 and U0 of a state at a character's end, as bits of hypotheses. Steps that are not
    written down are wanted, unless they cannot add anything.

    B     some ASCII character may follow with a boundary before it, into a hypothesis from which
          every text can be read, and a good state (or the text may end)
    U1    some character may follow with a boundary before it, whatever comes then (of those beyond
          ASCII it is enough that they can begin)
    U0    the same without one
    """
    trans, byte_class, behind = steps
    utf8, coarse, steady, into, most = text[0], chars[0], chars[1], chars[2], chars[3]
    accepting, known, B, U1, U0 = states[0], states[2], states[3][q], states[4][q], states[5][q]
    whole, good, last, last_kind = True, False, np.int64(-1), np.int64(-1)
    for byte in range(0xF5):
        entry = np.int64(utf8[0, byte])
        if entry == -1:
            continue
        after = known_step(q, byte, trans, byte_class, behind)
        if after != 0 and entry >= 0:
            for w in range(len(B)):
                U1[w] |= most[1, w]
                U0[w] |= most[2, w]
            break
        if after < 0:
            want(-1 - after, wanted)
            whole = False
        if after <= 0:
            continue
        kind = np.int64(coarse[-2 - entry])
        if after == last and kind == last_kind:
            continue
        if after != last:
            good = is_good(after, steps, text, chars, states)
        last, last_kind = after, kind
        for w in range(len(B)):
            if steady[-2 - entry]:
                if good:
                    B[w] |= into[0, kind, w]
                if accepting[after]:
                    B[w] |= into[1, kind, w]
            U1[w] |= into[2, kind, w]
            U0[w] |= into[3, kind, w]
    known[q] = COMPLETE if whole else UNDER_WAY


@inner
def _status_within(
    q: Int, a: Int, H: Int, steps: Arrays, text: Arrays, chars: Arrays, states: Arrays, sets: Arrays
) -> Int:
    """The same in a text state that is not harmless: ALIVE if one ASCII character shows it."""
    trans, byte_class, behind = steps
    utf8, next_, ends, harmless = text
    coarse, into = chars[0], chars[2]
    for byte in range(128):
        entry = utf8[0, byte]
        if entry >= -1:
            continue
        a2 = next_[a, -2 - entry]
        if a2 < 0 or not harmless[a2]:
            continue
        q2 = known_step(q, byte, trans, byte_class, behind)
        if q2 <= 0:
            continue
        c = coarse[-2 - entry]
        if meets(sets[0][H], into[0, c]) and is_good(q2, steps, text, chars, states):
            return ALIVE
        if states[0][q2] and ends[a2] and meets(sets[0][H], into[1, c]):
            return ALIVE
    return PARTLY


@inner
def know_all(numbers: np.ndarray, n: Int, memo: Arrays, kit: Arrays, wanted: np.ndarray) -> None:
    """Find the statuses of configurations, numbers[:n] (int64; -1: none), that are not known yet,
    and keep them; those for which steps are wanted stay 0."""
    steps, text, chars, states, sets = kit[0], kit[1], kit[2], kit[3], kit[4]
    keys, statuses = memo[2], memo[6]
    accepting, _, known, B, U1, U0 = states[:6]
    breaks, binds, utf8_row, end, loose = sets[0], sets[1], sets[2], chars[4], chars[5][0]
    ends, harmless, n_words = text[2], text[3], breaks.shape[1]
    for i in range(n):
        c = numbers[i]
        if c < 0 or statuses[c] != 0:
            continue
        key = keys[c]
        q, a, H = key >> 40, (key >> 24) & 0xFFFF, key & 0xFFFFFF
        if utf8_row[H] != 0:
            statuses[c] = PARTLY
            continue
        bits = np.uint64(0)
        if accepting[q] and ends[a]:
            for w in range(n_words):
                bits |= breaks[H, w] & end[w]
        if bits != 0:
            statuses[c] = ALIVE
            continue
        if not harmless[a]:
            statuses[c] = _status_within(q, a, H, steps, text, chars, states, sets)
            continue
        before, calls = wanted[0], wanted[-1]
        if known[q] != COMPLETE:
            look_ahead(q, steps, text, chars, states, wanted)
        for w in range(n_words):
            bits |= breaks[H, w] & B[q, w]
        if bits != 0:
            wanted[0], wanted[-1] = before, calls  # they are not needed
            statuses[c] = ALIVE
            continue
        if known[q] != COMPLETE:
            continue
        for w in range(n_words):
            bits |= (breaks[H, w] & U1[q, w]) | (binds[H, w] & U0[q, w])
        statuses[c] = PARTLY if loose or bits != 0 else DEAD
