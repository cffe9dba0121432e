"""Products of byte DFAs: of two, less a few strings, and with a count of characters.

state after w  =  (state of a after w, state of b after w),      (0, 0) is dead

Rows come breadth-first by column. With `restart`, b begins anew whenever a accepts and b is dead:
that reads L(a) followed by L(b), for a b that lives no longer than until a may accept again, or
for good.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata._kernels import inner, jit
from bpe_automata._kernels.hashing import (
    EMPTY,
    first_slot,
    longer,
    mix,
    next_slot,
    slot_of,
    table_size,
    with_room,
)
from bpe_automata._kernels.watch import poll

DONE, OUT_OF_STATES, OUT_OF_MEMORY = 0, 1, 2


class Factors(NamedTuple):
    """a, b: int32 [n, k], row 0 all 0; a_column, b_column: int64, theirs of each column of the
    product; a_accepting: bool [n_a]; sure: bool [n_b], states of b beside which it does not matter
    where a is; need_a, need_b: is a pair dead once this part of it is?; restart: state of b, 0 for
    none."""

    a: np.ndarray
    b: np.ndarray
    a_column: np.ndarray
    b_column: np.ndarray
    a_accepting: np.ndarray
    sure: np.ndarray
    need_a: bool
    need_b: bool
    restart: int


class Rows(NamedTuple):
    """What is known so far. pairs: int32 [room, 2], of each state; trans: int32 [room, k]; keys,
    values: the hash table from pairs to states; counts: int64 [2], states made, rows done."""

    pairs: np.ndarray
    trans: np.ndarray
    keys: np.ndarray
    values: np.ndarray
    counts: np.ndarray


@inner
def _begun(factors: Factors, p: int, q: int) -> Rows:
    """The dead pair is state 0, the start (p, q) state 1 (or 0, if it is dead)."""
    rows = Rows(
        np.zeros((64, 2), np.int32),
        np.zeros((64, len(factors.a_column)), np.int32),
        np.full(table_size(128), EMPTY, np.int64),
        np.zeros(table_size(128), np.int32),
        np.array([1, 1]),
    )
    _state(factors, rows, p, q)
    return rows


@jit
def product(
    factors: Factors, p: int, q: int, max_states: int, max_bytes: int, watch: np.ndarray
) -> tuple[int, np.ndarray, np.ndarray]:
    """From the pair (p, q): (DONE or what ran out; pairs int32 [n, 2] and trans int32 [n, k])."""
    n_columns, rows, status = len(factors.a_column), _begun(factors, p, q), DONE
    while rows.counts[1] < rows.counts[0] and not poll(watch):
        if rows.counts[0] > max_states:
            status = OUT_OF_STATES
            break
        if rows.counts[0] + n_columns >= len(rows.pairs):
            if 12 * (n_columns + 4) * len(rows.pairs) > max_bytes:
                status = OUT_OF_MEMORY
                break
            rows = _roomier(rows, 2 * len(rows.pairs) + n_columns)
        here = rows.counts[1]
        p, q = rows.pairs[here, 0], rows.pairs[here, 1]
        for c in range(n_columns):
            a, b = factors.a[p, factors.a_column[c]], factors.b[q, factors.b_column[c]]
            rows.trans[here, c] = _state(factors, rows, a, b)
        rows.counts[1] += 1
    return status, rows.pairs[: rows.counts[0]], rows.trans[: rows.counts[0]]


@inner
def _state(factors: Factors, rows: Rows, p: int, q: int) -> int:
    """The number of a pair, a new one if it has none. There must be room."""
    if factors.restart != 0 and q == 0 and factors.a_accepting[p]:
        q = factors.restart
    if factors.sure[q]:
        p = 0
    if (p == 0 and q == 0) or (factors.need_a and p == 0) or (factors.need_b and q == 0):
        return 0
    key = p * len(factors.b) + q
    at = slot_of(rows.keys, key)
    if rows.keys[at] == EMPTY:
        state = rows.counts[0]
        rows.keys[at], rows.values[at] = key, state
        rows.pairs[state, 0], rows.pairs[state, 1] = p, q
        rows.counts[0] += 1
    return rows.values[at]


@inner
def _roomier(rows: Rows, room: int) -> Rows:
    """The same with room for more states."""
    count = rows.counts[0]
    pairs = np.zeros((room, 2), np.int32)
    trans = np.zeros((room, rows.trans.shape[1]), np.int32)
    pairs[:count], trans[:count] = rows.pairs[:count], rows.trans[:count]
    keys, values = with_room(rows.keys, rows.values, 2 * room)
    return Rows(pairs, trans, keys, values, rows.counts)


# Which bytes some automata tell apart.


@jit
def joint_columns(byte_class: np.ndarray, told_apart: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(column of each byte int32 [256], its first byte int32 [columns]) such that bytes share one
    only if they do in every row of byte_class (uint8 [blocks, 256]) and are not in told_apart (bool
    [256]); numbered by first byte."""
    column, some_byte, count = np.zeros(256, np.int32), np.zeros(256, np.int32), 0
    key = np.zeros(256, np.uint64)
    for byte in range(256):
        key[byte] = mix(1 + byte) if told_apart[byte] else np.uint64(0)
        for b in range(len(byte_class)):
            key[byte] = mix(key[byte] + np.uint64(byte_class[b, byte]))
        k = 0
        while k < count and not _together(byte_class, told_apart, key, some_byte[k], byte):
            k += 1
        if k == count:
            some_byte[k] = byte
            count += 1
        column[byte] = k
    return column, some_byte[:count].copy()


