"""Packed sets of ids: int32 words, bit i % 32 of word i // 32 is id i."""

from __future__ import annotations

import numpy as np

from bpe_automata.kernels import kernel


@kernel
def set_bits(bits: np.ndarray, ids: np.ndarray) -> None:
    for i in ids:
        bits[i >> 5] |= np.int32(1) << np.int32(i & 31)


@kernel
def clear_bits(bits: np.ndarray, ids: np.ndarray) -> None:
    for i in ids:
        bits[i >> 5] &= ~(np.int32(1) << np.int32(i & 31))


def members(bits: np.ndarray) -> np.ndarray:
    """The ids in a packed set, ascending, int64."""
    return np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little"))


def has(bits: np.ndarray, token_id: int) -> bool:
    """Is the id in the packed set?"""
    return bool(int(bits[token_id >> 5]) >> (token_id & 31) & 1)
