"""The status of a node of the product: ALIVE, PARTLY or DEAD (see `kernels.world`)."""

from __future__ import annotations

import numpy as np

from bpe_automata.kernels import kernel
from bpe_automata.kernels.hashing import EMPTY, grown, keys_with_room, slot_of, table_size
from bpe_automata.kernels.split_characters import (
    completed,
    covered,
    is_free,
    surely_completed,
)
from bpe_automata.kernels.steady import suspects_left
from bpe_automata.kernels.text_search import reads
from bpe_automata.kernels.watch import poll
from bpe_automata.kernels.world import (
    ALIVE,
    DEAD,
    PARTLY,
    UNKNOWN,
    World,
    added_step,
    at_once,
    intern_place,
    known_status,
    remember_status,
    set_ends,
    shown_status,
    status_at_once,
    step_range,
)


@kernel
def node_status(place: int, number: int, w: World) -> int:
    """ALIVE, PARTLY or DEAD, see the module's docstring; memoised."""
    known = known_status(place, number, w.memo)
    if known != UNKNOWN:
        return known
    shown = _found_by_shown(place, number, w)
    if shown != UNKNOWN:
        remember_status(place, number, shown, w.memo, w.watch)
        return shown
    row = w.sets.row[number]
    status, suspects = DEAD, _steady_suspects(place, number, w)
    if row != 0:
        if covered(place, row, number, w):
            status = ALIVE
        elif _leads_on(place, row, number, -1, w):
            status = ALIVE if completed(place, row, number, w) else PARTLY
    elif (
        (
            w.dfa.accepting[w.memo.state[place]]
            and w.added.ends[w.memo.added[place]]
            and set_ends(number, w)
        )
        or suspects == 0
        or _leads_on(place, 0, number, 1, w)
        or _added_leads_on(place, number, w)
    ):
        status = ALIVE
    elif suspects > 0 or _leads_on(place, 0, number, 0, w):
        status = PARTLY
    remember_status(place, number, status, w.memo, w.watch)
    return status


@kernel
def _found_by_shown(place: int, number: int, w: World) -> int:
    """`shown_status`, having found out where its texts lead: other sets share their ends."""
    shown, given_up = w.sets.shown[number], w.sets.given_up[number]
    if w.memo.added[place] != 0:
        return UNKNOWN
    for i in range(len(shown)):
        if shown[i, 1] == 0:
            break
        q, packed, hypothesis = w.memo.state[place], shown[i, 0], (shown[i, 1] >> 2) - 1
        for _ in range(shown[i, 1] & 3):
            q = w.dfa.trans[q, w.dfa.byte_class[packed & 0xFF]]
            packed >>= 8
        if q == 0:
            return UNKNOWN
        if w.sets.row[number] == 0 or given_up:
            leads = reads(q, hypothesis, w)
        else:
            leads = is_free(q, hypothesis, w)
        if not leads:
            return UNKNOWN
    return shown_status(w.memo.state[place], number, at_once(w))


@kernel
def _steady_suspects(place: int, number: int, w: World) -> int:
    """See `kernels.steady.suspects_left`; NONE too where the node is not a steady one."""
    state, text = w.memo.state[place], w.memo.added[place]
    if number != w.steady.number or w.steady.distance[state] == 0:
        return -1
    begins = np.ones(256, np.bool_)
    if text != 0:
        _begins_alike(text, w.reading.utf8[0], w.added.next, begins)
    return suspects_left(state, text == 0, begins, w.dfa.trans, w.dfa.byte_class, w.steady, w.pairs)


@kernel
def _begins_alike(text: int, utf8: np.ndarray, step: np.ndarray, begins: np.ndarray) -> None:
    """Which bytes are characters after which it does not matter that the text automaton was in
    `text`, and not in state 0?"""
    for byte in range(256):
        atom = -2 - utf8[byte]
        begins[byte] = atom >= 0 and step[text, atom] == step[0, atom]


@kernel
def node_statuses(places: np.ndarray, numbers: np.ndarray, w: World) -> np.ndarray:
    """uint8: `node_status` of each of many nodes."""
    found, known = np.empty(len(places), np.uint8), at_once(w)
    for k in range(len(places)):
        if poll(w.watch):
            break
        # Most nodes of an automaton with strings are inside a character.
        place, number, status = places[k], numbers[k], UNKNOWN
        if w.memo.added[place] == 0:
            status = status_at_once(w.memo.state[place], number, known)
        if (
            status == UNKNOWN
            and w.steady.apart
            and surely_completed(place, number, w.dfa, w.reading, w.added, w.sets, w.memo)
        ):
            status = ALIVE
            remember_status(place, number, status, w.memo, w.watch)
        if status == UNKNOWN:
            status = node_status(place, number, w)
        found[k] = status
    return found


