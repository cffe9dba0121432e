"""Minus infinity into rows of logits, wherever a packed mask has no bit."""

from __future__ import annotations

import numpy as np

from bpe_automata.kernels import kernel


@kernel
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
