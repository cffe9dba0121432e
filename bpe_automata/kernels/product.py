"""The product of a byte DFA with the canonical automaton of a tokenizer, computed where visited.

A place is a DFA state q together with a state a of the added-token automaton; place p < n_states is
(p, 0), others are interned as they come up. A node is a place with a hypothesis set. A node is

    ALIVE    if some text goes on from it to acceptance whatever the last id was: it accepts, or a
             boundary can come right here
    PARTLY   if every text that goes on to acceptance has no boundary here, so that it depends on
             what the last id would merge with
    DEAD     if no text goes on to acceptance

Text is explored character by character: any text between two boundaries has a canonical
spelling, so at this level only the hypotheses and the added tokens restrict it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata.kernels import kernel
from bpe_automata.kernels.hashing import slot_of
from bpe_automata.kernels.trie import Trie, walk

UNKNOWN, ALIVE, DEAD, PARTLY = 0, 1, 2, 3
_ON_SEARCH = 3  # in `Memo.text`: met in the search that is running


class Dfa(NamedTuple):
    """trans int32 [n_states, n_classes], byte_class uint8 [256], accepting bool [n_states]."""

    trans: np.ndarray
    byte_class: np.ndarray
    accepting: np.ndarray


class Reading(NamedTuple):
    """utf8 int32 [rows, 256] and coarse int32 [n_atoms], see `tokenizer.alphabet`; ends bool [n];
    step_start int32 [2*n*c + 1], step_to int32: CSR of the hypotheses that follow hypothesis h by
    coarse atom k with (b = 1) or without a boundary before it, at index (b*n + h)*c + k."""

    utf8: np.ndarray
    coarse: np.ndarray
    ends: np.ndarray
    step_start: np.ndarray
    step_to: np.ndarray


class Added(NamedTuple):
    """next int32 [n_states, n_atoms], after int32 [n_states, n_added], start int32 [n_added + 1],
    data uint8: see `tokenizer.added`; ids int32 [n_added], -1 for one that may not be read."""

    next: np.ndarray
    after: np.ndarray
    start: np.ndarray
    data: np.ndarray
    ids: np.ndarray


class Sets(NamedTuple):
    """start int32 [n_sets + 1] into the members; hypothesis, boundary int32; may_break, may_bind
    bool: can there be, or not be, a boundary after this member; row int32 [n_sets]: UTF-8 row."""

    start: np.ndarray
    hypothesis: np.ndarray
    boundary: np.ndarray
    may_break: np.ndarray
    may_bind: np.ndarray
    row: np.ndarray


class Memo(NamedTuple):
    """What is known. status uint8 [places, sets]; text uint8 [places, n]: ALIVE or DEAD for a
    hypothesis at a character's end; keys int64, values int32: hash table of interned places;
    state, added int32 [places]; count int64 [1], the number of places."""

    status: np.ndarray
    text: np.ndarray
    keys: np.ndarray
    values: np.ndarray
    state: np.ndarray
    added: np.ndarray
    count: np.ndarray


@kernel
def intern_place(state: int, added: int, n_added: int, memo: Memo) -> int:
    """The number of a place. Raises OverflowError when the memo is full; nothing is lost then."""
    if added == 0:
        return state
    key = state * n_added + added
    at = slot_of(memo.keys, key)
    if memo.keys[at] != key:
        if memo.count[0] >= len(memo.state):
            raise OverflowError("the memo is full")
        memo.keys[at] = key
        memo.values[at] = memo.count[0]
        memo.state[memo.count[0]] = state
        memo.added[memo.count[0]] = added
        memo.count[0] += 1
    return memo.values[at]


@kernel
def _grown(array: np.ndarray, count: int) -> np.ndarray:
    if count < len(array):
        return array
    bigger = np.empty(2 * len(array), array.dtype)
    bigger[:count] = array[:count]
    return bigger


@kernel
def _ascii_steps(state: int, dfa: Dfa, utf8: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(atoms, states): where one-byte characters lead, neighbouring repeats left out."""
    atoms, states = np.empty(128, np.int32), np.empty(128, np.int32)
    count = 0
    for byte in range(128):
        after = dfa.trans[state, dfa.byte_class[byte]]
        entry = utf8[0, byte]
        if after == 0 or entry > -2:
            continue
        if count == 0 or atoms[count - 1] != -2 - entry or states[count - 1] != after:
            atoms[count], states[count] = -2 - entry, after
            count += 1
    return atoms[:count], states[:count]


