"""The status of configurations of the product, ALIVE, PARTLY or DEAD (see `_kernels.product`): of
one configuration by a search, and for many hypothesis sets at once by the certificates that they
share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata._kernels import kernel
from bpe_automata._kernels.fixed_set import candidates_left
from bpe_automata._kernels.hashing import EMPTY, grown, keys_with_room, mix, slot_of, table_size
from bpe_automata._kernels.links import step
from bpe_automata._kernels.product import (
    ALIVE,
    DEAD,
    PARTLY,
    UNKNOWN,
    Product,
    added_step,
    intern_state_pair,
    known_status,
    quick_status,
    remember_status,
    set_ends,
    shown_status,
    step_range,
)
from bpe_automata._kernels.references import by_reference
from bpe_automata._kernels.split_characters import (
    completed,
    covered,
    is_free,
    surely_completed,
)
from bpe_automata._kernels.text_search import reads
from bpe_automata._kernels.watch import poll, stopped


@kernel
def status_at(state_pair: int, number: int, w: Product) -> int:
    """ALIVE, PARTLY or DEAD, see the module's docstring; memoised."""
    known = known_status(state_pair, number, w.memo)
    if known != UNKNOWN:
        return known
    shown = _found_by_shown(state_pair, number, w)
    if shown != UNKNOWN:
        remember_status(state_pair, number, shown, w.memo, w.watch)
        return shown
    utf8_row = w.sets.utf8_row[number]
    status, candidates = DEAD, _fixed_set_candidates(state_pair, number, w)
    if utf8_row != 0:
        if covered(state_pair, utf8_row, number, w):
            status = ALIVE
        elif _leads_on(state_pair, utf8_row, number, -1, w):
            status = ALIVE if completed(state_pair, utf8_row, number, w) else PARTLY
    elif (
        (
            w.dfa.accepting[w.memo.state[state_pair]]
            and w.added.ends[w.memo.text_state[state_pair]]
            and set_ends(number, w)
        )
        or candidates == 0
        or _leads_on(state_pair, 0, number, 1, w)
        or _added_leads_on(state_pair, number, w)
    ):
        status = ALIVE
    elif candidates > 0 or _leads_on(state_pair, 0, number, 0, w):
        status = PARTLY
    remember_status(state_pair, number, status, w.memo, w.watch)
    return status


@kernel
def _found_by_shown(state_pair: int, number: int, w: Product) -> int:
    """`shown_status`, having found out where its texts lead: other sets share their ends."""
    shown, given_up = w.sets.shown[number], w.sets.given_up[number]
    if w.memo.text_state[state_pair] != 0:
        return UNKNOWN
    for i in range(len(shown)):
        if shown[i, 1] == 0:
            break
        q, packed, hypothesis = w.memo.state[state_pair], shown[i, 0], (shown[i, 1] >> 2) - 1
        for _ in range(shown[i, 1] & 3):
            q = step(q, packed & 0xFF, w.dfa.steps)
            packed >>= 8
        if q == 0:
            return UNKNOWN
        if w.sets.utf8_row[number] == 0 or given_up:
            leads = reads(q, hypothesis, w)
        else:
            leads = is_free(q, hypothesis, w)
        if not leads:
            return UNKNOWN
    return shown_status(w.memo.state[state_pair], number, w)


@kernel
def _fixed_set_candidates(state_pair: int, number: int, w: Product) -> int:
    """See `_kernels.fixed_set.candidates_left`; also NONE, -1, where the configuration is not one
    of the fixed set."""
    state, text = w.memo.state[state_pair], w.memo.text_state[state_pair]
    if number != w.fixed_set.number or w.fixed_set.distance[state] == 0:
        return -1
    begins = np.ones(256, np.bool_)
    if text != 0:
        _begins_alike(text, w.reading.utf8[0], w.added.next, begins)
    return candidates_left(state, text == 0, begins, w.dfa.steps, w.fixed_set, w.pairs)