@kernel
def _leads_on(place: int, row: int, number: int, boundary: int, w: World) -> bool:
    """Does some character (or the rest of one, from UTF-8 row `row`) lead on to acceptance, with
    (boundary 1) or without (0) a boundary before it? In a partly read character (boundary -1) each
    member of the set says itself whether there is one. Stops at the first success.
    """
    if boundary >= 0 and not _some_may(number, boundary, w):
        return False
    rows, at = np.empty(64, np.int32), np.empty(64, np.int32)
    read = np.empty(
        64, np.int64
    )  # the bytes read so far, as in `world.Sets`, times 4, plus how many
    rows[0], at[0], read[0] = row, w.memo.state[place], 0
    seen, n_seen, open_ = np.full(table_size(32), EMPTY, np.int64), 0, 1
    while open_ > 0 and not poll(w.watch):
        open_ -= 1
        r, q, before = rows[open_], at[open_], read[open_]
        last_entry, last_after = 0, 0
        for byte in range(256):
            after = w.dfa.trans[q, w.dfa.byte_class[byte]]
            entry = w.reading.utf8[r, byte]
            if after == 0 or entry == -1 or (entry == last_entry and after == last_after):
                continue
            last_entry, last_after = entry, after
            if byte >= 0x80:
                key = np.int64(after) * (1 << 32) + (entry if entry > 0 else (1 << 31) - entry)
                slot = slot_of(seen, key)
                if seen[slot] == key:
                    continue
                if 2 * n_seen >= len(seen) - 2:
                    seen = keys_with_room(seen, 2 * n_seen + 2)
                    slot = slot_of(seen, key)
                seen[slot] = key
                n_seen += 1
            n_bytes = (before & 3) + 1
            text = (before >> 2 | np.int64(byte) << (8 * (n_bytes - 1))) << 2 | n_bytes
            if entry > 0:
                rows, at, read = grown(rows, open_), grown(at, open_), grown(read, open_)
                rows[open_], at[open_], read[open_] = entry, after, text
                open_ += 1
                continue
            hypothesis = _character_leads_on(place, -2 - entry, after, number, boundary, w)
            if hypothesis < 0:
                continue
            if w.added.next[0, -2 - entry] == 0 and (
                (boundary < 0 and w.sets.given_up[number]) or (boundary == 1 and n_bytes == 1)
            ):
                w.sets.shown[number, 0, 0] = text >> 2
                w.sets.shown[number, 0, 1] = (hypothesis + 1) << 2 | n_bytes
                w.sets.shown[number, 0, 2] = -2 - entry
            return True
    return False


@kernel
def _some_may(number: int, boundary: int, w: World) -> bool:
    """May any character follow some member of a set with (1) or without (0) a boundary before it?
    Where a text is one pretoken none does, and there is no need to try them all."""
    may, n = w.sets.may_break if boundary == 1 else w.sets.may_bind, len(w.reading.ends)
    n_coarse = (len(w.reading.step_start) - 1) // (2 * n)
    for m in range(w.sets.start[number], w.sets.start[number + 1]):
        first = (boundary * n + w.sets.hypothesis[m]) * n_coarse
        if may[m] and w.reading.step_start[first] < w.reading.step_start[first + n_coarse]:
            return True
    return False


@kernel
def _character_leads_on(
    place: int, atom: int, state: int, number: int, boundary: int, w: World
) -> int:
    """A hypothesis with which this character, which leads the DFA to `state`, leads on from some
    member of the set; -1 if there is none."""
    a = w.added.next[w.memo.added[place], atom]
    if a < 0:
        return -1
    for m in range(w.sets.start[number], w.sets.start[number + 1]):
        if (boundary == 1 and not w.sets.may_break[m]) or (
            boundary == 0 and not w.sets.may_bind[m]
        ):
            continue
        b = w.sets.boundary[m] if boundary < 0 else boundary
        low, high = step_range(b, w.sets.hypothesis[m], atom, w)
        for j in range(low, high):
            p = intern_place(state, a, w)
            if reads(p, w.reading.step_to[j], w):
                return w.reading.step_to[j]
    return -1


@kernel
def _added_leads_on(place: int, number: int, w: World) -> bool:
    """Does an added token lead on from here to acceptance?"""
    if not set_ends(number, w):
        return False
    state, added = w.memo.state[place], w.memo.added[place]
    for k in range(len(w.added.ids)):
        a2, q2 = added_step(state, added, k, w)
        if a2 < 0 or q2 == 0:
            continue
        p2 = intern_place(q2, a2, w)
        if reads(p2, 0, w):
            return True
    return False
