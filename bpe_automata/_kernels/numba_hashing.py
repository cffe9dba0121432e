"""Open-addressing hash tables from non-negative int64 keys, EMPTY where a slot is free, to values.

    len(slots) = table_size(n),  a power of two,  for at most n keys

So at most half of the slots are filled, and a probe ends within n + 1 steps, at the key or at a
free slot. No table is made, and none grows, with a size from elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bpe_automata._kernels import inlined, jit

# Tables without keys, for the automata kernels: int32 arrays, of a size that is a power of two, of
# the numbers of entries, 0 where free. The caller keeps the key of each entry and compares keys.


@inlined
def mix(word: Any) -> Any:
    """A bijection of uint64 whose low bits depend on all bits of `word` (any integer)."""
    h = np.uint64(word) * np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return h ^ (h >> np.uint64(29))


@jit
def table_size(entries: int) -> int:
    """The power of two that keeps a table of `entries` at most half full: the size of every hash
    table, since the probes of any other leave slots out and may never end."""
    size = 16
    while size < 2 * entries:
        size *= 2
    return size


@inlined
def first_slot(key: Any, table: np.ndarray) -> int:
    """Where the search for a uint64 key begins in a table whose size is a power of two."""
    return np.int64(key & np.uint64(table.size - 1))  # type: ignore[return-value]


@inlined
def next_slot(slot: int, table: np.ndarray) -> int:
    """Where the search goes on if `slot` is taken. It ends, as a table is at most half full."""
    return (slot + 1) & (table.size - 1)


@jit
def rehashed(table: np.ndarray, keys: np.ndarray, entries: int) -> np.ndarray:
    """A table for more entries; keys: uint64, the key of each entry of `table`."""
    fresh = np.zeros(table_size(entries), np.int32)
    for entry in table:
        if entry != 0:
            slot = first_slot(keys[entry], fresh)
            while fresh[slot] != 0:
                slot = next_slot(slot, fresh)
            fresh[slot] = entry
    return fresh


def lengthened(array: np.ndarray, size: int) -> np.ndarray:
    """A copy with zeros at its end, of so many rows in all."""
    more = np.zeros((size - len(array), *array.shape[1:]), array.dtype)
    return np.concatenate([array, more])


@jit
def longer(array: np.ndarray, size: int) -> np.ndarray:
    """A copy of a one-dimensional array with zeros at its end."""
    # np.concatenate would do, but takes seconds to compile for each dtype.
    copy = np.zeros(size, array.dtype)
    for i in range(array.size):
        copy[i] = array[i]
    return copy


EMPTY = -1


@inlined
def spread(key: Any) -> Any:
    """An int64 whose low 32 bits depend on all bits of a key."""
    return ((key ^ (key >> 29)) * -7046029254386353131) >> 32


@inlined
def slot_of(keys: np.ndarray, key: Any) -> Any:
    """The slot that holds `key`, or the empty slot where it belongs."""
    mask = len(keys) - 1
    at = spread(key) & mask
    while keys[at] != EMPTY and keys[at] != key:
        at = (at + 1) & mask
    return at


@jit
def build_table(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Table from each of `keys` (int64, distinct) to its index: (slots int64, values int32)."""
    slots = np.empty(table_size(len(keys) + 1), np.int64)
    values = np.empty(len(slots), np.int32)
    slots[:], values[:] = EMPTY, EMPTY
    for index in range(len(keys)):
        at = slot_of(slots, keys[index])
        slots[at] = keys[index]
        values[at] = index
    return slots, values


@jit
def look_up(slots: np.ndarray, values: np.ndarray, key: int) -> int:
    """The value of `key`, -1 if it is not in the table."""
    at = slot_of(slots, key)
    return values[at] if slots[at] == key else EMPTY


@jit
def with_room(slots: np.ndarray, values: np.ndarray, entries: int) -> tuple[np.ndarray, np.ndarray]:
    """A table in one for `entries` keys, no fewer than there are; values of any dtype."""
    roomier = np.empty(table_size(entries), np.int64)
    roomier[:] = EMPTY
    moved = np.zeros(len(roomier), values.dtype)
    for at in range(len(slots)):
        if slots[at] != EMPTY:
            to = slot_of(roomier, slots[at])
            roomier[to], moved[to] = slots[at], values[at]
    return roomier, moved
