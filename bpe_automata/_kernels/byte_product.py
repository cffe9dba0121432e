"""Products of byte DFAs: of two, and of one with a count of characters.

state after w  =  (state of a after w, state of b after w),      (0, 0) is dead

Rows come breadth-first by column.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata._kernels import inner, jit
from bpe_automata._kernels.hashing import EMPTY, longer, slot_of, table_size, with_room
from bpe_automata._kernels.utf8 import row_number
from bpe_automata._kernels.watch import poll

DONE, OUT_OF_STATES, OUT_OF_MEMORY = 0, 1, 2


class Factors(NamedTuple):
    """a, b: int32 [n, k], row 0 all 0; a_column, b_column: int64, theirs of each column of the
    product; need_a, need_b: is a pair dead once this part of it is?"""

    a: np.ndarray
    b: np.ndarray
    a_column: np.ndarray
    b_column: np.ndarray
    need_a: bool
    need_b: bool


@jit
def product(
    factors: Factors, p: int, q: int, max_states: int, max_bytes: int, watch: np.ndarray
) -> tuple[int, np.ndarray, np.ndarray]:
    """From the pair (p, q): (DONE or what ran out; pairs int32 [n, 2] and trans int32 [n, k]). The
    dead pair is state 0, the start state 1 (or 0, if it is dead)."""
    n_columns, status = len(factors.a_column), DONE
    room = 64 + n_columns
    pairs, trans = np.zeros((room, 2), np.int32), np.zeros((room, n_columns), np.int32)
    keys = np.full(table_size(room), EMPTY, np.int64)
    values = np.zeros(len(keys), np.int32)
    count, here = max(1, 1 + _state(factors, pairs, keys, values, 1, p, q)), 1
    while here < count and not poll(watch):
        if count > max_states:
            status = OUT_OF_STATES
            break
        if count + n_columns >= room:
            if 12 * (n_columns + 4) * room > max_bytes:
                status = OUT_OF_MEMORY
                break
            room *= 2
            pairs = longer(pairs.ravel(), 2 * room).reshape((room, 2))
            trans = longer(trans.ravel(), n_columns * room).reshape((room, n_columns))
            keys, values = with_room(keys, values, room)
        p, q = pairs[here, 0], pairs[here, 1]
        for c in range(n_columns):
            a, b = factors.a[p, factors.a_column[c]], factors.b[q, factors.b_column[c]]
            trans[here, c] = _state(factors, pairs, keys, values, count, a, b)
            count = max(count, 1 + trans[here, c])
        here += 1
    return status, pairs[:count], trans[:count]


@inner
def _state(
    factors: Factors,
    pairs: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
    count: int,
    p: int,
    q: int,
) -> int:
    """The number of a pair; `count`, the next one, if it has none. There must be room."""
    if (p == 0 and q == 0) or (factors.need_a and p == 0) or (factors.need_b and q == 0):
        return 0
    key = p * len(factors.b) + q
    at = slot_of(keys, key)
    if keys[at] == EMPTY:
        keys[at], values[at] = key, count
        pairs[count, 0], pairs[count, 1] = p, q
    return values[at]


# The texts of a byte DFA whose number of characters is in a range: its product with a counter.
#
#     { w in L(dfa) : fewest <= characters of w <= most }
#
# State (q, i): where the DFA is after i whole characters (and perhaps the first bytes of one more).
# Layers are found forwards, and made states backwards: when all successors of a state have their
# numbers, it is an old one if some numbered state has the same row. So the result is minimal, in
# time linear in the states of the product (no partition is refined: 65,536 layers are common).


@jit
def layers(
    trans: np.ndarray, left: np.ndarray, start: int, count: int, limit: int, watch: np.ndarray
) -> tuple[bool, np.ndarray, np.ndarray]:
    """What can be reached in layers 0 to count - 1: (False if more than `limit` states are; pool
    int32 and ptr int64). The states of layer i are pool[ptr[i]:ptr[i + 1]].

    trans: int32 [n, k], over well-formed UTF-8 only; left: int8 [n], bytes that the character needs
    which has begun at each state. There are fewer layers if the later ones have no states. A state
    is met once a layer.
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
        ptr[i + 1] = used
        now, following, n_now = following, now, n_next
    return True, pool, ptr


@jit
def made(
    trans: np.ndarray,
    accepting: np.ndarray,
    left: np.ndarray,
    pool: np.ndarray,
    ptr: np.ndarray,
    bounds: tuple[int, int],
    watch: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, int]:
    """(rows, accepting, start): the states of all layers.

    bounds: (fewest, most). most < 0: no bound, and layer `fewest` is the DFA itself, whose rows
    must be minimal and trimmed; the others are made in front of it.
    """
    n, k = trans.shape
    fewest, most = bounds
    room = n + ptr[-1] + 1
    rows, final, keys = (
        np.zeros((room, k), np.int32),
        np.zeros(room, np.bool_),
        np.zeros(room, np.uint64),
    )
    table = np.zeros(table_size(room), np.int32)
    here, following = np.zeros(n, np.int32), np.zeros(n, np.int32)
    start, used = 0, 1
    if most < 0:
        for s in range(1, n):
            rows[used], final[used] = trans[s], accepting[s]
            following[s] = row_number(rows, used, final[used], keys, table)
            used = max(used, following[s] + 1)
    for i in range(len(ptr) - 2, -1, -1):
        states = pool[ptr[i] : ptr[i + 1]]
        for wanted in (1, 2, 3, 0):  # the fewest bytes to go first
            for s in states:
                if left[s] != wanted or poll(watch):
                    continue
                for c in range(k):
                    target = trans[s, c]
                    rows[used, c] = following[target] if left[target] == 0 else here[target]
                final[used] = wanted == 0 and i >= fewest and accepting[s]
                here[s] = start = row_number(rows, used, final[used], keys, table)
                used = max(used, start + 1)
        following[:] = 0
        for s in states:
            following[s], here[s] = here[s], 0
    return rows[:used], final[:used], start
