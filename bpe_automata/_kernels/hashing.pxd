# Hash tables of two kinds, whose sizes are powers of two and which are at most half full, so that a
# probe ends.
#
#   by key      keys int64 >= 0, EMPTY where a slot is free, and values; see `hashing.pyx`
#   by number   int32 numbers of entries, 0 where a slot is free; the caller keeps and compares keys

from libc.stdint cimport int32_t, int64_t, uint64_t

cdef enum:
    EMPTY = -1


cdef inline uint64_t mix(uint64_t word) noexcept nogil:
    """A bijection whose low bits depend on all bits of the word."""
    cdef uint64_t h = word * <uint64_t>0x9E3779B97F4A7C15
    h = (h ^ (h >> 32)) * <uint64_t>0xD6E8FEB86659FD93
    return h ^ (h >> 29)


cdef inline int64_t first_slot(uint64_t key, int64_t size) noexcept nogil:
    """Where the search for a key begins in a table by number."""
    return <int64_t>(key & <uint64_t>(size - 1))


cdef inline int64_t next_slot(int64_t slot, int64_t size) noexcept nogil:
    return (slot + 1) & (size - 1)


cdef inline int64_t spread(int64_t key) noexcept nogil:
    """A number whose low 32 bits depend on all bits of a key."""
    cdef uint64_t mixed = <uint64_t>(key ^ (key >> 29)) * <uint64_t>0x9E3779B97F4A7C15
    return <int64_t>mixed >> 32


cdef inline int64_t slot_of(const int64_t* keys, int64_t size, int64_t key) noexcept nogil:
    """The slot that holds a key, or the free slot where it belongs."""
    cdef int64_t at = spread(key) & (size - 1)
    while keys[at] != EMPTY and keys[at] != key:
        at = (at + 1) & (size - 1)
    return at


cdef inline int64_t table_size_for(int64_t entries) noexcept nogil:
    """The power of two that keeps a table of so many entries at most half full."""
    cdef int64_t size = 16
    while size < 2 * entries:
        size *= 2
    return size
