"""What is dead at which configurations: sets of ids, each kept once. See `_kernels.dead_sets`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bpe_automata._kernels import kernel
from bpe_automata._kernels.hashing import EMPTY, grown, grown_rows, mix, slot_of, with_room
from bpe_automata._kernels.product import configuration_key

NOTHING, UNSETTLED, UNDER_WAY = -1, -2, -3


class Dead(NamedTuple):
    """Sets of ids, each once. sets int64 [room, words]: see `_kernels.geometry`; slots int64,
    values int32: hash table from a digest to a row; n int64 [1]: rows that are in use."""

    sets: np.ndarray
    slots: np.ndarray
    values: np.ndarray
    n: np.ndarray


class Settled(NamedTuple):
    """What is dead where. slots int64, values int32: hash table from configurations
    (`product.configuration_key`) to NOTHING or a row of `dead`; n int64 [1]: configurations."""

    slots: np.ndarray
    values: np.ndarray
    n: np.ndarray
    dead: Dead


class Met(NamedTuple):
    """The configurations that a search meets, numbered. key int64 [room]; found int32 [room]: as in
    `Settled`, or UNSETTLED, UNDER_WAY; slots int64, values int32: hash table from keys to numbers;
    n int64 [1]."""

    key: np.ndarray
    found: np.ndarray
    slots: np.ndarray
    values: np.ndarray
    n: np.ndarray


@kernel
def settled_at(key: int, known: Settled) -> int:
    """NOTHING, or the row of what is dead at a configuration; UNSETTLED."""
    at = slot_of(known.slots, key)
    return known.values[at] if known.slots[at] == key else UNSETTLED


@kernel
def unsettled(rows: np.ndarray, known: Settled) -> np.ndarray:
    """int64: the configurations that open rows lead to of which it is not known what is dead
    there."""
    found, n = np.empty(len(rows), np.int64), 0
    for i in range(len(rows)):
        key = configuration_key(rows[i, 1], rows[i, 2])
        if settled_at(key, known) == UNSETTLED:
            found[n] = key
            n += 1
    return found[:n]


@kernel
def add_settled(
    rows: np.ndarray, free: np.ndarray, bound: np.ndarray, known: Settled, left_at: np.ndarray
) -> None:
    """Set the ids of open rows (see `_kernels.masks`) that are not dead where they lead, which
    must be settled; in `free` or `bound`, packed int32."""
    last: Any = EMPTY
    row = UNSETTLED
    for i in range(len(rows)):
        token, bits, key = rows[i, 0], bound, configuration_key(rows[i, 1], rows[i, 2])
        if rows[i, 3]:
            bits = free
        if key != last:  # many ids lead to one configuration, side by side
            last, row = key, settled_at(key, known)
        if lacks(token, row, known.dead, left_at):
            bits[token >> 5] |= np.int32(1) << np.int32(token & 31)


@kernel
def none_met() -> Met:
    return Met(
        np.empty(64, np.int64),
        np.empty(64, np.int32),
        np.full(128, EMPTY, np.int64),
        np.zeros(128, np.int32),
        np.zeros(1, np.int64),
    )


@kernel
def met_with_room(met: Met, more: int) -> Met:
    """The same with room for `more` configurations."""
    key, found, slots, values = met.key, met.found, met.slots, met.values
    while met.n[0] + more > len(key):
        key, found = grown(key, len(key)), grown(found, len(found))
    if len(key) > len(met.key):
        slots, values = with_room(slots, values, len(key))
    return Met(key, found, slots, values, met.n)


@kernel
def meet(key: int, met: Met, known: Settled) -> int:
    """The number of a configuration."""
    at = slot_of(met.slots, key)
    if met.slots[at] != key:
        n = met.n[0]
        met.slots[at], met.values[at] = key, n
        met.key[n], met.found[n] = key, settled_at(key, known)
        met.n[0] += 1
    return met.values[at]


@kernel
def with_all(known: Settled, met: Met, dead: Dead) -> Settled:
    """What was known, and what was found."""
    slots, values = known.slots, known.values
    if 2 * (known.n[0] + met.n[0]) > len(slots) - 2:
        slots, values = with_room(slots, values, known.n[0] + met.n[0] + 1)
    for i in range(met.n[0]):
        at = slot_of(slots, met.key[i])
        if met.found[i] > UNSETTLED and slots[at] != met.key[i]:
            slots[at], values[at] = met.key[i], met.found[i]
            known.n[0] += 1
    return Settled(slots, values, known.n, dead)


@kernel
def stored(positions: np.ndarray, dead: Dead) -> tuple[Dead, int]:
    """With a set, and its row."""
    digest = np.uint64(0)
    for word in positions:
        digest = mix(digest ^ np.uint64(word))
    key: Any = np.int64(digest >> np.uint64(1))
    n = dead.n[0]
    at = slot_of(dead.slots, key)
    if dead.slots[at] == key and not (dead.sets[dead.values[at]] != positions).any():
        return dead, dead.values[at]
    sets, slots, values = dead.sets, dead.slots, dead.values
    if n == len(sets):
        sets = grown_rows(sets)
        slots, values = with_room(slots, values, len(sets))
        at = slot_of(slots, key)
    sets[n], values[at], slots[at] = positions, n, key
    count = np.empty(1, np.int64)
    count[0] = n + 1
    return Dead(sets, slots, values, count), n


@kernel
def lacks(token: int, row: int, dead: Dead, left_at: np.ndarray) -> bool:
    """Is it known that an id is not in a set?"""
    if row <= UNSETTLED:
        return False
    at = left_at[token]
    return row == NOTHING or not (dead.sets[row, at >> 6] >> (at & 63)) & 1
