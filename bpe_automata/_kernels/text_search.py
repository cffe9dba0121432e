"""Text-level reachability: which hypotheses at which state pairs lead on to acceptance.

Text is explored character by character: any text between two boundaries has a canonical spelling,
so at this level only the hypotheses and the added tokens restrict it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata._kernels import kernel
from bpe_automata._kernels.hashing import (
    EMPTY,
    grown,
    grown_rows,
    keys_with_room,
    slot_of,
    table_size,
    with_room,
)
from bpe_automata._kernels.links import step
from bpe_automata._kernels.product import (
    ALIVE,
    DEAD,
    UNKNOWN,
    Memo,
    Product,
    added_step,
    intern_state_pair,
    know_at_end,
    known_at_end,
    step_range,
)
from bpe_automata._kernels.watch import poll

# Where one character leads: the steps of a byte DFA over the atoms of the alphabet.


@kernel
def ascii_steps(state: int, w: Product) -> tuple[np.ndarray, np.ndarray]:
    """(atoms, states): where one-byte characters lead, neighbouring repeats left out."""
    atoms, states = np.empty(128, np.int32), np.empty(128, np.int32)
    count = 0
    for byte in range(128):
        after = step(state, byte, w.dfa.steps)
        entry = w.reading.utf8[0, byte]
        if after == 0 or entry > -2:
            continue
        if count == 0 or atoms[count - 1] != -2 - entry or states[count - 1] != after:
            atoms[count], states[count] = -2 - entry, after
            count += 1
    return atoms[:count], states[:count]


@kernel
def wide_steps(utf8_row: int, state: int, w: Product) -> tuple[np.ndarray, np.ndarray]:
    """(atoms, states): where characters of several bytes lead, or (utf8_row > 0) the rest of
    one."""
    atoms, states = np.empty(256, np.int32), np.empty(256, np.int32)
    rows, at = np.empty(256, np.int32), np.empty(256, np.int32)
    seen = np.full(table_size(2048), EMPTY, np.int64)
    n_seen, count, open_ = 0, 0, 1
    rows[0], at[0] = utf8_row, state
    while open_ > 0:
        open_ -= 1
        r, q = rows[open_], at[open_]
        # Room for all bytes at once: an array that a loop replaces has its references counted.
        if open_ + 128 > len(rows):
            rows, at = grown(rows, len(rows)), grown(at, len(at))
        if count + 128 > len(atoms):
            atoms, states = grown(atoms, len(atoms)), grown(states, len(states))
        if 2 * (n_seen + 128) > len(seen):
            seen = keys_with_room(seen, 2 * (n_seen + 128))
        for byte in range(0x80, 0x100):
            after = step(q, byte, w.dfa.steps)
            entry = w.reading.utf8[r, byte]
            if after == 0 or entry == -1:
                continue
            key = np.int64(after) * (1 << 32) + (entry if entry > 0 else (1 << 31) - entry)
            slot = slot_of(seen, key)
            if seen[slot] == key:
                continue
            seen[slot] = key
            n_seen += 1
            if entry > 0:
                rows[open_], at[open_] = entry, after
                open_ += 1
            else:
                atoms[count], states[count] = -2 - entry, after
                count += 1
    return atoms[:count], states[:count]


_ON_SEARCH = 3  # in `Memo.at_end`: met in the search that is running
_RECENT = 32
_KEPT, _MOST_STEPS = 64, 1024
_SHORT, _MOST_MET, _NO_LIMIT = 32, 1024, 1 << 31


class Recent(NamedTuple):
    """The steps of states that a search met last. state, size: int32 [kept], of which state they
    are (-1: of none) and how many; atoms, states: int32 [kept, most of a state]."""

    state: np.ndarray
    size: np.ndarray
    atoms: np.ndarray
    states: np.ndarray


@kernel
def _recent() -> Recent:
    return Recent(
        np.full(_KEPT, -1, np.int32),
        np.empty(_KEPT, np.int32),
        np.empty((_KEPT, _MOST_STEPS), np.int32),
        np.empty((_KEPT, _MOST_STEPS), np.int32),
    )


@kernel
def _pushed(
    q: int, a: int, h: int, pool: np.ndarray, first: int, count: int, w: Product
) -> tuple[np.ndarray, int]:
    """Append (state pair, hypothesis) unless it is dead, or one of the last few from `first` on:
    the pool holds what is left at each step of a path, which may be as long as a text."""
    state_pair = intern_state_pair(q, a, w)
    if known_at_end(state_pair, h, w.memo) == DEAD:
        return pool, count
    for i in range(max(first, count - _RECENT), count):
        if pool[i, 0] == state_pair and pool[i, 1] == h:
            return pool, count
    if count == len(pool):
        pool = grown_rows(pool)
    pool[count, 0], pool[count, 1] = state_pair, h
    return pool, count + 1


@kernel
def _wide_steps(q: int, recent: Recent, w: Product) -> tuple[np.ndarray, np.ndarray]:
    """Of state q, as `characters.wide_steps`. Some hundreds of hypotheses may ask for the same."""
    at = q % _KEPT
    if recent.state[at] != q:
        atoms, states = wide_steps(0, q, w)
        if len(atoms) > _MOST_STEPS:
            return atoms, states
        recent.state[at], recent.size[at] = q, len(atoms)
        recent.atoms[at, : len(atoms)], recent.states[at, : len(atoms)] = atoms, states
    count = recent.size[at]
    return recent.atoms[at, :count], recent.states[at, :count]


@kernel
def _successors(
    state_pair: int, h: int, wide: bool, pool: np.ndarray, count: int, recent: Recent, w: Product
) -> tuple[np.ndarray, int]:
    """Append to `pool` the (state pair, hypothesis) that one character leads to: an ASCII one, or,
    if `wide`, any other or an added token. The one that is nearest to acceptance comes first."""
    first, q, a = count, w.memo.state[state_pair], w.memo.text_state[state_pair]
    if wide:
        atoms, states = _wide_steps(q, recent, w)
    else:
        atoms, states = ascii_steps(q, w)
    for i in range(len(atoms)):
        a2 = w.added.next[a, atoms[i]]
        if a2 < 0:
            continue
        for b in range(2):
            low, high = step_range(b, h, atoms[i], w)
            for j in range(low, high):
                to = w.reading.step_to[j]
                pool, count = _pushed(states[i], a2, to, pool, first, count, w)
    if wide and w.reading.ends[h]:
        for k in range(len(w.added.ids)):
            a2, q2 = added_step(q, a, k, w)
            if a2 >= 0 and q2 != 0:
                pool, count = _pushed(q2, a2, 0, pool, first, count, w)
    _nearest_first(pool[first:count], w)
    return pool, count


@kernel
def _nearest_first(found: np.ndarray, w: Product) -> None:
    """Acceptance is met early on a short path, and a long one is costly."""
    best, least = 0, -1
    for i in range(len(found)):
        distance = w.fixed_set.distance[w.memo.state[found[i, 0]]]
        if least < 0 or distance < least:
            best, least = i, distance
    if best > 0:
        for j in range(2):
            found[0, j], found[best, j] = found[best, j], found[0, j]


@kernel
def _surely(q: int, a: int, h: int, w: Product) -> bool:
    """Without a search: can the text end here, or does a plain one lead to acceptance, which the
    text automaton reads from here, as it reads all plain ones, and the hypothesis too?"""
    if w.dfa.accepting[q] and w.added.ends[a] and w.reading.ends[h]:
        return True
    return w.dfa.plain[q] and w.reading.universal[h] and w.added.harmless[a]


@kernel
def reads(state_pair: int, hypothesis: int, w: Product) -> bool:
    """Does some text lead from (state pair, hypothesis), at a character's end, to acceptance?"""
    known = known_at_end(state_pair, hypothesis, w.memo)
    if known in (ALIVE, DEAD):
        return known == ALIVE
    if _surely(w.memo.state[state_pair], w.memo.text_state[state_pair], hypothesis, w):
        know_at_end(state_pair, hypothesis, ALIVE, w.memo)
        return True
    found = _search(state_pair, hypothesis, _SHORT, w)
    if found == UNKNOWN:
        found = _search_nearest(state_pair, hypothesis, w)
    if found == UNKNOWN:
        found = _search(state_pair, hypothesis, _NO_LIMIT, w)
    return found == ALIVE


