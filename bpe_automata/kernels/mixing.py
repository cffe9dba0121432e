"""Hash tables with open addressing, and arrays that grow, for the automata kernels.

A table is an int32 array whose size is a power of two; it holds numbers of entries, 0 where free.
The caller keeps the key of each entry and compares what the key stands for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bpe_automata.kernels import kernel


@kernel
def mix(word: Any) -> Any:
    """A bijection of uint64 whose low bits depend on all bits of `word` (any integer)."""
    h = np.uint64(word) * np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return h ^ (h >> np.uint64(29))


@kernel
def table_size(entries: int) -> int:
    """The power of two that keeps a table of `entries` at most half full: the size of every hash
    table, since the probes of any other leave slots out and may never end."""
    size = 16
    while size < 2 * entries:
        size *= 2
    return size


@kernel
def first_slot(key: Any, table: np.ndarray) -> int:
    """Where the search for a uint64 key begins in a table whose size is a power of two."""
    return np.int64(key & np.uint64(table.size - 1))  # type: ignore[return-value]


@kernel
def next_slot(slot: int, table: np.ndarray) -> int:
    """Where the search goes on if `slot` is taken. It ends, as a table is at most half full."""
    return (slot + 1) & (table.size - 1)


@kernel
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


@kernel
def longer(array: np.ndarray, size: int) -> np.ndarray:
    """A copy of a one-dimensional array with zeros at its end."""
    # np.concatenate would do, but takes seconds to compile for each dtype.
    copy = np.zeros(size, array.dtype)
    for i in range(array.size):
        copy[i] = array[i]
    return copy
