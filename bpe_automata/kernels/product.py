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
from bpe_automata.kernels.geometry import breaking_merge
from bpe_automata.kernels.hashing import slot_of
from bpe_automata.kernels.trie import Trie, walk

UNKNOWN, ALIVE, DEAD, PARTLY = 0, 1, 2, 3
_READY = 16  # ways to complete a character that are tried first
_STEPS = 1000  # tries after which the question is left to `constructions.relevance`
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


class Fragments(NamedTuple):
    """Tokens around characters that are split between tokens. open_start int32 [rows + 1] and
    open_ids int32: by UTF-8 row, the tokens that can end there inside a character; start int32
    [n + 1], data uint8, ids int32 [n]: tokens that are nothing but next bytes of a character."""

    open_start: np.ndarray
    open_ids: np.ndarray
    start: np.ndarray
    data: np.ndarray
    ids: np.ndarray


class Pairs(NamedTuple):
    """What `kernels.geometry.breaking_merge` needs: left, right, birth int32 [n_ids]; slots int64
    and values int32, the hash table of merges."""

    left: np.ndarray
    right: np.ndarray
    birth: np.ndarray
    slots: np.ndarray
    values: np.ndarray


class Memo(NamedTuple):
    """What is known. status uint8 [places, sets]; text uint8 [places, n]: ALIVE or DEAD for a
    hypothesis at a character's end; order int32, the same shape: scratch of the search;
    free uint8, the same shape: see `_is_free`; keys int64, values int32: hash table of interned places;
    state, added int32 [places]; n_places int64 [1]."""

    status: np.ndarray
    text: np.ndarray
    order: np.ndarray
    free: np.ndarray
    keys: np.ndarray
    values: np.ndarray
    state: np.ndarray
    added: np.ndarray
    n_places: np.ndarray


