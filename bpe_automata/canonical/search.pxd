from libc.stdint cimport int64_t

from bpe_automata.canonical.arrays cimport Wanted, Work

cdef enum:
    SHORT = 3  # bytes of the ids that are looked at first


cdef int64_t complete(int64_t c, int64_t token, Work work, Wanted wanted) noexcept nogil
cdef int64_t length(int64_t token, Work work) noexcept nogil