@kernel
def _wide_steps(
    row: int, state: int, dfa: Dfa, utf8: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(atoms, states): where characters of several bytes lead (row 0), or the rest of one (row > 0).
    """
    atoms, states = np.empty(64, np.int32), np.empty(64, np.int32)
    rows, at = np.empty(64, np.int32), np.empty(64, np.int32)
    seen = np.full(4096, -1, np.int64)
    n_seen, count, open_ = 0, 0, 1
    rows[0], at[0] = row, state
    while open_ > 0:
        open_ -= 1
        r, q = rows[open_], at[open_]
        for byte in range(0x80, 0x100):
            after = dfa.trans[q, dfa.byte_class[byte]]
            entry = utf8[r, byte]
            if after == 0 or entry == -1:
                continue
            key = np.int64(after) * (1 << 32) + (entry if entry > 0 else (1 << 31) - entry)
            slot = slot_of(seen, key)
            if seen[slot] == key:
                continue
            if n_seen < 2048:
                seen[slot] = key
                n_seen += 1
            if entry > 0:
                rows, at = _grown(rows, open_), _grown(at, open_)
                rows[open_], at[open_] = entry, after
                open_ += 1
            else:
                atoms, states = _grown(atoms, count), _grown(states, count)
                atoms[count], states[count] = -2 - entry, after
                count += 1
    return atoms[:count], states[:count]


@kernel
def _reads(
    place: int, added: int, hypothesis: int, dfa: Dfa, reading: Reading, tokens: Added, memo: Memo
) -> bool:
    """Does some text lead from (place, hypothesis), at a character's end, to acceptance?

    A depth-first search; nodes on the path to a success are known to be alive, and after a failure
    everything that was met is known to be dead.
    """
    if memo.text[place, hypothesis] != 0:
        return memo.text[place, hypothesis] == ALIVE
    if dfa.accepting[memo.state[place]] and reading.ends[hypothesis]:
        memo.text[place, hypothesis] = ALIVE
        return True
    places, hypotheses = np.empty(64, np.int32), np.empty(64, np.int32)
    parents = np.empty(64, np.int32)
    work = np.empty(128, np.int32)  # 2 * node + phase; phase 1: all but ASCII
    places[0], hypotheses[0], parents[0] = place, hypothesis, -1
    memo.text[place, hypothesis] = _ON_SEARCH
    count, n_work = 1, 1
    work[0] = 0
    n_coarse = (len(reading.step_start) - 1) // (2 * len(reading.ends))
    found = -1
    while n_work > 0 and found < 0:
        n_work -= 1
        node, phase = work[n_work] >> 1, work[n_work] & 1
        p, h = places[node], hypotheses[node]
        q, a = memo.state[p], memo.added[p]
        if phase == 0:
            work = _grown(work, n_work)
            work[n_work] = 2 * node + 1
            n_work += 1
            atoms, states = _ascii_steps(q, dfa, reading.utf8)
        else:
            atoms, states = _wide_steps(0, q, dfa, reading.utf8)
        n_chars = len(atoms)
        n_tokens = len(tokens.ids) if phase == 1 and reading.ends[h] else 0
        for i in range(n_chars + n_tokens):
            if i < n_chars:
                a2 = tokens.next[a, atoms[i]]
                q2 = states[i]
            else:
                a2, q2 = _added_step(q, a, i - n_chars, dfa, tokens)
            if a2 < 0 or q2 == 0:
                continue
            p2 = intern_place(q2, a2, len(tokens.next), memo)
            for b in range(2 if i < n_chars else 1):
                low, high = 0, 1
                if i < n_chars:
                    index = (b * len(reading.ends) + h) * n_coarse + reading.coarse[atoms[i]]
                    low, high = reading.step_start[index], reading.step_start[index + 1]
                for j in range(low, high):
                    h2 = reading.step_to[j] if i < n_chars else 0
                    known = memo.text[p2, h2]
                    if known == ALIVE or (dfa.accepting[q2] and reading.ends[h2]):
                        memo.text[p2, h2] = ALIVE
                        found = node
                    elif known == 0:
                        memo.text[p2, h2] = _ON_SEARCH
                        places, hypotheses = _grown(places, count), _grown(hypotheses, count)
                        parents = _grown(parents, count)
                        places[count], hypotheses[count], parents[count] = p2, h2, node
                        work = _grown(work, n_work)
                        work[n_work] = 2 * count
                        count += 1
                        n_work += 1
            if found >= 0:
                break
    for node in range(count):
        memo.text[places[node], hypotheses[node]] = DEAD if found < 0 else 0
    while found >= 0:
        memo.text[places[found], hypotheses[found]] = ALIVE
        found = parents[found]
    return memo.text[place, hypothesis] == ALIVE


@kernel
def _added_step(state: int, added: int, k: int, dfa: Dfa, tokens: Added) -> tuple[int, int]:
    """(state of the added-token automaton, DFA state) after added token k; -1 or 0: impossible."""
    if tokens.ids[k] < 0 or tokens.after[added, k] < 0:
        return -1, 0
    data = tokens.data[tokens.start[k] : tokens.start[k + 1]]
    return tokens.after[added, k], walk(dfa.trans, dfa.byte_class, state, data)


@kernel
def _any_step(
    place: int,
    hypothesis: int,
    boundary: int,
    atoms: np.ndarray,
    states: np.ndarray,
    dfa: Dfa,
    reading: Reading,
    tokens: Added,
    memo: Memo,
) -> bool:
    """Does one of these characters, with or without a boundary before it, lead on to acceptance?"""
    a = memo.added[place]
    n_coarse = (len(reading.step_start) - 1) // (2 * len(reading.ends))
    base = (boundary * len(reading.ends) + hypothesis) * n_coarse
    for i in range(len(atoms)):
        a2 = tokens.next[a, atoms[i]]
        index = base + reading.coarse[atoms[i]]
        low, high = reading.step_start[index], reading.step_start[index + 1]
        if a2 < 0 or low == high:
            continue
        p2 = intern_place(states[i], a2, len(tokens.next), memo)
        for j in range(low, high):
            if _reads(p2, a2, reading.step_to[j], dfa, reading, tokens, memo):
                return True
    return False


@kernel
def node_status(
    place: int, number: int, dfa: Dfa, reading: Reading, tokens: Added, sets: Sets, memo: Memo
) -> int:
    """ALIVE, PARTLY or DEAD, see the module's docstring; memoised in `memo.status`."""
    if memo.status[place, number] != UNKNOWN:
        return memo.status[place, number]
    state = memo.state[place]
    row = sets.row[number]
    low, high = sets.start[number], sets.start[number + 1]
    status = DEAD
    if row == 0:
        for m in range(low, high):
            h = sets.hypothesis[m]
            if sets.may_break[m] and dfa.accepting[state] and reading.ends[h]:
                status = ALIVE
        if status == DEAD:
            atoms, states = _ascii_steps(state, dfa, reading.utf8)
            status = _status_by(
                place, number, atoms, states, status, dfa, reading, tokens, sets, memo
            )
        if status != ALIVE:
            atoms, states = _wide_steps(0, state, dfa, reading.utf8)
            status = _status_by(
                place, number, atoms, states, status, dfa, reading, tokens, sets, memo
            )
        if status != ALIVE and _added_leads_on(place, number, dfa, reading, tokens, sets, memo):
            status = ALIVE
    else:
        atoms, states = _wide_steps(row, state, dfa, reading.utf8)
        for m in range(low, high):
            if status == DEAD and _any_step(
                place,
                sets.hypothesis[m],
                sets.boundary[m],
                atoms,
                states,
                dfa,
                reading,
                tokens,
                memo,
            ):
                status = PARTLY
    memo.status[place, number] = status
    return status


@kernel
def _status_by(
    place: int,
    number: int,
    atoms: np.ndarray,
    states: np.ndarray,
    status: int,
    dfa: Dfa,
    reading: Reading,
    tokens: Added,
    sets: Sets,
    memo: Memo,
) -> int:
    """The status improved by what these next characters allow."""
    for m in range(sets.start[number], sets.start[number + 1]):
        h = sets.hypothesis[m]
        if sets.may_break[m] and _any_step(
            place, h, 1, atoms, states, dfa, reading, tokens, memo
        ):
            return ALIVE
        if (
            status == DEAD
            and sets.may_bind[m]
            and _any_step(place, h, 0, atoms, states, dfa, reading, tokens, memo)
        ):
            status = PARTLY
    return status


@kernel
def _added_leads_on(
    place: int, number: int, dfa: Dfa, reading: Reading, tokens: Added, sets: Sets, memo: Memo
) -> bool:
    """Does an added token lead on from here to acceptance?"""
    if not _set_ends(number, reading, sets):
        return False
    state, added = memo.state[place], memo.added[place]
    for k in range(len(tokens.ids)):
        a2, q2 = _added_step(state, added, k, dfa, tokens)
        if a2 < 0 or q2 == 0:
            continue
        p2 = intern_place(q2, a2, len(tokens.next), memo)
        if _reads(p2, a2, 0, dfa, reading, tokens, memo):
            return True
    return False


@kernel
def _set_ends(number: int, reading: Reading, sets: Sets) -> bool:
    if sets.row[number] != 0:
        return False
    for m in range(sets.start[number], sets.start[number + 1]):
        if sets.may_break[m] and reading.ends[sets.hypothesis[m]]:
            return True
    return False


@kernel
def _added_after_text(
    added: int, row: int, data: np.ndarray, utf8: np.ndarray, added_next: np.ndarray
) -> int:
    """State of the added-token automaton after these bytes, -1 where one is spelled."""
    for byte in data:
        entry = utf8[row, byte]
        if entry == -1:
            return -1
        if entry < -1:
            added = added_next[added, -2 - entry]
            if added < 0:
                return -1
            entry = 0
        row = entry
    return added


@kernel
def product_row(
    place: int,
    number: int,
    trie: Trie,
    token_class: np.ndarray,
    token_added: np.ndarray,
    free_after: np.ndarray,
    bound_after: np.ndarray,
    dfa: Dfa,
    reading: Reading,
    tokens: Added,
    sets: Sets,
    memo: Memo,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The ids readable at a node, by whether there is a boundary at the joint before them.

    token_class, token_added: int32 [n_ids]; free_after, bound_after: int32 [n_classes], the set
    after a token of each class with and without a boundary at the joint (-1: none).

    Returns (free, bound, open): packed int32 ids that lead to an ALIVE node, and rows
    (id, place, set, is it free) of int32 for those that lead to a PARTLY node.
    """
    n_ids = len(trie.start) - 1
    free = np.zeros((n_ids + 31) >> 5, np.int32)
    bound = np.zeros((n_ids + 31) >> 5, np.int32)
    open_rows = np.empty((64, 4), np.int32)
    n_open = 0
    q0, a0, row0 = memo.state[place], memo.added[place], sets.row[number]
    n_added = len(tokens.next)
    path = np.empty(trie.depth.max() + 1, np.int32)
    path[0] = q0
    node, n_nodes = 0, len(trie.label)
    while node < n_nodes:
        depth = trie.depth[node]
        q = dfa.trans[path[depth - 1], dfa.byte_class[trie.label[node]]]
        if q == 0:
            node = trie.skip[node]
            continue
        path[depth] = q
        token = trie.token[node]
        node += 1
        if token < 0:
            continue
        after_free, after_bound = free_after[token_class[token]], bound_after[token_class[token]]
        if after_free < 0 and after_bound < 0:
            continue
        a = token_added[token]
        if a0 != 0 or row0 != 0:
            data = trie.data[trie.start[token] : trie.start[token + 1]]
            a = _added_after_text(a0, row0, data, reading.utf8, tokens.next)
        if a < 0:
            continue
        p = intern_place(q, a, n_added, memo)
        for side in range(2):
            after = after_free if side == 0 else after_bound
            if after < 0:
                continue
            status = memo.status[p, after]
            if status == UNKNOWN:
                status = node_status(p, after, dfa, reading, tokens, sets, memo)
            if status == ALIVE:
                bits = free if side == 0 else bound
                bits[token >> 5] |= np.int32(1) << np.int32(token & 31)
            elif status == PARTLY:
                if n_open == len(open_rows):
                    bigger = np.empty((2 * n_open, 4), np.int32)
                    bigger[:n_open] = open_rows
                    open_rows = bigger
                open_rows[n_open, 0], open_rows[n_open, 1] = token, p
                open_rows[n_open, 2], open_rows[n_open, 3] = after, 1 - side
                n_open += 1
    if _set_ends(number, reading, sets):
        for k in range(len(tokens.ids)):
            a2, q2 = _added_step(q0, a0, k, dfa, tokens)
            if a2 < 0 or q2 == 0:
                continue
            p = intern_place(q2, a2, n_added, memo)
            if _reads(p, a2, 0, dfa, reading, tokens, memo):
                token = tokens.ids[k]
                free[token >> 5] |= np.int32(1) << np.int32(token & 31)
    return free, bound, open_rows[:n_open].copy()