@kernel
def _search_nearest(p: int, h: int, w: Product) -> int:
    """ALIVE or DEAD, by a search that goes on from whatever is nearest to acceptance; UNKNOWN where
    it would meet more than `_MOST_MET`.

    A depth-first search may follow a hypothesis that goes on for as long as a string may, though
    another one ends at once.
    """
    # Of what was met: state pair, hypothesis, which one it was met from; twice the distance to
    # acceptance, and 1 more once only its wide steps are left; -1 where none are.
    met, left = np.empty((_MOST_MET, 3), np.int32), np.empty(_MOST_MET, np.int64)
    pool, recent = np.empty((256, 2), np.int32), _recent()
    met[0, 0], met[0, 1], met[0, 2] = p, h, -1
    left[0], count = 2 * w.fixed_set.distance[w.memo.state[p]], 1
    know_at_end(p, h, _ON_SEARCH, w.memo)
    found = UNKNOWN
    while found == UNKNOWN and count < _MOST_MET and not poll(w.watch):
        nearest = -1
        for i in range(count):
            if left[i] >= 0 and (nearest < 0 or left[i] < left[nearest]):
                nearest = i
        if nearest < 0:
            found = DEAD
            break
        wide = left[nearest] & 1 == 1
        left[nearest] = -1 if wide else left[nearest] + 1
        p, h = met[nearest, 0], met[nearest, 1]
        pool, n_pool = _successors(p, h, wide, pool, 0, recent, w)
        for i in range(n_pool):
            p, h = pool[i, 0], pool[i, 1]
            q = w.memo.state[p]
            known = known_at_end(p, h, w.memo)
            if known == ALIVE or _surely(q, w.memo.text_state[p], h, w):
                know_at_end(p, h, ALIVE, w.memo)
                found = ALIVE
                while nearest >= 0:
                    know_at_end(met[nearest, 0], met[nearest, 1], ALIVE, w.memo)
                    nearest = met[nearest, 2]
                break
            if known == UNKNOWN and count < _MOST_MET:
                met[count, 0], met[count, 1], met[count, 2] = p, h, nearest
                left[count] = 2 * w.fixed_set.distance[q]
                know_at_end(p, h, _ON_SEARCH, w.memo)
                count += 1
    for i in range(count):
        p, h = met[i, 0], met[i, 1]
        if known_at_end(p, h, w.memo) == _ON_SEARCH:
            know_at_end(p, h, found if found == DEAD else UNKNOWN, w.memo)
    return found


