from libc.stdint cimport int64_t

from bpe_automata.canonical.arrays cimport Base, Read, Room, Trie, Wanted, Work


cdef int64_t read_tokens(
    int64_t q0, int64_t a0, int64_t row0, int64_t low, int64_t high, Base base, Trie trie, Room room
) noexcept nogil
cdef int64_t added_steps(int64_t q, int64_t a, Work work, Read* found, Wanted wanted) noexcept nogil
