# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: freethreading_compatible=True
# cython: initializedcheck=False
"""Open-addressing hash tables from non-negative int64 keys to values.

    len(slots) = table_size(n),  a power of two,  for at most n keys

So at most half of the slots are filled, and a probe ends within n + 1 steps, at the key or at a
free slot. In a smaller table a probe might never end.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint64_t


def table_size(int64_t entries):
    """The size of a hash table for so many entries."""
    return table_size_for(entries)


def build_table(const int64_t[::1] keys):
    """A table from each of the keys, distinct, to its index: (slots int64, values int32)."""
    size = table_size_for(len(keys) + 1)
    slots, values = np.full(size, EMPTY, np.int64), np.full(size, EMPTY, np.int32)
    cdef int64_t[::1] slot = slots
    cdef int32_t[::1] value = values
    cdef int64_t index, at
    with nogil:
        for index in range(keys.shape[0]):
            at = slot_of(&slot[0], slot.shape[0], keys[index])
            slot[at], value[at] = keys[index], <int32_t>index
    return slots, values


def with_room(const int64_t[::1] slots, const int32_t[::1] values, int64_t entries):
    """The same table for `entries` keys, no fewer than there are: (slots int64, values int32)."""
    size = table_size_for(entries)
    roomier, moved = np.full(size, EMPTY, np.int64), np.zeros(size, np.int32)
    cdef int64_t[::1] slot = roomier
    cdef int32_t[::1] value = moved
    cdef int64_t at, to
    with nogil:
        for at in range(slots.shape[0]):
            if slots[at] != EMPTY:
                to = slot_of(&slot[0], slot.shape[0], slots[at])
                slot[to], value[to] = slots[at], values[at]
    return roomier, moved


def look_up(const int64_t[::1] slots, const int32_t[::1] values, int64_t key):
    """The value of a key, -1 if it is not in the table."""
    cdef int64_t at = slot_of(&slots[0], slots.shape[0], key)
    return values[at] if slots[at] == key else EMPTY


# Tables by number, which the automata kernels grow between two calls.


def rehashed(const int32_t[::1] table, const uint64_t[::1] keys, int64_t entries):
    """A table by number for more entries. keys: the key of each entry of `table`."""
    fresh = np.zeros(table_size_for(entries), np.int32)
    cdef int32_t[::1] into = fresh
    cdef int64_t i, slot, size = into.shape[0]
    with nogil:
        for i in range(table.shape[0]):
            if table[i] != 0:
                slot = first_slot(keys[table[i]], size)
                while into[slot] != 0:
                    slot = next_slot(slot, size)
                into[slot] = table[i]
    return fresh


def lengthened(array, size):
    """A copy with zeros at its end, of so many rows in all."""
    more = np.zeros((size - len(array), *array.shape[1:]), array.dtype)
    return np.concatenate([array, more])