@inner
def _together(
    byte_class: np.ndarray, told_apart: np.ndarray, key: np.ndarray, a: int, b: int
) -> bool:
    if key[a] != key[b] or told_apart[a] or told_apart[b]:
        return False
    for row in range(len(byte_class)):  # noqa: SIM110 - numba compiles a loop better
        if byte_class[row, a] != byte_class[row, b]:
            return False
    return True


# A DFA less a few strings.
#
#     L = { w : start --w--> accepting, w not one of the strings }
#
# A new state for each prefix of a string, which goes on as the state of the DFA there does, but for
# the letters that go on along a string.


@jit
def less_strings(
    trans: np.ndarray,
    accepting: np.ndarray,
    start: int,
    letters: np.ndarray,
    ptr: np.ndarray,
    watch: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, int]:
    """(trans int32 [m, k], accepting bool [m], start): the states given, then the new ones.

    trans: int32 [n, k], row 0 all 0; accepting: bool [n]; letters: int32, columns of one byte each;
    string i is letters[ptr[i]:ptr[i+1]]. No new state leads nowhere.
    """
    n, k = trans.shape
    table = np.zeros((n + len(letters) + 1, k), np.int32)
    final, parent = np.zeros(len(table), np.bool_), np.zeros(len(table), np.int32)
    table[:n], final[:n] = trans, accepting
    table[n], final[n], used = trans[start], accepting[start], n + 1
    for i in range(len(ptr) - 1):
        here, at = n, ptr[i]
        while at < ptr[i + 1] and table[here, letters[at]] != 0 and not poll(watch):
            to = table[here, letters[at]]
            if to < n:
                table[used], final[used], parent[used] = trans[to], accepting[to], here
                table[here, letters[at]] = used
                to = used
                used += 1
            here, at = to, at + 1
        if at == ptr[i + 1]:
            final[here] = False
    kept = np.ones(used, np.bool_)
    for state in range(used - 1, n, -1):
        if poll(watch):
            break
        if not final[state] and not table[state].any():
            kept[state] = False
            for c in range(k):
                if table[parent[state], c] == state:
                    table[parent[state], c] = 0
    if not final[n] and not table[n].any():
        return table[:1], final[:1], 0
    number = np.cumsum(kept) - 1
    for state in range(n, used):
        if poll(watch):
            break
        if kept[state]:
            final[number[state]] = final[state]
            for c in range(k):
                table[number[state], c] = number[table[state, c]]
    used = number[-1] + 1
    return table[:used], final[:used], n


# The texts of a byte DFA whose number of characters is in a range: its product with a counter.
#
#     { w in L(dfa) : fewest <= characters of w <= most }
#
# State (q, i): where the DFA is after i whole characters (and perhaps the first bytes of one more).
# Layers are found forwards, and made states backwards: when all successors of a state have their
# numbers, it is an old one if some numbered state has the same row. So the result is minimal, in
# time linear in the states of the product (no partition is refined: 65,536 layers are common).


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


@jit
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


@jit
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


@inner
def _sort(states: np.ndarray, left: np.ndarray) -> None:
    """In place: 1 byte to go, 2, 3, and last those between two characters."""
    sorted_states, used = np.empty(states.size, np.int32), 0
    for wanted in (1, 2, 3, 0):
        for s in states:
            if left[s] == wanted:
                sorted_states[used] = s
                used += 1
    states[:] = sorted_states


@jit
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


@inner
def _nothing(room: int, n_columns: int) -> Made:
    """The dead state, number 0, and room for others."""
    return Made(
        np.zeros((room, n_columns), np.int32),
        np.zeros(room, np.bool_),
        np.zeros(room, np.uint64),
        np.zeros(table_size(room), np.int32),
        np.ones(1, np.int64),
    )


@inner
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
