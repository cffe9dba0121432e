from libc.stdint cimport int32_t, int64_t, uint64_t

from bpe_automata.canonical.arrays cimport Pairs


cdef void forbid(int64_t token, Pairs pairs, uint64_t* positions) noexcept nogil
cdef bint may_follow(int64_t token, int64_t n, Pairs pairs) noexcept nogil
cdef void clear_forbidden(int64_t token, bint after, Pairs pairs, int32_t* bits) noexcept nogil
