"""Open-addressing hash tables from non-negative int64 keys, EMPTY where a slot is free, to values.

    len(slots) = table_size(n),  a power of two,  for at most n keys

So at most half of the slots are filled, and a probe ends within n + 1 steps, at the key or at a
free slot. No table is made, and none grows, with a size from elsewhere.
"""

from __future__ import annotations

import numpy as np

from bpe_automata.kernels import kernel
from bpe_automata.kernels.mixing import table_size

EMPTY = -1


@kernel
def slot_of(keys: np.ndarray, key: int) -> int:
    """The slot that holds `key`, or the empty slot where it belongs."""
    mask = len(keys) - 1
    at = ((key * -7046029254386353131) >> 20) & mask
    while keys[at] != EMPTY and keys[at] != key:
        at = (at + 1) & mask
    return at


@kernel
def build_table(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Table from each of `keys` (int64, distinct) to its index: (slots int64, values int32)."""
    slots = np.full(table_size(len(keys) + 1), EMPTY, np.int64)
    values = np.full(len(slots), EMPTY, np.int32)
    for index in range(len(keys)):
        at = slot_of(slots, keys[index])
        slots[at] = keys[index]
        values[at] = index
    return slots, values


@kernel
def look_up(slots: np.ndarray, values: np.ndarray, key: int) -> int:
    """The value of `key`, -1 if it is not in the table."""
    at = slot_of(slots, key)
    return values[at] if slots[at] == key else EMPTY


@kernel
def keys_with_room(slots: np.ndarray, entries: int) -> np.ndarray:
    """The keys of a table in one for `entries` keys, no fewer than there are."""
    roomier = np.full(table_size(entries), EMPTY, np.int64)
    for key in slots:
        if key != EMPTY:
            roomier[slot_of(roomier, key)] = key
    return roomier


@kernel
def with_room(slots: np.ndarray, values: np.ndarray, entries: int) -> tuple[np.ndarray, np.ndarray]:
    """A table in one for `entries` keys, no fewer than there are; values of any dtype."""
    roomier = keys_with_room(slots, entries)
    moved = np.zeros(len(roomier), values.dtype)
    for at in range(len(slots)):
        if slots[at] != EMPTY:
            moved[slot_of(roomier, slots[at])] = values[at]
    return roomier, moved
