from libc.stdint cimport int32_t, int64_t, uint64_t

from bpe_automata.canonical.arrays cimport (
    BINDS, BREAKS, EVERY_ID, EVERY_MADE, MOST_NEEDED, NONE_PROVED, Base, Read, Room, Wanted, Work,
)
from bpe_automata._kernels.hashing cimport slot_of


cdef bint leads_home(int64_t q, Base base) noexcept nogil
cdef void look_ahead(int64_t q, Base base, Wanted wanted) noexcept nogil
cdef void settle_all(const int64_t* numbers, int64_t n, Work work, Wanted wanted) noexcept nogil
cdef int64_t configuration(int64_t key, Work work) noexcept nogil
cdef bint number_all(
    const Read* found, int64_t n, const int32_t* after, Work work, int64_t* numbers
) noexcept nogil
cdef void learn(
    int64_t c, int64_t n, bint free, int64_t detour, Work work, uint64_t* other
) noexcept nogil


# A configuration in one word.
cdef inline int64_t key_of(int64_t q, int64_t a, int64_t H) noexcept nogil:
    return (q << 40) | (a << 24) | H


cdef inline int64_t q_of(int64_t key) noexcept nogil:
    return key >> 40


cdef inline int64_t a_of(int64_t key) noexcept nogil:
    return (key >> 24) & 0xFFFF


cdef inline int64_t H_of(int64_t key) noexcept nogil:
    return key & 0xFFFFFF


# A configuration, by its number, and the last id, in one word.
cdef inline int64_t pair_of(int64_t c, int64_t token) noexcept nogil:
    return (c << 20) | (token + 1)


cdef inline bint is_dead(int64_t pair, Work work) noexcept nogil:
    """Is the id proved not to be live at the configuration?"""
    return work.failed[slot_of(work.failed, work.most_failed, pair)] == pair


cdef inline bint is_live(int64_t token, int64_t c, Work work) noexcept nogil:
    """Is an id proved live at a configuration?"""
    cdef int64_t row = work.configs[c].open, at
    if row == EVERY_ID:
        return True
    if token < 0 or row == NONE_PROVED or work.pairs.ids[token].position < 0:
        return False
    if row == EVERY_MADE:
        return True
    at = work.pairs.ids[token].position
    return not (work.rows[row * work.row_words + (at >> 6)] >> (at & 63)) & 1


cdef inline const int32_t* sets_after(int64_t H, int side, Work work) noexcept nogil:
    """The set after each token class, with a boundary before the token (side 0) or without one.
    The successors of H must be cached."""
    return work.after + (2 * <int64_t>work.at[H] + side) * work.n_classes


cdef inline const uint64_t* members(int64_t H, int64_t which, Work work) noexcept nogil:
    """The hypotheses of a set, in `n_words`. which: BREAKS, BINDS, WITHIN or WITHIN + 1."""
    return work.bits + (4 * H + which) * work.n_words


cdef inline void need_set(int64_t H, Room room) noexcept nogil:
    """Note that the successors of a set are needed."""
    cdef int64_t k
    for k in range(room.n_needed):
        if room.needed[k] == H:
            return
    if room.n_needed < MOST_NEEDED:
        room.needed[room.n_needed] = H
        room.n_needed += 1
