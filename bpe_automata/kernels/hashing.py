"""Open-addressing hash table from non-negative int64 keys to int32 values."""

from __future__ import annotations

import numpy as np

from bpe_automata.kernels import kernel

EMPTY = -1


@kernel
def slot_of(keys: np.ndarray, key: int) -> int:
    """The slot that holds `key`, or the empty slot where it belongs. len(keys) is a power of 2."""
    mask = len(keys) - 1
    at = ((key * -7046029254386353131) >> 20) & mask
    while keys[at] != EMPTY and keys[at] != key:
        at = (at + 1) & mask
    return at


@kernel
def build_table(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Table from each of `keys` (int64, distinct) to its index: (slots int64, values int32)."""
    size = 16
    while size < 2 * len(keys) + 2:
        size *= 2
    slots = np.full(size, EMPTY, np.int64)
    values = np.full(size, EMPTY, np.int32)
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
def rehash(
    old_slots: np.ndarray, old_values: np.ndarray, slots: np.ndarray, values: np.ndarray
) -> None:
    """Enter what one table holds into an empty one."""
    for i in range(len(old_slots)):
        if old_slots[i] != EMPTY:
            at = slot_of(slots, old_slots[i])
            slots[at], values[at] = old_slots[i], old_values[i]