@kernel
def intern_place(state: int, added: int, n_added: int, memo: Memo) -> int:
    """The number of a place. Raises OverflowError when the memo is full; nothing is lost then."""
    if added == 0:
        return state
    key = state * n_added + added
    at = slot_of(memo.keys, key)
    if memo.keys[at] != key:
        if memo.n_places[0] >= len(memo.state):
            raise OverflowError("the memo is full")
        memo.keys[at] = key
        memo.values[at] = memo.n_places[0]
        memo.state[memo.n_places[0]] = state
        memo.added[memo.n_places[0]] = added
        memo.n_places[0] += 1
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
def _wide_steps(row: int, state: int, dfa: Dfa, utf8: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(atoms, states): where characters of several bytes lead (row 0), or the rest of one (row > 0)."""
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
def _push_successor(
    q: int, a: int, h: int, pool: np.ndarray, count: int, n_added: int, memo: Memo
) -> np.ndarray:
    if count == len(pool):
        bigger = np.empty((2 * count, 2), np.int32)
        bigger[:count] = pool
        pool = bigger
    pool[count, 0], pool[count, 1] = intern_place(q, a, n_added, memo), h
    return pool


@kernel
def _successors(
    place: int,
    h: int,
    wide: bool,
    pool: np.ndarray,
    count: int,
    dfa: Dfa,
    reading: Reading,
    tokens: Added,
    memo: Memo,
) -> tuple[np.ndarray, int]:
    """Append to `pool` the (place, hypothesis) that one character leads to: an ASCII one, or, if
    `wide`, any other or an added token."""
    q, a = memo.state[place], memo.added[place]
    n, n_added = len(reading.ends), len(tokens.next)
    n_coarse = (len(reading.step_start) - 1) // (2 * n)
    if wide:
        atoms, states = _wide_steps(0, q, dfa, reading.utf8)
    else:
        atoms, states = _ascii_steps(q, dfa, reading.utf8)
    for i in range(len(atoms)):
        a2 = tokens.next[a, atoms[i]]
        if a2 < 0:
            continue
        for b in range(2):
            index = (b * n + h) * n_coarse + reading.coarse[atoms[i]]
            for j in range(reading.step_start[index], reading.step_start[index + 1]):
                to = reading.step_to[j]
                pool = _push_successor(states[i], a2, to, pool, count, n_added, memo)
                count += 1
    if wide and reading.ends[h]:
        for k in range(len(tokens.ids)):
            a2, q2 = _added_step(q, a, k, dfa, tokens)
            if a2 >= 0 and q2 != 0:
                pool = _push_successor(q2, a2, 0, pool, count, n_added, memo)
                count += 1
    return pool, count


@kernel
def _reads(
    place: int, hypothesis: int, dfa: Dfa, reading: Reading, tokens: Added, memo: Memo
) -> bool:
    """Does some text lead from (place, hypothesis), at a character's end, to acceptance?

    Tarjan's depth-first search for strong components, stopped at the first success. A component
    that is left without success is dead for good; on success everything still on the component
    stack leads to the current path, and so to acceptance. Nothing that was met is met again.
    """
    known = memo.text[place, hypothesis]
    if known == ALIVE or known == DEAD:
        return known == ALIVE
    if dfa.accepting[memo.state[place]] and reading.ends[hypothesis]:
        memo.text[place, hypothesis] = ALIVE
        return True
    pool, n_pool = np.empty((256, 2), np.int32), 0
    nodes, low = np.empty((64, 2), np.int32), np.empty(64, np.int32)  # by order of visit
    component, n_component = np.empty(64, np.int32), 0
    frames, n_frames = np.empty((64, 4), np.int32), 0  # node, next and end in pool, is it wide
    count, entering, found = 0, True, False
    p, h = place, hypothesis
    while not found:
        if entering:
            entering = False
            if count == len(nodes):
                nodes, low = _grown_rows(nodes), _grown(low, count)
            nodes[count, 0], nodes[count, 1], low[count] = p, h, count
            memo.text[p, h], memo.order[p, h] = _ON_SEARCH, count
            component = _grown(component, n_component)
            component[n_component] = count
            n_component += 1
            if n_frames == len(frames):
                frames = _grown_rows(frames)
            frames[n_frames, 0], frames[n_frames, 1] = count, n_pool
            pool, n_pool = _successors(p, h, False, pool, n_pool, dfa, reading, tokens, memo)
            frames[n_frames, 2], frames[n_frames, 3] = n_pool, 0
            n_frames += 1
            count += 1
        node, at, end = frames[n_frames - 1, 0], frames[n_frames - 1, 1], frames[n_frames - 1, 2]
        if at < end:
            frames[n_frames - 1, 1] += 1
            p, h = pool[at, 0], pool[at, 1]
            known = memo.text[p, h]
            if known == ALIVE or (dfa.accepting[memo.state[p]] and reading.ends[h]):
                memo.text[p, h] = ALIVE
                found = True
            elif known == _ON_SEARCH:
                low[node] = min(low[node], memo.order[p, h])
            elif known == UNKNOWN:
                entering = True
        elif frames[n_frames - 1, 3] == 0:
            frames[n_frames - 1, 3] = 1
            p, h = nodes[node, 0], nodes[node, 1]
            pool, n_pool = _successors(p, h, True, pool, n_pool, dfa, reading, tokens, memo)
            frames[n_frames - 1, 2] = n_pool
        else:
            n_frames -= 1
            if low[node] == node:
                while n_component > 0 and component[n_component - 1] >= node:
                    n_component -= 1
                    other = component[n_component]
                    memo.text[nodes[other, 0], nodes[other, 1]] = DEAD
            if n_frames == 0:
                break
            above = frames[n_frames - 1, 0]
            low[above] = min(low[above], low[node])
            n_pool = frames[n_frames - 1, 2]
    for i in range(n_component):
        memo.text[nodes[component[i], 0], nodes[component[i], 1]] = ALIVE
    return found


@kernel
def _grown_rows(array: np.ndarray) -> np.ndarray:
    bigger = np.empty((2 * len(array), array.shape[1]), array.dtype)
    bigger[: len(array)] = array
    return bigger


@kernel
def _added_step(state: int, added: int, k: int, dfa: Dfa, tokens: Added) -> tuple[int, int]:
    """(state of the added-token automaton, DFA state) after added token k; -1 or 0: impossible."""
    if tokens.ids[k] < 0 or tokens.after[added, k] < 0:
        return -1, 0
    data = tokens.data[tokens.start[k] : tokens.start[k + 1]]
    return tokens.after[added, k], walk(dfa.trans, dfa.byte_class, state, data)


@kernel
def _leads_on(
    place: int,
    row: int,
    number: int,
    boundary: int,
    dfa: Dfa,
    reading: Reading,
    tokens: Added,
    sets: Sets,
    memo: Memo,
) -> bool:
    """Does some character (or the rest of one, from UTF-8 row `row`) lead on to acceptance, with
    (boundary 1) or without (0) a boundary before it? In a partly read character (boundary -1) each
    member of the set says itself whether there is one. Stops at the first success.
    """
    rows, at = np.empty(64, np.int32), np.empty(64, np.int32)
    rows[0], at[0] = row, memo.state[place]
    seen, n_seen, open_ = np.full(64, -1, np.int64), 0, 1
    while open_ > 0:
        open_ -= 1
        r, q = rows[open_], at[open_]
        last_entry, last_after = 0, 0
        for byte in range(256):
            after = dfa.trans[q, dfa.byte_class[byte]]
            entry = reading.utf8[r, byte]
            if after == 0 or entry == -1 or (entry == last_entry and after == last_after):
                continue
            last_entry, last_after = entry, after
            if byte >= 0x80:
                key = np.int64(after) * (1 << 32) + (entry if entry > 0 else (1 << 31) - entry)
                slot = slot_of(seen, key)
                if seen[slot] == key:
                    continue
                if 2 * n_seen >= len(seen) - 2:
                    seen = _rehashed(seen)
                    slot = slot_of(seen, key)
                seen[slot] = key
                n_seen += 1
            if entry > 0:
                rows, at = _grown(rows, open_), _grown(at, open_)
                rows[open_], at[open_] = entry, after
                open_ += 1
            elif _character_leads_on(
                place, -2 - entry, after, number, boundary, dfa, reading, tokens, sets, memo
            ):
                return True
    return False


@kernel
def _rehashed(keys: np.ndarray) -> np.ndarray:
    bigger = np.full(2 * len(keys), -1, np.int64)
    for key in keys:
        if key >= 0:
            bigger[slot_of(bigger, key)] = key
    return bigger


@kernel
def _character_leads_on(
    place: int,
    atom: int,
    state: int,
    number: int,
    boundary: int,
    dfa: Dfa,
    reading: Reading,
    tokens: Added,
    sets: Sets,
    memo: Memo,
) -> bool:
    """Does this character, which leads the DFA to `state`, lead on from some member of the set?"""
    a = tokens.next[memo.added[place], atom]
    if a < 0:
        return False
    n = len(reading.ends)
    n_coarse = (len(reading.step_start) - 1) // (2 * n)
    for m in range(sets.start[number], sets.start[number + 1]):
        if (boundary == 1 and not sets.may_break[m]) or (boundary == 0 and not sets.may_bind[m]):
            continue
        b = sets.boundary[m] if boundary < 0 else boundary
        index = (b * n + sets.hypothesis[m]) * n_coarse + reading.coarse[atom]
        for j in range(reading.step_start[index], reading.step_start[index + 1]):
            p = intern_place(state, a, len(tokens.next), memo)
            if _reads(p, reading.step_to[j], dfa, reading, tokens, memo):
                return True
    return False


@kernel
def node_status(
    place: int,
    number: int,
    dfa: Dfa,
    reading: Reading,
    tokens: Added,
    sets: Sets,
    memo: Memo,
    fragments: Fragments,
    pairs: Pairs,
) -> int:
    """ALIVE, PARTLY or DEAD, see the module's docstring; memoised in `memo.status`."""
    if memo.status[place, number] != UNKNOWN:
        return memo.status[place, number]
    row = sets.row[number]
    status = DEAD
    if row != 0:
        if _leads_on(place, row, number, -1, dfa, reading, tokens, sets, memo):
            status = PARTLY
            if _completed(place, row, number, dfa, reading, tokens, sets, memo, fragments, pairs):
                status = ALIVE
    elif (
        (dfa.accepting[memo.state[place]] and _set_ends(number, reading, sets))
        or _leads_on(place, 0, number, 1, dfa, reading, tokens, sets, memo)
        or _added_leads_on(place, number, dfa, reading, tokens, sets, memo)
    ):
        status = ALIVE
    elif _leads_on(place, 0, number, 0, dfa, reading, tokens, sets, memo):
        status = PARTLY
    memo.status[place, number] = status
    return status


@kernel
def _completed(
    place: int,
    row: int,
    number: int,
    dfa: Dfa,
    reading: Reading,
    tokens: Added,
    sets: Sets,
    memo: Memo,
    fragments: Fragments,
    pairs: Pairs,
) -> bool:
    """Inside a character: does every id that can have led here have a way to complete it, after
    which the text can end or a boundary come? (No answer is no proof of the contrary.)"""
    ready = np.empty(_READY, np.int32)
    n_ready = _ready_fragments(
        place, row, number, dfa, reading, tokens, sets, memo, fragments, ready
    )
    for i in range(fragments.open_start[row], fragments.open_start[row + 1]):
        last = fragments.open_ids[i]
        followed = False
        for k in range(n_ready):
            if (
                breaking_merge(
                    last, ready[k], pairs.left, pairs.right, pairs.birth, pairs.slots, pairs.values
                )
                < 0
            ):
                followed = True
                break
        if not followed and not _completes(
            place,
            row,
            last,
            number,
            dfa,
            reading,
            tokens,
            sets,
            memo,
            fragments,
            pairs,
        ):
            return False
    return True


@kernel
def _ready_fragments(
    place: int,
    row: int,
    number: int,
    dfa: Dfa,
    reading: Reading,
    tokens: Added,
    sets: Sets,
    memo: Memo,
    fragments: Fragments,
    ready: np.ndarray,
) -> int:
    """Fill `ready` with tokens that complete the character here, after which the text can end or a
    boundary come; returns how many."""
    count = 0
    for k in range(len(fragments.ids)):
        q, r = memo.state[place], row
        for at in range(fragments.start[k], fragments.start[k + 1]):
            if r < 0 or q == 0:
                q = 0
                break
            q = dfa.trans[q, dfa.byte_class[fragments.data[at]]]
            r = reading.utf8[r, fragments.data[at]]
        if q == 0 or r >= -1:
            continue
        if _then_free(place, -2 - r, q, number, dfa, reading, tokens, sets, memo):
            ready[count] = fragments.ids[k]
            count += 1
            if count == len(ready):
                break
    return count


@kernel
def _completes(
    place: int,
    row: int,
    last: int,
    number: int,
    dfa: Dfa,
    reading: Reading,
    tokens: Added,
    sets: Sets,
    memo: Memo,
    fragments: Fragments,
    pairs: Pairs,
) -> bool:
    """The same for one id `last`. A depth-first search over at most three more tokens (a loop, as
    recursive kernels cannot be kept on disk)."""
    states, rows, lasts = np.empty(4, np.int32), np.empty(4, np.int32), np.empty(4, np.int32)
    tried = np.zeros(4, np.int32)
    states[0], rows[0], lasts[0] = memo.state[place], row, last
    depth, steps = 0, 0
    while depth >= 0 and steps < _STEPS:
        steps += 1
        if tried[depth] == len(fragments.ids):
            depth -= 1
            continue
        k = tried[depth]
        tried[depth] += 1
        q, r = states[depth], rows[depth]
        for at in range(fragments.start[k], fragments.start[k + 1]):
            if r < 0 or q == 0:
                q = 0
                break
            q = dfa.trans[q, dfa.byte_class[fragments.data[at]]]
            r = reading.utf8[r, fragments.data[at]]
        if q == 0 or r == -1:
            continue
        token = fragments.ids[k]
        if (
            breaking_merge(
                lasts[depth], token, pairs.left, pairs.right, pairs.birth, pairs.slots, pairs.values
            )
            >= 0
        ):
            continue
        if r >= 0 and depth < 3:
            depth += 1
            states[depth], rows[depth], lasts[depth], tried[depth] = q, r, token, 0
        elif r < -1 and _then_free(place, -2 - r, q, number, dfa, reading, tokens, sets, memo):
            return True
    return False


@kernel
def _then_free(
    place: int,
    atom: int,
    state: int,
    number: int,
    dfa: Dfa,
    reading: Reading,
    tokens: Added,
    sets: Sets,
    memo: Memo,
) -> bool:
    """Having completed the character: from some member, can the text end or a boundary come?"""
    a = tokens.next[memo.added[place], atom]
    if a < 0:
        return False
    n = len(reading.ends)
    n_coarse = (len(reading.step_start) - 1) // (2 * n)
    p = intern_place(state, a, len(tokens.next), memo)
    for m in range(sets.start[number], sets.start[number + 1]):
        index = (sets.boundary[m] * n + sets.hypothesis[m]) * n_coarse + reading.coarse[atom]
        for j in range(reading.step_start[index], reading.step_start[index + 1]):
            if sets.may_bind[m] and _is_free(p, reading.step_to[j], dfa, reading, tokens, memo):
                return True
    return False


@kernel
def _is_free(
    place: int, hypothesis: int, dfa: Dfa, reading: Reading, tokens: Added, memo: Memo
) -> bool:
    """Can the text end at (place, hypothesis), or an ASCII character begin a new piece there and
    lead on? Memoised in `memo.free`."""
    if memo.free[place, hypothesis] == UNKNOWN:
        q, a = memo.state[place], memo.added[place]
        free = dfa.accepting[q] and reading.ends[hypothesis]
        n = len(reading.ends)
        n_coarse = (len(reading.step_start) - 1) // (2 * n)
        atoms, states = _ascii_steps(q, dfa, reading.utf8)
        for i in range(len(atoms)):
            a2 = tokens.next[a, atoms[i]]
            index = (n + hypothesis) * n_coarse + reading.coarse[atoms[i]]
            for j in range(reading.step_start[index], reading.step_start[index + 1]):
                if a2 >= 0 and not free:
                    p = intern_place(states[i], a2, len(tokens.next), memo)
                    free = _reads(p, reading.step_to[j], dfa, reading, tokens, memo)
        memo.free[place, hypothesis] = ALIVE if free else DEAD
    return memo.free[place, hypothesis] == ALIVE


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
        if _reads(p2, 0, dfa, reading, tokens, memo):
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
    deepest: int,
    trie: Trie,
    node_class: np.ndarray,
    node_added: np.ndarray,
    free_after: np.ndarray,
    bound_after: np.ndarray,
    dfa: Dfa,
    reading: Reading,
    tokens: Added,
    sets: Sets,
    memo: Memo,
    fragments: Fragments,
    pairs: Pairs,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The ids readable at a node, by whether there is a boundary at the joint before them; only
    those of at most `deepest` bytes, and added tokens only if it covers all of the trie.

    node_class, node_added: int32 [nodes], of the token at each node of the trie, its class (0:
    none) and its state of the added-token automaton; free_after, bound_after: int32 [n_classes],
    the set after a token of each class with and without a boundary at the joint (-1: none).

    Returns (free, bound, open): packed int32 ids that lead to an ALIVE node, and rows
    (id, place, set, is it free) of int32 for those that lead to a PARTLY node.
    """
    q0, a0, row0 = memo.state[place], memo.added[place], sets.row[number]
    n_words = (len(trie.start) + 30) >> 5
    plain = a0 == 0 and row0 == 0
    both, slow = _walk_row(
        q0,
        deepest,
        plain,
        n_words,
        trie,
        node_class,
        node_added,
        free_after,
        bound_after,
        dfa.trans,
        dfa.byte_class,
        memo.status,
    )
    n_open = 0
    for i in range(len(slow)):
        token, q, side, after, a = slow[i, 0], slow[i, 1], slow[i, 2], slow[i, 3], slow[i, 4]
        if not plain:
            data = trie.data[trie.start[token] : trie.start[token + 1]]
            a = _added_after_text(a0, row0, data, reading.utf8, tokens.next)
        if a < 0:
            continue
        p = intern_place(q, a, len(tokens.next), memo)
        status = node_status(p, after, dfa, reading, tokens, sets, memo, fragments, pairs)
        if status == ALIVE:
            both[side * n_words + (token >> 5)] |= np.int32(1) << np.int32(token & 31)
        elif status == PARTLY:
            # The list is overwritten from its beginning with what stays open.
            slow[n_open, 0], slow[n_open, 1], slow[n_open, 2] = token, p, after
            slow[n_open, 3] = 1 - side
            n_open += 1
    if deepest == trie.deepest and _set_ends(number, reading, sets):
        for k in range(len(tokens.ids)):
            a2, q2 = _added_step(q0, a0, k, dfa, tokens)
            if a2 < 0 or q2 == 0:
                continue
            p = intern_place(q2, a2, len(tokens.next), memo)
            if _reads(p, 0, dfa, reading, tokens, memo):
                token = tokens.ids[k]
                both[token >> 5] |= np.int32(1) << np.int32(token & 31)
    return both[:n_words].copy(), both[n_words:].copy(), slow[:n_open, :4].copy()


@kernel
def _walk_row(
    q0: int,
    deepest: int,
    plain: bool,
    n_words: int,
    trie: Trie,
    node_class: np.ndarray,
    node_added: np.ndarray,
    free_after: np.ndarray,
    bound_after: np.ndarray,
    trans: np.ndarray,
    byte_class: np.ndarray,
    known: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The hot loop: one walk over the trie. What is known to be ALIVE is set at once, in the packed
    ids (free ones, then bound ones); the rest is listed, as rows (id, DFA state, is it bound, set,
    state of the added-token automaton). `plain`: at a character's end, no added token under way.
    """
    both = np.zeros(2 * n_words, np.int32)
    slow = np.empty((256, 5), np.int32)
    n_slow = 0
    label, depths, skip, tokens = trie.label, trie.depth, trie.skip, trie.token
    path = np.empty(trie.deepest + 1, np.int32)
    path[0] = q0
    node, n_nodes = 0, len(label)
    while node < n_nodes:
        depth = depths[node]
        q = trans[path[depth - 1], byte_class[label[node]]]
        if q == 0:
            node = skip[node]
            continue
        path[depth] = q
        kind, token, a = node_class[node], tokens[node], node_added[node]
        node = skip[node] if depth == deepest else node + 1
        if kind == 0:
            continue
        for side in range(2):
            after = bound_after[kind] if side == 1 else free_after[kind]
            if after < 0 or (plain and a < 0):
                continue
            status = known[q, after] if plain and a == 0 else UNKNOWN
            if status == ALIVE:
                both[side * n_words + (token >> 5)] |= np.int32(1) << np.int32(token & 31)
            elif status != DEAD:
                if n_slow == len(slow):
                    slow = _grown_rows(slow)
                slow[n_slow, 0], slow[n_slow, 1], slow[n_slow, 2] = token, q, side
                slow[n_slow, 3], slow[n_slow, 4] = after, a
                n_slow += 1
    return both, slow[:n_slow]