@kernel
def _taken_off(
    component: np.ndarray, n: int, first: int, status: int, configurations: np.ndarray, memo: Memo
) -> int:
    """Take all from number `first` on off the component stack of a search, say of them what is
    known now, and return how many are left."""
    while n > 0 and component[n - 1, 0] >= first:
        n -= 1
        met = configurations[component[n, 0]]
        know_at_end(met[0], met[1], status, memo)
    return n


@kernel
def _search(p: int, h: int, limit: int, w: Product) -> int:
    """ALIVE or DEAD, by Tarjan's depth-first search for strong components, stopped at the first
    success; UNKNOWN where it would meet more than `limit`.

    A component that is left without success is dead for good; on success everything still on the
    component stack leads to the current path, and so to acceptance. So nothing is met twice, and
    there are no more turns than state pairs times hypotheses and the steps out of them. Of what is
    on that stack when the search is stopped nothing is known.
    """
    pool, n_pool = np.empty((256, 2), np.int32), 0
    # Of what was met: state pair, hypothesis, low link, in that order; of a frame: which of them it
    # is for, next and end in the pool, is it wide.
    configurations, count = np.empty((64, 3), np.int32), 0
    frames, n_frames = np.empty((64, 4), np.int32), 0
    component, n_component = np.empty((64, 1), np.int32), 0
    slots = np.full(table_size(64), EMPTY, np.int64)  # which of them one is: a hash table
    order = np.empty(len(slots), np.int32)
    recent, memo, n = _recent(), w.memo, len(w.reading.ends)
    entering, found = True, False
    while not found and count <= limit and not poll(w.watch):
        if entering:
            entering = False
            if count == len(configurations):
                configurations, frames = grown_rows(configurations), grown_rows(frames)
                component = grown_rows(component)
                slots, order = with_room(slots, order, 2 * count)
            met, top = configurations[count], frames[n_frames]
            met[0], met[1], met[2], at = p, h, count, slot_of(slots, p * n + h)
            know_at_end(p, h, _ON_SEARCH, memo)
            slots[at], order[at], component[n_component, 0] = p * n + h, count, count
            top[0], top[1], top[3] = count, n_pool, 0
            pool, n_pool = _successors(p, h, False, pool, n_pool, recent, w)
            top[2] = n_pool
            count, n_component, n_frames = count + 1, n_component + 1, n_frames + 1
        top = frames[n_frames - 1]
        met = configurations[top[0]]
        if top[1] < top[2]:
            p, h = pool[top[1], 0], pool[top[1], 1]
            top[1] += 1
            known = known_at_end(p, h, memo)
            if known == ALIVE or _surely(w.memo.state[p], w.memo.text_state[p], h, w):
                know_at_end(p, h, ALIVE, memo)
                found = True
            elif known == _ON_SEARCH:
                met[2] = min(met[2], order[slot_of(slots, p * n + h)])
            entering = known == UNKNOWN and not found
        elif top[3] == 0:
            top[3] = 1
            pool, n_pool = _successors(met[0], met[1], True, pool, n_pool, recent, w)
            top[2] = n_pool
        else:
            n_frames -= 1
            if met[2] == top[0]:
                n_component = _taken_off(component, n_component, top[0], DEAD, configurations, memo)
            if n_frames == 0:
                break
            above = frames[n_frames - 1]
            configurations[above[0], 2] = min(configurations[above[0], 2], met[2])
            n_pool = above[2]
    _taken_off(component, n_component, 0, ALIVE if found else UNKNOWN, configurations, memo)
    return ALIVE if found else DEAD if n_frames == 0 else UNKNOWN
