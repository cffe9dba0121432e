# The arguments of kernels: arrays behind pointers, with structs as their rows.
#
# A *configuration* is (q, a, H): a state of the byte DFA, a state of the text automaton, and a
# hypothesis set. Its status is found by two ANDs of bits (see `status.pyx`).

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

cpdef enum:
    # Statuses.
    ALIVE = 1  # whatever the last id was, some text goes on from it to acceptance
    DEAD = 2  # no text goes on to acceptance
    PARTLY = 3  # it may depend on the last id, or more than one character decides
    LATER = 4  # PARTLY, in the loop of a slice, after a search that was stopped
    # What a kernel returns: that it is done, or what it needs to go on.
    DONE = 0
    NEED_STEPS = 1
    NEED_SET = 2
    NEED_ROOM = 3
    NEED_TIME = 4
    NEED_CONFIGURATIONS = 5
    NEED_ROWS = 6
    NEED_VISITED = 7
    NEED_SEARCH = 8
    # Values of `Config.open`; from 0 on it is the row of the ids that are not proved live.
    NONE_PROVED = -3  # no id is proved live
    EVERY_MADE = -2  # every id that BPE makes is live
    EVERY_ID = -1  # every id is live, and so is having no last id
    NO_TOKEN = -1
    BEGINNING = 0  # the hypothesis set at the beginning of a text
    NO_SET = -1
    # The four rows of bits of a hypothesis set.
    BREAKS = 0  # members after which a boundary may come
    BINDS = 1  # members after which none may come
    WITHIN = 2  # members inside a character without a boundary before it; row 3: with one
    # Columns of `told`: may a text end in a text state? Can every text of steady atoms be read
    # from it, and end ("harmless")?
    ENDS = 0
    HARMLESS = 1
    # Rows of `looks`, see `look_ahead`.
    B = 0
    U1 = 1
    U0 = 2

cdef enum:
    COMPLETE = 2  # of `settled`
    UNDER_WAY = 1
    FOREVER = 0x7FFFFFFF
    MOST_WANTED = 1022
    MOST_NEEDED = 63


cdef struct Node:  # of a trie, depth first
    int32_t label, depth
    int32_t skip  # the next node outside its subtree
    int32_t token, klass  # -1 and 0: none
    int32_t text, first  # the text state after the token, and its first atom (-1: none)


cdef struct Id:  # an id on one side of a pair, see `pairs.pyx`
    int32_t position, birth, left, right, merges


cdef struct Interval:
    int32_t rank, low, high


cdef struct Atom:
    int32_t coarse, steady


cdef struct AddedText:
    int32_t id, begin, end  # the id is -1 where it may not come


cdef struct Read:  # where a token leads
    int32_t token, q, a, klass


cdef struct Config:  # a configuration, and what was proved of it
    int64_t key
    int64_t open  # the ids that are not proved live there, see above
    int64_t status  # 0: not found yet
    int64_t detour  # the most bytes of ids by which an id was found to be live, see `search.pyx`


cdef struct Option:  # of a search: an id that may come
    int64_t id, child, free, far


cdef struct Frame:
    int64_t c, id  # a configuration and the last id
    int64_t free  # was there a boundary before the id?
    int64_t phases, next, past  # phases done; its remaining options


cdef class Wanted:
    """Steps that a kernel needs and that are not written down: the first `n` of `numbers`. `calls`
    counts all calls of `want`, also those without room in `numbers`."""
    cdef int64_t n, calls
    cdef int64_t[MOST_WANTED] numbers


cdef class Trie:
    cdef readonly object nodes_array, start_array, data_array
    cdef int64_t n
    cdef const Node* nodes
    cdef const int32_t* start
    cdef const uint8_t* data


cdef class Pairs:
    cdef object kept
    cdef const Id* ids
    cdef const Interval* merges
    cdef const int32_t* order
    cdef const int64_t* slots
    cdef const int32_t* values
    cdef int64_t n_ids, n_order, n_slots


cdef class Base:
    cdef object kept
    cdef const int32_t* trans  # [states, columns]
    cdef const uint8_t* byte_class
    cdef const int32_t* behind
    cdef const int32_t* utf8  # [rows, 256]
    cdef const int32_t* next_text  # [texts, atoms]
    cdef const uint8_t* told  # [texts, 2]
    cdef const Atom* atoms
    cdef const uint64_t* into  # [4, kinds, words]
    cdef const uint64_t* end  # [words]
    cdef const uint64_t* follow  # [2, hypotheses, kinds - 1, words]
    cdef const int32_t* fragments
    cdef const uint8_t* accepting
    cdef uint8_t* good
    cdef uint8_t* settled
    cdef uint64_t* looks  # [states, 3, words]
    cdef const int32_t* far
    cdef int64_t n_states, columns, n_behind, n_atoms, n_kinds, n_words, n_hypotheses, n_fragments
    cdef int64_t n_far