@kernel
def _begins_alike(text: int, utf8: np.ndarray, step: np.ndarray, begins: np.ndarray) -> None:
    """Which bytes are characters after which it does not matter that the text automaton was in
    `text`, and not in state 0?"""
    for byte in range(256):
        atom = -2 - utf8[byte]
        begins[byte] = atom >= 0 and step[text, atom] == step[0, atom]


@kernel
def statuses_of(state_pairs: np.ndarray, numbers: np.ndarray, w: Product) -> np.ndarray:
    """uint8: `status_at` of each of many configurations."""
    found = np.empty(len(state_pairs), np.uint8)
    for k in range(len(state_pairs)):
        if poll(w.watch):
            break
        # Most configurations of an automaton with strings are inside a character.
        state_pair, number, status = state_pairs[k], numbers[k], UNKNOWN
        if w.memo.text_state[state_pair] == 0:
            status = quick_status(w.memo.state[state_pair], number, w)
        if (
            status == UNKNOWN
            and w.fixed_set.apart
            and surely_completed(state_pair, number, w.dfa, w.reading, w.added, w.sets, w.memo)
        ):
            status = ALIVE
            remember_status(state_pair, number, status, w.memo, w.watch)
        if status == UNKNOWN:
            status = status_at(state_pair, number, w)
        found[k] = status
    return found


@kernel
def _leads_on(state_pair: int, utf8_row: int, number: int, boundary: int, w: Product) -> bool:
    """Does some character (or the rest of one, from UTF-8 row `utf8_row`) lead on to acceptance,
    with (boundary 1) or without (0) a boundary before it? In a partly read character (boundary -1)
    each member of the set says itself whether there is one. Stops at the first success.
    """
    if boundary >= 0 and not _some_may(number, boundary, w):
        return False
    rows, at = np.empty(64, np.int32), np.empty(64, np.int32)
    # read: the bytes so far, as in `product.Sets`, times 4, plus how many
    read = np.empty(64, np.int64)
    rows[0], at[0], read[0] = utf8_row, w.memo.state[state_pair], 0
    seen, n_seen, open_ = np.full(table_size(32), EMPTY, np.int64), 0, 1
    while open_ > 0 and not poll(w.watch):
        open_ -= 1
        r, q, before = rows[open_], at[open_], read[open_]
        last_entry, last_after = 0, 0
        for byte in range(256):
            after = step(q, byte, w.dfa.steps)
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
            hypothesis = _character_leads_on(state_pair, -2 - entry, after, number, boundary, w)
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
def _some_may(number: int, boundary: int, w: Product) -> bool:
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
    state_pair: int, atom: int, state: int, number: int, boundary: int, w: Product
) -> int:
    """A hypothesis with which this character, which leads the DFA to `state`, leads on from some
    member of the set; -1 if there is none."""
    a = w.added.next[w.memo.text_state[state_pair], atom]
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
            p = intern_state_pair(state, a, w)
            if reads(p, w.reading.step_to[j], w):
                return w.reading.step_to[j]
    return -1


@kernel
def _added_leads_on(state_pair: int, number: int, w: Product) -> bool:
    """Does an added token lead on from here to acceptance?"""
    if not set_ends(number, w):
        return False
    state, added = w.memo.state[state_pair], w.memo.text_state[state_pair]
    for k in range(len(w.added.ids)):
        a2, q2 = added_step(state, added, k, w)
        if a2 < 0 or q2 == 0:
            continue
        p2 = intern_state_pair(q2, a2, w)
        if reads(p2, 0, w):
            return True
    return False


# Which configurations are ALIVE, for many hypothesis sets at once.
#
# The certificate of a hypothesis set is the proof that its configurations are ALIVE (see
# `product.shown_status`): that a text can end there, and texts that lead on. It holds at a DFA
# state if that is so from there, in state 0 of the text automaton, and in another state that reads
# its texts as state 0 does. Hundreds of sets have a few dozen certificates, so in a region of many
# states it costs much less to check these than the configurations.

ODD, NO_SET, _NONE = -1, -2, -1
_CERTIFICATES, _COLUMNS = 0, 1  # in `Certificates.counts`


