"""Packed sets of ids: int32 words, bit i % 32 of word i // 32 is id i."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bpe_automata._kernels import jit


@jit
def set_bits(bits: np.ndarray, ids: np.ndarray) -> None:
    for i in ids:
        bits[i >> 5] |= np.int32(1) << np.int32(i & 31)


@jit
def clear_bits(bits: np.ndarray, ids: np.ndarray) -> None:
    for i in ids:
        bits[i >> 5] &= ~(np.int32(1) << np.int32(i & 31))


@jit
def members(bits: np.ndarray) -> np.ndarray:
    """The ids in a packed set, ascending, int64."""
    count = 0
    for w in range(len(bits)):
        word = np.int64(bits[w]) & 0xFFFFFFFF  # bit 31 is the sign
        while word != 0:
            word &= word - 1
            count += 1
    # Sized beforehand: an array that a loop replaces has its references counted at each turn.
    ids, n = np.empty(count, np.int64), 0
    for w in range(len(bits)):
        if bits[w] == 0:
            continue
        for bit in range(32):
            if (bits[w] >> bit) & 1:
                ids[n] = 32 * w + bit
                n += 1
    return ids


@jit
def without(ids: np.ndarray, bits: np.ndarray) -> np.ndarray:
    """Those of the ids that are not in the packed set."""
    kept = np.empty(len(ids), np.int64)
    count = 0
    for i in ids:
        if not (bits[i >> 5] >> (i & 31)) & 1:
            kept[count] = i
            count += 1
    return kept[:count]


@jit
def only(bits: np.ndarray) -> int:
    """The id of a packed set that holds exactly one; -1 for any other set."""
    found = -1
    for w in range(len(bits)):
        if bits[w] == 0:
            continue
        word = np.int64(bits[w]) & 0xFFFFFFFF  # bit 31 is the sign
        if found >= 0 or word & (word - 1):
            return -1
        found = 32 * w
        while word > 1:
            word >>= 1
            found += 1
    return found


def packed(ids: Iterable[int], n_ids: int) -> np.ndarray:
    """int32 [ceil(n_ids / 32)]: the packed set of `ids`; those out of range are left out."""
    bits = np.zeros((n_ids + 31) // 32, dtype=np.int32)
    set_bits(bits, np.array([i for i in ids if 0 <= i < n_ids], dtype=np.int64))
    return bits


def has(bits: np.ndarray, token_id: int) -> bool:
    """Is the id in the packed set?"""
    return bool(int(bits[token_id >> 5]) >> (token_id & 31) & 1)


def contained(bits: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """bool: which of the ids (int64) are in the packed set?"""
    return (bits[ids >> 5] >> (ids & 31)) & 1 == 1


# Minus infinity into rows of logits, wherever a packed mask has no bit.


@jit
def apply_bitmask(
    logits: np.ndarray,
    bits: np.ndarray,
    rows: np.ndarray,
    mask_rows: np.ndarray,
    minus_infinity: np.unsignedinteger,
) -> None:
    """logits[rows[k], i] = -inf for each i whose bit in bits[mask_rows[k]] is 0.

    logits: the bit patterns of floats, uint16, uint32 or uint64 [batch, V]; minus_infinity: the
    pattern of -inf, the same dtype. So one kernel serves float16, bfloat16, float32 and float64,
    and nothing that is allowed is read or changed. bits: int32 [m, words], bit i % 32 of word
    i // 32 for id i; ids beyond the words have no bit. rows, mask_rows: int64 [n], in range.
    """
    n_ids = logits.shape[1]
    words = min(bits.shape[1], (n_ids + 31) // 32)
    for k in range(len(rows)):
        row, mask = rows[k], mask_rows[k]
        for w in range(words):
            word = bits[mask, w]
            if word == -1:
                continue
            first = 32 * w
            for bit in range(min(32, n_ids - first)):
                if not (word >> bit) & 1:
                    logits[row, first + bit] = minus_infinity
        for i in range(32 * words, n_ids):
            logits[row, i] = minus_infinity
