"""Can a text go on from a configuration? Two ANDs of bits say so, nearly always.

B(q)    the hypotheses with which one character may follow, a boundary before it, such that
        acceptance is within reach then, whatever ids spell the rest
ALIVE   if the hypotheses of a set after which a boundary may come meet B(q), or the text may end
"""

from __future__ import annotations

import numpy as np

from bpe_automata._core.steps import (
    ALIVE,
    BINDS,
    BREAKS,
    COARSE,
    COMPLETE,
    DEAD,
    ENDS,
    HARMLESS,
    KEY,
    PARTLY,
    STATUS,
    STEADY,
    UNDER_WAY,
    Arrays,
    Int,
    want,
)
from bpe_automata._kernels import inlined, inner
from bpe_automata._kernels.links import known_step

B, U1, U0 = 0, 1, 2  # of `states.looks`, see `look_ahead`


@inner
def leads_home(q: Int, base: Arrays) -> bool:
    """Is a state good: does some text of steady atoms lead to acceptance? (Along shortest texts
    alone, so perhaps one is overlooked.)"""
    steps, text, chars, states = base
    trans, byte_class, behind = steps
    utf8, atoms = text[0], chars[0]
    accepting, good, far = states[0], states[1], states[4]
    if len(behind) > 0 or len(far) == 0 or good[q] != 0:  # a linked one tells beforehand
        return good[q] == 1
    found = False
    for turn in range(2):  # the second one notes what the first one found
        state, inside, moved = q, np.int64(0), True
        while moved:
            if inside == 0:
                if accepting[state] or good[state] == 1:
                    found = True
                    break
                if turn == 1:
                    good[state] = 1 if found else 2
            moved = False
            for byte in range(256):
                entry = np.int64(utf8[inside, byte])
                if entry == -1 or (entry < -1 and atoms[-2 - entry, STEADY] == 0):
                    continue
                after = np.int64(trans[state, byte_class[byte]])
                if after > 0 and far[after] >= 0 and far[after] < far[state]:
                    inside = entry if entry > 0 else np.int64(0)
                    state, moved = after, True
                    break
    if found:
        good[q] = 1
    return found


@inner
def look_ahead(q: Int, base: Arrays, wanted: np.ndarray) -> None:
    """Find B, U1 and U0 of a state at a character's end, as bits of hypotheses. Steps that are not
    written down are wanted, unless they cannot add anything.

    B     some ASCII character may follow with a boundary before it, into a hypothesis from which
          every text can be read, and a good state (or the text may end)
    U1    some character may follow with a boundary before it, whatever comes then (of those beyond
          ASCII it is enough that they can begin)
    U0    the same without one
    """
    steps, text, chars, states = base
    trans, byte_class, behind = steps
    utf8, atoms, into = text[0], chars[0], chars[1]
    accepting, marks, known, looks = states[0], states[1], states[2], states[3]
    n_words, most = looks.shape[2], into.shape[1] - 1
    whole, good, last, last_kind = True, False, np.int64(-1), np.int64(-1)
    for byte in range(0xF5):
        entry = np.int64(utf8[0, byte])
        if entry == -1:
            continue
        after = known_step(q, byte_class[byte], trans, behind)
        if after != 0 and entry >= 0:
            for w in range(n_words):
                looks[q, U1, w] |= into[2, most, w]
                looks[q, U0, w] |= into[3, most, w]
            break
        if after < 0:
            want(-1 - after, wanted)
            whole = False
        if after <= 0:
            continue
        kind = np.int64(atoms[-2 - entry, COARSE])
        if after == last and kind == last_kind:
            continue
        if after != last:
            good = marks[after] == 1 or leads_home(after, base)
        last, last_kind = after, kind
        for w in range(n_words):
            if atoms[-2 - entry, STEADY] != 0:
                if good:
                    looks[q, B, w] |= into[0, kind, w]
                if accepting[after]:
                    looks[q, B, w] |= into[1, kind, w]
            looks[q, U1, w] |= into[2, kind, w]
            looks[q, U0, w] |= into[3, kind, w]
    known[q] = COMPLETE if whole else UNDER_WAY


@inlined
def _status_within(q: Int, a: Int, H: Int, base: Arrays, bits: np.ndarray) -> Int:
    """The same in a text state that is not harmless: ALIVE if one ASCII character shows it."""
    steps, text, chars, states = base
    trans, byte_class, behind = steps
    utf8, next_, told = text
    atoms, into, accepting, good = chars[0], chars[1], states[0], states[1]
    status = np.int64(PARTLY)
    for byte in range(128):
        entry = utf8[0, byte]
        if entry >= -1:
            continue
        a2 = next_[a, -2 - entry]
        if a2 < 0 or not told[a2, HARMLESS]:
            continue
        q2 = known_step(q, byte_class[byte], trans, behind)
        if q2 <= 0:
            continue
        c, goes_on, may_end = atoms[-2 - entry, COARSE], np.uint64(0), np.uint64(0)
        for w in range(bits.shape[2]):
            goes_on |= bits[H, BREAKS, w] & into[0, c, w]
            may_end |= bits[H, BREAKS, w] & into[1, c, w]
        if (may_end != 0 and accepting[q2] and told[a2, ENDS]) or (
            goes_on != 0 and good[q2] != 2 and (good[q2] == 1 or leads_home(q2, base))
        ):
            status = np.int64(ALIVE)
            break
    return status


@inner
def know_all(numbers: np.ndarray, n: Int, memo: Arrays, kit: Arrays, wanted: np.ndarray) -> None:
    """Find the statuses of configurations, numbers[:n] (int64; -1: none), that are not known yet,
    and keep them; those for which steps are wanted stay 0."""
    base, sets, _, added, _ = kit
    text, chars, states = base[1], base[2], base[3]
    met, accepting, known, looks = memo[2], states[0], states[2], states[3]
    bits, utf8_row, end, told = sets[0], sets[1], chars[2], text[2]
    n_words, loose = bits.shape[2], len(added[4]) > 0
    for i in range(n):
        c = numbers[i]
        if c < 0 or met[c, STATUS] != 0:
            continue
        key = met[c, KEY]
        q, a, H = key >> 40, (key >> 24) & 0xFFFF, key & 0xFFFFFF
        if utf8_row[H] != 0:
            met[c, STATUS] = PARTLY
            continue
        some = np.uint64(0)
        if accepting[q] and told[a, ENDS]:
            for w in range(n_words):
                some |= bits[H, BREAKS, w] & end[w]
        if some != 0:
            met[c, STATUS] = ALIVE
            continue
        if not told[a, HARMLESS]:
            met[c, STATUS] = _status_within(q, a, H, base, bits)
            continue
        before, calls = wanted[0], wanted[-1]
        if known[q] != COMPLETE:
            look_ahead(q, base, wanted)
        for w in range(n_words):
            some |= bits[H, BREAKS, w] & looks[q, B, w]
        if some != 0:
            wanted[0], wanted[-1] = before, calls  # they are not needed
            met[c, STATUS] = ALIVE
            continue
        if known[q] != COMPLETE:
            continue
        for w in range(n_words):
            some |= bits[H, BREAKS, w] & looks[q, U1, w]
            some |= bits[H, BINDS, w] & looks[q, U0, w]
        met[c, STATUS] = PARTLY if loose or some != 0 else DEAD