@by_reference
class Certificates(NamedTuple):
    """Of one product. of_set int32 [n_sets]: the certificate of each set, -1 if none is known. keys
    int64, values int32: hash table of certificates; shown int32 [n, ways, 3] as in `product.Sets`,
    ends, whole bool [n]: can a text end, does it begin at a character's end? asked, holds int64
    [n_states, n / 64]: bits of the certificates that were looked at, and that hold; column int32
    [UTF-8 rows]: of each one that sets with a certificate have, -1 for none; need int64 [columns, n
    / 64]: see `needed`; texts int32 [states of the text automaton]: how many certificates that
    state reads as state 0 does, the first ones, -1: not all. counts int64 [2]: certificates,
    columns."""

    of_set: np.ndarray
    keys: np.ndarray
    values: np.ndarray
    shown: np.ndarray
    ends: np.ndarray
    whole: np.ndarray
    asked: np.ndarray
    holds: np.ndarray
    column: np.ndarray
    need: np.ndarray
    texts: np.ndarray
    counts: np.ndarray


@kernel
def needed(after_sides: tuple[np.ndarray, np.ndarray], c: Certificates, w: Product) -> np.ndarray:
    """What the configurations of a row need: the certificates of all sets of a column, as bits of
    `c.need`. after_sides: int32 [token_classes], the sets after tokens of each token class. Returns
    int32 [token_classes], the column of their sets; ODD where one has no certificate or no column,
    NO_SET.
    """
    need, columns = c.need, np.full(len(after_sides[0]), NO_SET, np.int32)
    need[: c.counts[_COLUMNS]] = 0
    for after in after_sides:
        for token_class in range(len(after)):
            number = after[token_class]
            if number < 0 or columns[token_class] == ODD:
                continue
            known, utf8_row = c.of_set[number], w.sets.utf8_row[number]
            if known < 0:
                known = _certificate(number, c, w)
            if known >= 0 and c.column[utf8_row] < 0 and c.counts[_COLUMNS] < len(need):
                c.column[utf8_row] = c.counts[_COLUMNS]
                c.counts[_COLUMNS] += 1
            column = c.column[utf8_row]
            if (
                known < 0
                or column < 0
                or (columns[token_class] >= 0 and columns[token_class] != column)
            ):
                columns[token_class] = ODD
                continue
            columns[token_class] = column
            need[column, known >> 6] |= np.int64(1) << (known & 63)
    return columns


@kernel
def reads_alike(text: int, c: Certificates, w: Product) -> bool:
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
def _certificate(number: int, c: Certificates, w: Product) -> int:
    """The number of what now shows configurations of a set to be ALIVE; _NONE where nothing does,
    or there is no room for it. What it is a certificate of stays so, whatever is found later."""
    shown, ends = w.sets.shown[number], w.sets.ends[number]
    if w.sets.given_up[number] or (shown[0, 1] == 0 and not ends):
        return _NONE
    whole, key = w.sets.utf8_row[number] == 0, np.uint64(2 * ends + (w.sets.utf8_row[number] == 0))
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
def all_alive(state: int, column: int, c: Certificates, w: Product) -> bool:
    """Are all configurations ALIVE that a DFA state has with the sets of a column that are needed,
    as their certificates hold?"""
    for word in range(c.need.shape[1]):
        left = c.need[column, word] & ~c.asked[state, word]
        for bit in range(64):
            if left == 0:
                break
            if not (left >> bit) & 1:
                continue
            left &= ~(np.int64(1) << bit)
            holds = _holds(state, 64 * word + bit, c, w)
            if poll(w.watch) or stopped(w.watch) or w.memo.n_state_pairs[0] > len(w.memo.state):
                return False  # nothing that was found may be kept
            c.asked[state, word] |= np.int64(1) << bit
            if holds:
                c.holds[state, word] |= np.int64(1) << bit
        if c.need[column, word] & ~c.holds[state, word]:
            return False
    return True


@kernel
def _holds(state: int, k: int, c: Certificates, w: Product) -> bool:
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
            q = step(q, packed & 0xFF, w.dfa.steps)
            packed >>= 8
        if q == 0:
            return False
        leads = reads(q, hypothesis, w) if c.whole[k] else is_free(q, hypothesis, w)
        if not leads:
            return False
    return True
