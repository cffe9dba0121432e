"""Where a part of a product begins and ends, and its form: see `_constructions.segments`.

The part is found on DFA states: of each state, all hypotheses with which text can get there from
where the part begins, and all states of the text automaton; which of them go together is not told
apart, so there may be a few too many.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata._kernels import kernel
from bpe_automata._kernels.hashing import grown, grown_rows
from bpe_automata._kernels.links import step
from bpe_automata._kernels.product import Product, added_step, intern_state_pair, step_range
from bpe_automata._kernels.references import by_reference
from bpe_automata._kernels.text_search import ascii_steps, reads, wide_steps
from bpe_automata._kernels.trie import walk
from bpe_automata._kernels.watch import poll, stopped

SHUT, OPEN = 1, 2  # of a DFA state: where the part ends, or goes on
_WAITING = 4  # to be looked at (again)
NEW, DONE = 1, 2  # of a hypothesis or text state at a DFA state
_HYPOTHESIS, _TEXT, _CROSSED = 0, 1, 2
# Kernels are called with `int(...)`: one type of number is one compiled version of each.
_MOST_TEXTS = 32  # at a cut; more are not worth telling apart
_TRIED = 8  # text states with which a hypothesis is tried before it is taken to be live


@by_reference
class Texts(NamedTuple):
    """How states of the text automaton differ from state 0. start int32 [n_states + 1] into atom
    int32: the atoms by which a state leads elsewhere; ever bool [n_atoms]: is there a state that
    reads it?"""

    start: np.ndarray
    atom: np.ndarray
    ever: np.ndarray


@kernel
def part(
    begin: int,
    texts_at: np.ndarray,
    hypotheses: np.ndarray,
    joint: np.ndarray,
    inside: np.ndarray,
    slot: np.ndarray,
    texts: Texts,
    limit: int,
    w: Product,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The DFA states that text leads to from state `begin`, up to the cuts.

    texts_at, hypotheses: int32, those at the beginning. joint, inside: bool [n_states]: no merge
    joins what is read into the DFA state with what is read out of it; it may be inside a character.
    slot: int32 [n_states], all -1: scratch, of which that of the returned states stays filled. A
    state is SHUT, which makes it a cut, if nothing lives on there without a boundary, or if it is a
    joint; unless an added token is read across it, or it is inside a character, or the part begins
    there.

    Returns (states int32 [n]; mode uint8 [n]; uint8 [n, hypotheses] and [n, text states]: not 0 for
    those met there). Of a part with over `limit` states, mode is all 0. A state waits again only
    for a hypothesis, a text state or a crossing that is new to it.
    """
    states, mode = np.full(16, begin, np.int32), np.zeros(16, np.uint8)
    hs = np.zeros((16, len(w.reading.ends)), np.uint8)
    ts = np.zeros((16, len(w.added.next)), np.uint8)
    count, n_open, at = 1, 1, 0
    slot[begin], mode[0] = 0, OPEN
    open_ = np.zeros(16, np.int32)  # a queue: in a chain, each state then waits for all before it
    for h in hypotheses:
        hs[0, h] = NEW
    for a in texts_at:
        ts[0, a] = NEW
    while at < n_open and count <= limit and not poll(w.watch):
        k = open_[at]
        at += 1
        q, mode[k] = int(states[k]), mode[k] & ~_WAITING
        if mode[k] != OPEN:
            mode[k] = SHUT if _is_cut(q, hs[k], ts[k], joint, inside, w) else OPEN
        if mode[k] == SHUT:
            continue
        found, n_found = _leads(q, hs[k], ts[k], texts, w)
        for i in range(n_found):
            to, kind, value = found[i, 0], found[i, 1], found[i, 2]
            j = slot[to]
            if j < 0:
                if count == len(states):
                    states, mode, hs, ts = _doubled(states, mode, hs, ts)
                j, count = count, count + 1
                slot[to], states[j] = j, to
            if _is_new(kind, value, j, mode, hs, ts) and not mode[j] & _WAITING:
                mode[j] |= _WAITING
                open_ = grown(open_, n_open)
                open_[n_open] = j
                n_open += 1
    if count > limit:
        mode[:] = 0
    if w.memo.n_state_pairs[0] > len(w.memo.state) or stopped(w.watch):  # this is asked for again
        slot[states[:count]] = -1
    return states[:count].copy(), mode[:count].copy(), hs[:count].copy(), ts[:count].copy()


