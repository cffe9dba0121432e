"""Which bytes some automata tell apart."""

from __future__ import annotations

import numpy as np

from bpe_automata.kernels import kernel
from bpe_automata.kernels.mixing import mix


@kernel
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


@kernel
def _together(
    byte_class: np.ndarray, told_apart: np.ndarray, key: np.ndarray, a: int, b: int
) -> bool:
    if key[a] != key[b] or told_apart[a] or told_apart[b]:
        return False
    for row in range(len(byte_class)):  # noqa: SIM110 - numba compiles a loop better
        if byte_class[row, a] != byte_class[row, b]:
            return False
    return True
