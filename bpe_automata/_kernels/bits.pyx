# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: freethreading_compatible=True
# cython: initializedcheck=False
"""Packed sets of ids: int32 words, bit i % 32 of word i // 32 is id i."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t

ctypedef fused pattern_t:
    uint16_t
    uint32_t
    uint64_t


def set_bits(int32_t[:] bits, const int64_t[:] ids):
    cdef Py_ssize_t k
    for k in range(ids.shape[0]):
        bits[ids[k] >> 5] |= <int32_t>(<uint32_t>1 << (ids[k] & 31))


def clear_bits(int32_t[:] bits, const int64_t[:] ids):
    cdef Py_ssize_t k
    for k in range(ids.shape[0]):
        bits[ids[k] >> 5] &= <int32_t>~(<uint32_t>1 << (ids[k] & 31))


def only(const int32_t[:] bits):
    """The id of a packed set that holds exactly one; -1 for any other set."""
    cdef int64_t found = -1
    cdef uint32_t word
    cdef Py_ssize_t w
    for w in range(bits.shape[0]):
        word = <uint32_t>bits[w]
        if word == 0:
            continue
        if found >= 0 or word & (word - 1):
            return -1
        found = 32 * w
        while word > 1:
            word >>= 1
            found += 1
    return found


def members(const int32_t[:] bits):
    """The ids in a packed set, ascending, int64."""
    cdef Py_ssize_t w, i, n = 0
    cdef uint32_t word
    ids = np.empty(32 * bits.shape[0], np.int64)
    cdef int64_t[::1] found = ids
    with nogil:
        for w in range(bits.shape[0]):
            word, i = <uint32_t>bits[w], 32 * w
            while word:
                found[n] = i
                n += word & 1
                word >>= 1
                i += 1
    return ids[:n].copy()


def packed(ids, n_ids):
    """int32 [ceil(n_ids / 32)]: the packed set of `ids`; those out of range are ignored."""
    bits = np.zeros((n_ids + 31) // 32, np.int32)
    set_bits(bits, np.array([i for i in ids if 0 <= i < n_ids], np.int64))
    return bits


def has(bits, token_id):
    """Is the id in the packed set?"""
    return bool(int(bits[token_id >> 5]) >> (token_id & 31) & 1)


def contained(bits, ids):
    """bool: which of the ids (int64) are in the packed set?"""
    return (bits[ids >> 5] >> (ids & 31)) & 1 == 1


cdef uint32_t BIT[32]  # compilers vectorise loops over this table, but not over shifts
for k in range(32):
    BIT[k] = <uint32_t>1 << k


cdef inline void mask_row(
    char* row, int64_t step, int64_t n_ids, const int32_t* bits, int64_t words,
    pattern_t minus_infinity,
) noexcept nogil:
    """step: bytes from one cell to the next."""
    cdef int64_t w, i
    cdef uint32_t word
    cdef pattern_t* cell
    for w in range(words):
        word = <uint32_t>bits[w]
        if word == 0:
            for i in range(32 * w, min(32 * w + 32, n_ids)):
                (<pattern_t*>(row + i * step))[0] = minus_infinity
        elif word != <uint32_t>-1:
            for i in range(min(32, n_ids - 32 * w)):
                cell = <pattern_t*>(row + (32 * w + i) * step)
                cell[0] = cell[0] if word & BIT[i] else minus_infinity
    for i in range(32 * words, n_ids):
        (<pattern_t*>(row + i * step))[0] = minus_infinity


def apply_bitmask(
    pattern_t[:, :] logits, const int32_t[:, ::1] bits, const int64_t[::1] rows,
    pattern_t minus_infinity,
):
    """logits[rows[k], i] = -inf for each i whose bit in bits[k] is 0.

    logits: the bit patterns of floats [batch, V], of any strides; minus_infinity: that of -inf. So
    one kernel serves float16, bfloat16, float32 and float64, and allowed logits keep their bits.
    bits: [n, words]; ids beyond the words are not allowed. rows: [n], in range."""
    cdef int64_t n_ids = logits.shape[1], words = min(bits.shape[1], (n_ids + 31) // 32), k
    cdef int64_t step = logits.strides[1]
    cdef char* row
    with nogil:
        for k in range(rows.shape[0]):
            row = <char*>&logits[rows[k], 0]
            if step == sizeof(pattern_t):  # in a loop of its own, which is faster
                mask_row(row, sizeof(pattern_t), n_ids, &bits[k, 0], words, minus_infinity)
            else:
                mask_row(row, step, n_ids, &bits[k, 0], words, minus_infinity)
