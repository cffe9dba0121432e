"""All splits of all tokens into two tokens, by hashing: arrays in, arrays out."""

from __future__ import annotations

from typing import Any

import numpy as np

from bpe_automata.kernels import kernel
from bpe_automata.kernels.mixing import longer, table_size
from bpe_automata.kernels.watch import poll

_OFFSET, _PRIME = 1469598103934665603, 1099511628211  # FNV-1a, 64 bits (as wrapping int64)


@kernel
def find_splits(data: np.ndarray, start: np.ndarray, watch: np.ndarray) -> np.ndarray:
    """int32 [m, 3], (left, right, made) as indices of tokens; token i is data[start[i]:start[i+1]]
    (uint8; int64 [n + 1]), all different. Ordered by token, then by the length of the left part."""
    n_tokens = start.size - 1
    size = table_size(n_tokens + 1)
    slots = np.full(size, -1, np.int32)
    for token in range(n_tokens):
        at = _hash(data, start[token], start[token + 1]) & (size - 1)
        while slots[at] >= 0:
            at = (at + 1) & (size - 1)
        slots[at] = token
    rows = np.empty(3 * 1024, np.int32)
    count = 0
    for token in range(n_tokens):
        low, high = start[token], start[token + 1]
        hashed = np.int64(_OFFSET)
        for cut in range(low + 1, high):
            if poll(watch):
                break
            hashed = (hashed ^ np.int64(data[cut - 1])) * _PRIME
            left = _find(slots, data, start, low, cut, _mixed(hashed))
            if left < 0:
                continue
            right = _find(slots, data, start, cut, high, _hash(data, cut, high))
            if right < 0:
                continue
            if count + 3 > rows.size:
                rows = longer(rows, 2 * rows.size)
            rows[count], rows[count + 1], rows[count + 2] = left, right, token
            count += 3
    return rows[:count].copy().reshape(-1, 3)


@kernel
def _hash(data: np.ndarray, low: int, high: int) -> Any:
    hashed = np.int64(_OFFSET)
    for i in range(low, high):
        hashed = (hashed ^ np.int64(data[i])) * _PRIME
    return _mixed(hashed)


@kernel
def _mixed(hashed: Any) -> Any:
    """The high bits of the product, which depend on all bytes, brought down."""
    return hashed ^ (hashed >> 29)


@kernel
def _find(
    slots: np.ndarray, data: np.ndarray, start: np.ndarray, low: int, high: int, hashed: Any
) -> int:
    """The token that spells data[low:high], -1 if there is none."""
    at = hashed & (slots.size - 1)
    while slots[at] >= 0:
        token = slots[at]
        begin = start[token]
        if start[token + 1] - begin == high - low:
            same = True
            for i in range(high - low):
                if data[begin + i] != data[low + i]:
                    same = False
                    break
            if same:
                return token
        at = (at + 1) & (slots.size - 1)
    return -1