cdef class Work(Base):
    cdef readonly Trie trie
    cdef readonly Pairs pairs
    cdef readonly object slots_array, values_array, configs_array, rows_array, failed_array
    cdef object kept_sets, kept_added, kept_counts, kept_visited
    cdef public int64_t quota  # remaining calls of `candidates`
    cdef int64_t deepest  # bytes of the longest id
    # Hypothesis sets.
    cdef const uint64_t* bits  # [sets, 4, words]
    cdef const int32_t* utf8_row
    cdef const int32_t* at
    cdef const int32_t* after  # [rows, 2, classes]
    cdef int64_t n_classes
    # Added tokens.
    cdef const int32_t* added_from
    cdef const int32_t* added_behind
    cdef const int32_t* added_row
    cdef const int32_t* added_after  # [rows, texts]
    cdef const AddedText* added
    cdef const uint8_t* added_data
    cdef int64_t n_added, n_around
    # What was visited: a hash table of configurations; the ids that are not proved live, by
    # position, [rows, row_words]; hints by row of UTF-8, see `complete`.
    cdef int64_t* slots
    cdef int32_t* values
    cdef Config* configs
    cdef int64_t* counts  # configurations, rows, the most `detour`
    cdef uint64_t* rows
    cdef int32_t* hints
    cdef int64_t n_slots, n_configs, n_rows, row_words
    # Pairs that are proved dead, and those of one search.
    cdef int64_t* failed
    cdef int64_t* seen
    cdef int64_t* stamps
    cdef int64_t* listed
    cdef int64_t n_failed, n_visited, now, most_failed, most_seen


cdef class Room:
    """The arrays that kernels write to, for one thread. Python reads `reads`, `pairs`, `out`."""
    cdef readonly object reads, pairs, out
    cdef readonly Wanted wanted
    cdef object kept
    cdef Read* found
    cdef int32_t* path
    cdef Option* options
    cdef int64_t* numbers
    cdef Frame* frames
    cdef uint64_t* other
    cdef int64_t* open
    cdef int32_t* free
    cdef int32_t* bound
    cdef int64_t n_found, n_options, n_frames, most_pairs
    cdef readonly int64_t n_pairs  # in `open`, to be searched
    cdef int64_t n_needed
    cdef int64_t[MOST_NEEDED] needed


cdef void* address(object array, char* kind, bint writable) except? NULL


# Pointers to arrays that are read, and to arrays that are written to (`_out`). `bytes_` is for both
# uint8 and bool.
cdef inline const int32_t* ints(object array) except? NULL:
    return <const int32_t*>address(array, b"i4", False)


cdef inline const int64_t* longs(object array) except? NULL:
    return <const int64_t*>address(array, b"i8", False)


cdef inline const uint8_t* bytes_(object array) except? NULL:
    return <const uint8_t*>address(array, b"u1", False)


cdef inline const uint64_t* words(object array) except? NULL:
    return <const uint64_t*>address(array, b"u8", False)


cdef inline int32_t* ints_out(object array) except? NULL:
    return <int32_t*>address(array, b"i4", True)


cdef inline int64_t* longs_out(object array) except? NULL:
    return <int64_t*>address(array, b"i8", True)


cdef inline uint8_t* bytes_out(object array) except? NULL:
    return <uint8_t*>address(array, b"u1", True)


cdef inline uint64_t* words_out(object array) except? NULL:
    return <uint64_t*>address(array, b"u8", True)


cdef inline void add_bit(int32_t* bits, int64_t i) noexcept nogil:
    """Add id i to a packed set of ids."""
    bits[i >> 5] |= <int32_t>(<uint32_t>1 << (i & 31))


cdef inline int64_t written_step(int64_t state, int64_t column, Base base) noexcept nogil:
    """The state after a byte of a column; if it is not written down, -1 - the step's number."""
    cdef int64_t entry = base.trans[state * base.columns + column]
    if entry < 0 and base.behind[-1 - entry] > 0:
        return base.behind[-1 - entry]
    return entry


cdef inline int64_t after_byte(int64_t state, int64_t byte, Base base) noexcept nogil:
    return written_step(state, base.byte_class[byte], base)


cdef inline void want(int64_t number, Wanted wanted) noexcept nogil:
    wanted.calls += 1
    if wanted.n < MOST_WANTED and (wanted.n == 0 or wanted.numbers[wanted.n - 1] != number):
        wanted.numbers[wanted.n] = number
        wanted.n += 1


cdef inline bint meets(const uint64_t* one, const uint64_t* other, int64_t n) noexcept nogil:
    cdef int64_t w
    for w in range(n):
        if one[w] & other[w]:
            return True
    return False
