"""What a part of a product is, apart from where it stands: see `kernels.segments`.

Flags say how text goes on from a node to acceptance: AFTER with a boundary right there (or the end
of the text), WITHIN without one.
"""

from __future__ import annotations

import numpy as np

from bpe_automata.kernels import kernel
from bpe_automata.kernels.hashing import grown, grown_rows
from bpe_automata.kernels.segments import SHUT, lives_on
from bpe_automata.kernels.text_search import reads, wide_steps
from bpe_automata.kernels.watch import poll
from bpe_automata.kernels.world import World, added_step, intern_place, step_range

AFTER, WITHIN = 1, 2
_ROW, _CUT = -1, -2  # in the form: what follows


@kernel
def all_flags(q: int, at: np.ndarray, hypotheses: np.ndarray, w: World) -> np.ndarray:
    """int32 [text states, hypotheses]: how text goes on from DFA state q: AFTER, WITHIN, both or
    neither."""
    found = np.zeros((len(at), len(hypotheses)), np.int32)
    for i in range(len(at)):
        if poll(w.watch):
            break
        place = int(intern_place(q, int(at[i]), w))
        for j in range(len(hypotheses)):
            found[i, j] = _flags_of(place, int(hypotheses[j]), w)
    return found


@kernel
def _flags_of(place: int, h: int, w: World) -> int:
    q, a = w.memo.state[place], w.memo.added[place]
    flags = WITHIN if lives_on(place, h, 0, w) else 0
    if w.dfa.accepting[q] and w.added.ends[a] and w.reading.ends[h]:
        return flags | AFTER
    if lives_on(place, h, 1, w):
        return flags | AFTER
    if w.reading.ends[h]:
        for k in range(len(w.added.ids)):
            a2, q2 = added_step(int(q), int(a), k, w)
            if a2 >= 0 and q2 != 0 and reads(int(intern_place(int(q2), int(a2), w)), 0, w):
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
    w: World,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The DFA from `begin` to the cuts, numbered breadth-first by byte, and how text goes on there.

    mode, hs, ts, slot: as `part` leaves them. local: int32 [n_states], all -1: scratch, left as it
    was. Returns (order int32: the DFA state of each number; is_cut int32: of each number, 1 if it
    is a cut, else 0; form int32: see `_put_node` and `_put_cut`). Each DFA state has one number.
    Equal forms are isomorphic parts that go on alike, and if the DFA is minimal, equal languages
    between cuts have equal forms.
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
            form, n_form, order, n_order = _put_node(
                int(q), slot, inside, local, form, n_form, order, n_order, w
            )
        at += 1
    for i in range(n_order):
        local[order[i]] = -1
    return order[:n_order].copy(), is_cut[:n_order].copy(), form[:n_form].copy()


@kernel
def _put_cut(
    q: int, hs: np.ndarray, ts: np.ndarray, form: np.ndarray, n_form: int, w: World
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
def _put_node(
    q: int,
    slot: np.ndarray,
    inside: np.ndarray,
    local: np.ndarray,
    form: np.ndarray,
    n_form: int,
    order: np.ndarray,
    n_order: int,
    w: World,
) -> tuple[np.ndarray, int, np.ndarray, int]:
    """Append -1, whether the state accepts, and (byte, number + 1) where that changes; 0 for what
    is not live. States that are met first are numbered."""
    while n_form + 2 + 2 * 256 > len(form):
        form = grown(form, len(form))
    form[n_form], form[n_form + 1] = _ROW, np.int32(w.dfa.accepting[q])
    n_form += 2
    last = 0
    for byte in range(256):
        after = w.dfa.trans[q, w.dfa.byte_class[byte]]
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
    place: int, row: int, hypothesis: int, boundary: int, w: World
) -> tuple[np.ndarray, int]:
    """The live (place, hypothesis) that the rest of a character leads to, from UTF-8 row `row`;
    `hypothesis` is that before the character, `boundary` whether there is one there."""
    found, count = np.empty((64, 2), np.int32), 0
    a = w.memo.added[place]
    atoms, states = wide_steps(row, int(w.memo.state[place]), w)
    for i in range(len(atoms)):
        a2 = w.added.next[a, atoms[i]]
        if a2 < 0:
            continue
        low, high = step_range(boundary, hypothesis, int(atoms[i]), w)
        for j in range(low, high):
            p2 = int(intern_place(int(states[i]), int(a2), w))
            if reads(p2, int(w.reading.step_to[j]), w):
                if count == len(found):
                    found = grown_rows(found)
                found[count, 0], found[count, 1] = p2, w.reading.step_to[j]
                count += 1
    return found, count