@kernel
def _is_new(
    kind: int, value: int, j: int, mode: np.ndarray, hs: np.ndarray, ts: np.ndarray
) -> bool:
    """Note what leads to state j; did it have that yet?"""
    if kind == _HYPOTHESIS and hs[j, value] == 0:
        hs[j, value] = NEW
    elif kind == _TEXT and ts[j, value] == 0:
        ts[j, value] = NEW
    elif kind == _CROSSED and not mode[j] & OPEN:
        mode[j] = mode[j] & _WAITING | OPEN
    else:
        return False
    return True


@kernel
def _doubled(
    states: np.ndarray, mode: np.ndarray, hs: np.ndarray, ts: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    n = len(states)
    more = np.zeros(2 * n, np.uint8)
    more[:n] = mode
    more_hs = np.zeros((2 * n, hs.shape[1]), np.uint8)
    more_hs[:n] = hs
    more_ts = np.zeros((2 * n, ts.shape[1]), np.uint8)
    more_ts[:n] = ts
    return grown(states, n), more, more_hs, more_ts


@kernel
def _is_cut(
    q: int, hs: np.ndarray, ts: np.ndarray, joint: np.ndarray, inside: np.ndarray, w: Product
) -> bool:
    if inside[q]:
        return False
    at = np.flatnonzero(ts)
    if len(at) > _MOST_TEXTS:
        return False
    if joint[q]:
        return True
    for h in np.flatnonzero(hs):
        for a in at:
            if lives_on(int(intern_state_pair(q, int(a), w)), int(h), 0, w):
                return False
    return True


@kernel
def lives_on(state_pair: int, h: int, boundary: int, w: Product) -> bool:
    """Does some character lead on to acceptance, with or without a boundary before it?"""
    q, a = w.memo.state[state_pair], w.memo.text_state[state_pair]
    for wide in range(2):
        if wide == 1:
            atoms, states = wide_steps(0, int(q), w)
        else:
            atoms, states = ascii_steps(int(q), w)
        for i in range(len(atoms)):
            a2 = w.added.next[a, atoms[i]]
            low, high = step_range(boundary, h, int(atoms[i]), w)
            if a2 < 0 or low == high:
                continue
            p2 = intern_state_pair(int(states[i]), int(a2), w)
            for j in range(low, high):
                if reads(int(p2), int(w.reading.step_to[j]), w):
                    return True
    return False


@kernel
def _leads(
    q: int, hs: np.ndarray, ts: np.ndarray, texts: Texts, w: Product
) -> tuple[np.ndarray, int]:
    """Rows (DFA state, kind, value) of what the NEW ones lead to; they are marked DONE, but not the
    hypotheses that are dead with all text states so far."""
    found, count = np.empty((256, 3), np.int32), 0
    fresh = _live_ones(q, hs, ts, w)
    ends, any_live = False, False
    for h in range(len(hs)):
        any_live |= hs[h] == DONE
        ends |= hs[h] == DONE and w.reading.ends[h]
    if not any_live:
        return found, count
    for wide in range(2):
        if wide == 1:
            atoms, states = wide_steps(0, int(q), w)
        else:
            atoms, states = ascii_steps(int(q), w)
        for i in range(len(atoms)):
            if not texts.ever[atoms[i]]:
                continue
            for h in fresh:
                for b in range(2):
                    low, high = step_range(b, int(h), int(atoms[i]), w)
                    for j in range(low, high):
                        after = int(w.reading.step_to[j])
                        found, count = _put(int(states[i]), _HYPOTHESIS, after, found, count)
        found, count = _text_leads(atoms, states, ts, texts, w.added.next, found, count)
    if ends:
        found, count = _added_leads(q, ts, found, count, w)
    for a in range(len(ts)):
        if ts[a] == NEW:
            ts[a] = DONE
    return found, count


@kernel
def _live_ones(q: int, hs: np.ndarray, ts: np.ndarray, w: Product) -> np.ndarray:
    """The NEW hypotheses that live with some text state, marked DONE."""
    at, fresh, count = np.flatnonzero(ts), np.empty(len(hs), np.int32), 0
    for h in range(len(hs)):
        if hs[h] != NEW:
            continue
        live = len(at) > _TRIED
        for a in at[:_TRIED]:
            live = live or reads(int(intern_state_pair(q, int(a), w)), h, w)
        if live:
            hs[h], fresh[count] = DONE, h
            count += 1
    return fresh[:count]


@kernel
def _put(q: int, kind: int, value: int, found: np.ndarray, count: int) -> tuple[np.ndarray, int]:
    if count == len(found):
        found = grown_rows(found)
    found[count, 0], found[count, 1], found[count, 2] = q, kind, value
    return found, count + 1


@kernel
def _text_leads(
    atoms: np.ndarray,
    states: np.ndarray,
    ts: np.ndarray,
    texts: Texts,
    text_next: np.ndarray,
    found: np.ndarray,
    count: int,
) -> tuple[np.ndarray, int]:
    """Where NEW text states lead: each as state 0 does, but by a few atoms."""
    head, link = np.full(text_next.shape[1], -1, np.int32), np.empty(len(atoms), np.int32)
    for i in range(len(atoms)):
        if text_next[0, atoms[i]] >= 0:
            after = int(text_next[0, atoms[i]])
            found, count = _put(int(states[i]), _TEXT, after, found, count)
        link[i] = head[atoms[i]]
        head[atoms[i]] = i
    for a in range(len(ts)):
        if ts[a] != NEW:
            continue
        for j in range(texts.start[a], texts.start[a + 1]):
            i = head[texts.atom[j]]
            while i >= 0:
                after = int(text_next[a, texts.atom[j]])
                if after >= 0:
                    found, count = _put(int(states[i]), _TEXT, after, found, count)
                i = link[i]
    return found, count


@kernel
def _added_leads(
    q: int, ts: np.ndarray, found: np.ndarray, count: int, w: Product
) -> tuple[np.ndarray, int]:
    """Where added tokens lead, and what they are read across."""
    steps, begin = w.dfa.steps, int(w.dfa.added_from[q])
    at = np.flatnonzero(ts)
    for k in range(len(w.added.ids)):
        low, high = w.added.start[k], w.added.start[k + 1]
        if w.added.ids[k] < 0 or begin == 0:
            continue
        after = int(w.dfa.after_added[walk(steps, begin, w.added.data[low:high])])
        possible = False
        for a in at:
            a2 = int(w.added.after[w.added.after_row[a], k])
            if after != 0 and a2 >= 0:
                found, count = _put(after, _TEXT, a2, found, count)
                possible = True
        if not possible:
            continue
        found, count = _put(after, _HYPOTHESIS, 0, found, count)
        for end in range(low + 1, high):
            state = walk(steps, begin, w.added.data[low:end])
            found, count = _put(int(state), _CROSSED, 0, found, count)
    return found, count


# The form of a part: what it is, apart from the states at which it stands in the product.
#
# Flags say how text goes on from a configuration to acceptance: AFTER with a boundary right there
# (or the end of the text), WITHIN without one.

AFTER, WITHIN = 1, 2
_ROW, _CUT = -1, -2  # in the form: what follows


@kernel
def all_flags(q: int, at: np.ndarray, hypotheses: np.ndarray, w: Product) -> np.ndarray:
    """int32 [text states, hypotheses]: how text goes on from DFA state q: AFTER, WITHIN, both or
    neither."""
    found = np.zeros((len(at), len(hypotheses)), np.int32)
    for i in range(len(at)):
        if poll(w.watch):
            break
        state_pair = int(intern_state_pair(q, int(at[i]), w))
        for j in range(len(hypotheses)):
            found[i, j] = _flags_of(state_pair, int(hypotheses[j]), w)
    return found


@kernel
def _flags_of(state_pair: int, h: int, w: Product) -> int:
    q, a = w.memo.state[state_pair], w.memo.text_state[state_pair]
    flags = WITHIN if lives_on(state_pair, h, 0, w) else 0
    if w.dfa.accepting[q] and w.added.ends[a] and w.reading.ends[h]:
        return flags | AFTER
    if lives_on(state_pair, h, 1, w):
        return flags | AFTER
    if w.reading.ends[h]:
        for k in range(len(w.added.ids)):
            a2, q2 = added_step(int(q), int(a), k, w)
            if a2 >= 0 and q2 != 0 and reads(int(intern_state_pair(int(q2), int(a2), w)), 0, w):
                return flags | AFTER
    return flags


@kernel
def form_of(
    begin: int,
    mode: np.ndarray,
    hs: np.ndarray,
    ts: np.ndarray,
    slot: np.ndarray,
    inside: np.ndarray,
    local: np.ndarray,
    w: Product,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The DFA from `begin` to the cuts, numbered breadth-first by byte, and how text goes on there.

    mode, hs, ts, slot: as `part` leaves them. local: int32 [n_states], all -1: scratch, left as it
    was. Returns (order int32: the DFA state of each number; is_cut int32: of each number, 1 if it
    is a cut, else 0; form int32: see `_put_configuration` and `_put_cut`). Each DFA state has one
    number. Equal forms are isomorphic parts that go on alike, and if the DFA is minimal, equal
    languages between cuts have equal forms.
    """
    order, n_order = np.empty(64, np.int32), 1
    is_cut, form, n_form = np.zeros(64, np.int32), np.empty(256, np.int32), 0
    order[0], local[begin] = begin, 0
    at = 0
    while at < n_order and not poll(w.watch):
        q, k = order[at], slot[order[at]]
        is_cut = grown(is_cut, at)
        is_cut[at] = k >= 0 and mode[k] == SHUT
        if is_cut[at]:
            form, n_form = _put_cut(int(q), hs[k], ts[k], form, n_form, w)
        else:
            form, n_form, order, n_order = _put_configuration(
                int(q), slot, inside, local, form, n_form, order, n_order, w
            )
        at += 1
    for i in range(n_order):
        local[order[i]] = -1
    return order[:n_order].copy(), is_cut[:n_order].copy(), form[:n_form].copy()


@kernel
def _put_cut(
    q: int, hs: np.ndarray, ts: np.ndarray, form: np.ndarray, n_form: int, w: Product
) -> tuple[np.ndarray, int]:
    """Append -2, the number of text states, and of hypotheses, that come up at a cut; which ones;
    and the flags of each pair."""
    at, hypotheses = np.flatnonzero(ts), np.flatnonzero(hs)
    flags = all_flags(q, at, hypotheses, w)
    size = 3 + len(at) + len(hypotheses) + flags.size
    while n_form + size > len(form):
        form = grown(form, len(form))
    form[n_form], form[n_form + 1], form[n_form + 2] = _CUT, len(at), len(hypotheses)
    n_form += 3
    for a in at:
        form[n_form] = a
        n_form += 1
    for h in hypotheses:
        form[n_form] = h
        n_form += 1
    for flag in flags.ravel():
        form[n_form] = flag
        n_form += 1
    return form, n_form


@kernel
def _put_configuration(
    q: int,
    slot: np.ndarray,
    inside: np.ndarray,
    local: np.ndarray,
    form: np.ndarray,
    n_form: int,
    order: np.ndarray,
    n_order: int,
    w: Product,
) -> tuple[np.ndarray, int, np.ndarray, int]:
    """Append -1, whether the state accepts, and (byte, number + 1) where that changes; 0 for what
    is not live. States that are met first are numbered."""
    while n_form + 2 + 2 * 256 > len(form):
        form = grown(form, len(form))
    form[n_form], form[n_form + 1] = _ROW, np.int32(w.dfa.accepting[q])
    n_form += 2
    last = 0
    for byte in range(256):
        after = step(q, byte, w.dfa.steps)
        number = 0
        if after != 0 and (slot[after] >= 0 or inside[after]):
            if local[after] < 0:
                order = grown(order, n_order)
                order[n_order], local[after] = after, n_order
                n_order += 1
            number = local[after] + 1
        if number != last:
            form[n_form], form[n_form + 1] = byte, number
            n_form, last = n_form + 2, number
    return form, n_form, order, n_order


@kernel
def completions(
    state_pair: int, utf8_row: int, hypothesis: int, boundary: int, w: Product
) -> tuple[np.ndarray, int]:
    """The live (state pair, hypothesis) that the rest of a character leads to, from UTF-8 row
    `utf8_row`; `hypothesis` is that before the character, `boundary` whether there is one there."""
    found, count = np.empty((64, 2), np.int32), 0
    a = w.memo.text_state[state_pair]
    atoms, states = wide_steps(utf8_row, int(w.memo.state[state_pair]), w)
    for i in range(len(atoms)):
        a2 = w.added.next[a, atoms[i]]
        if a2 < 0:
            continue
        low, high = step_range(boundary, hypothesis, int(atoms[i]), w)
        for j in range(low, high):
            p2 = int(intern_state_pair(int(states[i]), int(a2), w))
            if reads(p2, int(w.reading.step_to[j]), w):
                if count == len(found):
                    found = grown_rows(found)
                found[count, 0], found[count, 1] = p2, w.reading.step_to[j]
                count += 1
    return found, count
