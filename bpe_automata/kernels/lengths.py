"""The texts of a byte DFA that have so many characters.

    { w in L(dfa) : fewest <= characters of w <= most }

State (q, i): where the DFA is after i whole characters (and perhaps the first bytes of one more).
Layers are found forwards, and made states backwards: when all that a state leads to is settled, it
is an old one if some settled state has the same row. So the result is minimal, in time linear in
the states of the product (which is why no partition is refined here: 65,536 layers are common).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata.kernels import kernel
from bpe_automata.kernels.hashing import first_slot, longer, mix, next_slot, table_size
from bpe_automata.kernels.references import by_reference
from bpe_automata.kernels.watch import poll


@by_reference
class Layers(NamedTuple):
    """pool: int32, the states of the layers; those of layer i are pool[ptr[i]:ptr[i + 1]], first
    those inside a character (the fewest bytes to go first), then those between two."""

    pool: np.ndarray
    ptr: np.ndarray


class Made(NamedTuple):
    """rows: int32 [room, k]; accepting: bool [room]; keys: uint64 [room]; table: int32; used:
    int64 [1], rows made."""

    rows: np.ndarray
    accepting: np.ndarray
    keys: np.ndarray
    table: np.ndarray
    used: np.ndarray


@kernel
def to_go(trans: np.ndarray, some_byte: np.ndarray, start: int) -> np.ndarray:
    """int8 [n]: bytes that the character needs which has begun at each state; -1 if unreachable.

    trans: int32 [n, k], over well-formed UTF-8 only; some_byte: int32 [k], a byte of each column.
    """
    left = np.full(trans.shape[0], -1, np.int8)
    stack, top = np.empty(trans.shape[0], np.int32), 1
    left[0], left[start], stack[0] = 0, 0, start
    if start == 0:
        return left
    while top > 0:
        top -= 1
        here = stack[top]
        for c in range(trans.shape[1]):
            target, first = trans[here, c], some_byte[c]
            if left[target] >= 0:
                continue
            after = left[here] - 1
            if left[here] == 0:
                after = 0 if first < 0x80 else 1 if first < 0xE0 else 2 if first < 0xF0 else 3
            left[target], stack[top] = after, target
            top += 1
    return left


@kernel
def layers(
    trans: np.ndarray, left: np.ndarray, start: int, count: int, limit: int, watch: np.ndarray
) -> tuple[bool, np.ndarray, np.ndarray]:
    """What can be reached in layers 0 to count - 1: (False if more than `limit` states are, pool
    and ptr of the `Layers`).

    trans: int32 [n, k]; left: int8 [n], from `to_go`. There are fewer layers if the later ones
    have no states. A state is met once a layer.
    """
    n = trans.shape[0]
    pool, ptr = np.empty(4 * n + 64, np.int32), np.zeros(count + 1, np.int64)
    seen, now, following = np.full(n, -1, np.int64), np.empty(n, np.int32), np.empty(n, np.int32)
    now[0], n_now, used = start, 1, 0
    for i in range(count):
        if n_now == 0:
            return True, pool, ptr[: i + 1].copy()
        if used + 2 * n > limit or poll(watch):
            return False, pool, ptr
        if used + 2 * n > pool.size:
            pool = longer(pool, 2 * pool.size + 2 * n)
        n_next, first = 0, used
        for k in range(n_now):
            pool[used] = now[k]
            used += 1
        done = first
        while done < used:
            here = pool[done]
            done += 1
            for target in trans[here]:
                if target == 0 or seen[target] == i:
                    continue
                seen[target] = i
                if left[target] > 0:
                    pool[used] = target
                    used += 1
                else:
                    following[n_next] = target
                    n_next += 1
        _sort(pool[first:used], left)
        ptr[i + 1] = used
        now, following, n_now = following, now, n_next
    return True, pool, ptr


@kernel
def _sort(states: np.ndarray, left: np.ndarray) -> None:
    """In place: 1 byte to go, 2, 3, and last those between two characters."""
    sorted_states, used = np.empty(states.size, np.int32), 0
    for wanted in (1, 2, 3, 0):
        for s in states:
            if left[s] == wanted:
                sorted_states[used] = s
                used += 1
    states[:] = sorted_states


@kernel
def made(
    trans: np.ndarray,
    accepting: np.ndarray,
    left: np.ndarray,
    found: Layers,
    bounds: tuple[int, int],
    watch: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, int]:
    """(rows, accepting, start): the states of all layers.

    bounds: (fewest, most). most < 0: no bound, and layer `fewest` is the DFA itself, whose rows
    must be minimal and trimmed; the others are made in front of it.
    """
    n, k = trans.shape
    fewest, most = bounds
    out = _nothing(n + found.ptr[-1] + 1, k)
    here, following = np.zeros(n, np.int32), np.zeros(n, np.int32)
    if most < 0:
        for s in range(1, n):
            out.rows[out.used[0]] = trans[s]
            following[s] = _interned(out, accepting[s])
    start = 0
    for i in range(found.ptr.size - 2, -1, -1):
        if poll(watch):
            break
        states = found.pool[found.ptr[i] : found.ptr[i + 1]]
        for s in states:
            row = out.rows[out.used[0]]
            for c in range(k):
                target = trans[s, c]
                row[c] = following[target] if left[target] == 0 else here[target]
            here[s] = start = _interned(out, left[s] == 0 and i >= fewest and accepting[s])
        following[:] = 0
        for s in states:
            following[s], here[s] = here[s], 0
    rows = out.used[0]
    return out.rows[:rows], out.accepting[:rows], start


@kernel
def _nothing(room: int, n_columns: int) -> Made:
    """The dead state, number 0, and room for others."""
    return Made(
        np.zeros((room, n_columns), np.int32),
        np.zeros(room, np.bool_),
        np.zeros(room, np.uint64),
        np.zeros(table_size(room), np.int32),
        np.ones(1, np.int64),
    )


@kernel
def _interned(out: Made, final: bool) -> int:
    """The state of the row that stands past the last one: an equal one if there is one."""
    new = out.used[0]
    key, dead = np.uint64(final), not final
    for target in out.rows[new]:
        dead = dead and target == 0
        key = key * np.uint64(0x9E3779B97F4A7C15) + np.uint64(target)
    if dead:
        return 0
    key = mix(key)
    slot = first_slot(key, out.table)
    while out.table[slot] != 0:
        state = int(out.table[slot])
        alike = out.keys[state] == key and out.accepting[state] == final
        if alike and (out.rows[state] == out.rows[new]).all():
            return state
        slot = next_slot(slot, out.table)
    out.table[slot], out.keys[new], out.accepting[new] = new, key, final
    out.used[0] += 1
    return new
