# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: freethreading_compatible=True
"""Sets of boundary hypotheses, as bits: all that may be true of the pretokens after some ids.

A member is (h, boundary, whole): h a hypothesis of the pipeline; inside a character, `boundary`
says whether there is one before that character; `whole` follows pretokens that `ignore_merges`
makes one token although BPE would not (`WholePretokens`). A set also has the UTF-8 row of the
character being read. Set 0 is the beginning of a text.

    after(H, class) = (the set with a boundary before the token, the set without one)

The members with one boundary and one `whole` are a *layer*, uint64 words of hypotheses; its code is
2 * (whole + 2) + boundary. Nearly all sets have one layer.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from bpe_automata.canonical.arrays cimport (
    BINDS, BREAKS, NO_SET, WITHIN, bytes_, bytes_out, ints, ints_out, longs, longs_out, words,
    words_out,
)
from bpe_automata.canonical import token_actions
from bpe_automata.tokenizer import alphabet

cdef int64_t ILLEGAL = token_actions.ILLEGAL
cdef int64_t INSIDE = token_actions.INSIDE
cdef int64_t JOINT = token_actions.JOINT
cdef int64_t MUST_END = token_actions.MUST_END
cdef int64_t DEAD_ENTRY = alphabet.DEAD


cdef class SetArrays:
    """The arrays of all sets, and the tables that their members must agree with. One thread at a
    time adds to the arrays. Larger ones replace them when they are full, and a thread that reads
    may go on with the old ones."""

    cdef object kept
    cdef int32_t* utf8_row
    cdef int64_t* start
    cdef int32_t* code
    cdef uint64_t* bits
    cdef uint64_t* answers
    cdef uint8_t* ends
    cdef int32_t* slots
    cdef uint64_t* hashes
    cdef int64_t* count
    cdef const uint64_t* completed
    cdef const uint64_t* ending
    cdef const uint8_t* complete
    cdef int64_t n_sets, n_layers, n_slots, n_words

    def __init__(self, described, told, found, readable):
        """Of set number k:

        described   utf8_row int32 [sets], start int64 [sets + 1]: its layers are start[k] ..
                    start[k + 1] - 1 (none is empty), code int32 [layers], ascending, bits uint64
                    [layers, words]
        told        bits uint64 [sets, 4, words], see `arrays.BREAKS`; ends bool [sets]: can a text,
                    or a piece between added tokens, end here?
        found       slots int32, a hash table of numbers, -1 where it is free; hashes uint64 [sets],
                    count int64 [1]: how many sets there are
        readable    completed uint64 [rows, 2, words], see `sets._completed`; hypotheses that may
                    end a text, uint64 [words], and nodes of `WholePretokens` that may end a
                    pretoken, bool
        """
        utf8_row, start, code, bits = described
        answers, ends = told
        slots, hashes, count = found
        completed, ending, complete = readable
        self.kept = described, told, found, readable
        self.utf8_row, self.start = ints_out(utf8_row), longs_out(start)
        self.code, self.bits = ints_out(code), words_out(bits)
        self.answers, self.ends = words_out(answers), bytes_out(ends)
        self.slots, self.hashes = ints_out(slots), words_out(hashes)
        self.count = longs_out(count)
        self.completed, self.ending = words(completed), words(ending)
        self.complete = bytes_(complete)
        self.n_sets, self.n_layers, self.n_slots = len(utf8_row), len(code), len(slots)
        self.n_words = bits.shape[1]


cdef class Classes:
    """Token classes: lead, element, tail int32 [classes], relations uint64 [elements, 2n, words],
    the hypotheses after each element; follow uint64 [2, n, coarse, words], those after a coarse
    atom; coarse int32 [atoms]."""

    cdef object kept
    cdef const int32_t* lead
    cdef const int32_t* element
    cdef const int32_t* tail
    cdef const uint64_t* relations
    cdef const uint64_t* follow
    cdef const int32_t* coarse
    cdef int64_t n, n_relation, n_hypotheses, n_coarse

    def __init__(self, lead, element, tail, relations, follow, coarse):
        self.kept = lead, element, tail, relations, follow, coarse
        self.lead, self.element, self.tail = ints(lead), ints(element), ints(tail)
        self.relations, self.follow, self.coarse = words(relations), words(follow), ints(coarse)
        self.n, self.n_relation = len(lead), relations.shape[1]
        self.n_hypotheses, self.n_coarse = follow.shape[1], follow.shape[2]

    def __len__(self):
        return self.n


cdef struct Want:  # sets, as in `SetArrays`, with empty layers or without
    int32_t* rows
    int64_t* begins
    int32_t* codes
    uint64_t* layers


cdef uint64_t mixed(uint64_t h) noexcept nogil:
    return h * <uint64_t>0xD6E8FEB86659FD93


cdef bint is_set(SetArrays sets, int64_t k, uint64_t h, int64_t row, const int32_t* codes,
                 const uint64_t* layers, int64_t n) noexcept nogil:
    """Is set number k the one with these layers?"""
    cdef int64_t i, first = sets.start[k]
    if sets.hashes[k] != h or sets.utf8_row[k] != row or sets.start[k + 1] - first != n:
        return False
    for i in range(n):
        if sets.code[first + i] != codes[i]:
            return False
    for i in range(n * sets.n_words):
        if sets.bits[first * sets.n_words + i] != layers[i]:
            return False
    return True


cdef int64_t number(
    int64_t row, int32_t* codes, uint64_t* layers, int64_t n, SetArrays sets
) noexcept nogil:
    """The number of a set of n layers, which are overwritten; NO_SET if it is empty, -2 if there
    is no room. Members that no character from the set's UTF-8 row can follow are dropped."""
    cdef int64_t i, w, at, k, whole, first, m = 0, n_words = sets.n_words, new = sets.count[0]
    cdef uint64_t word, some, h = <uint64_t>(row + 1) * <uint64_t>0x9E3779B97F4A7C15
    cdef uint64_t* answers
    for i in range(n):
        some = 0
        for w in range(n_words):
            word = layers[i * n_words + w]
            if row > 0:
                word &= sets.completed[(2 * row + (codes[i] & 1)) * n_words + w]
            layers[m * n_words + w] = word
            some |= word
        if some == 0:
            continue
        codes[m] = codes[i]
        h = mixed(h ^ <uint64_t>codes[i])
        for w in range(n_words):
            h = mixed(h ^ (h >> 32) ^ layers[m * n_words + w])
        m += 1
    if m == 0:
        return NO_SET
    h ^= h >> 29
    at = <int64_t>(h & <uint64_t>(sets.n_slots - 1))
    while sets.slots[at] >= 0:
        if is_set(sets, sets.slots[at], h, row, codes, layers, m):
            return sets.slots[at]
        at = (at + 1) & (sets.n_slots - 1)
    first = sets.start[new]
    if new >= sets.n_sets or first + m > sets.n_layers:
        return -2
    answers = sets.answers + 4 * new * n_words
    for i in range(m):
        whole = (codes[i] >> 1) - 2
        sets.code[first + i] = codes[i]
        for w in range(n_words):
            word = layers[i * n_words + w]
            sets.bits[(first + i) * n_words + w] = word
            if whole < 0 or not sets.complete[whole]:
                answers[BREAKS * n_words + w] |= word
                if row == 0 and word & sets.ending[w]:
                    sets.ends[new] = True
            if whole != MUST_END:
                answers[BINDS * n_words + w] |= word
                answers[(WITHIN + (codes[i] & 1)) * n_words + w] |= word
    sets.utf8_row[new], sets.start[new + 1] = <int32_t>row, first + m
    sets.hashes[new], sets.slots[at] = h, <int32_t>new
    sets.count[0] = new + 1
    return new


def number_of(int64_t row, codes, layers, SetArrays sets):
    """The number of a set: codes int32 [layers], layers uint64 [layers, words]; both are
    overwritten. None if there is no room for it."""
    found = number(
        row, ints_out(codes), words_out(layers),
        len(codes), sets,
    )
    return None if found == -2 else found


cdef void join(
    const uint64_t* base, int64_t n_layers, const uint64_t* relation, uint64_t* after,
    int64_t n_words
) noexcept nogil:
    """The hypotheses after those of each layer; relation: words by hypothesis."""
    cdef int64_t p, h, w
    memset(after, 0, n_layers * n_words * sizeof(uint64_t))
    for p in range(n_layers):
        for h in range(64 * n_words):
            if (base[p * n_words + (h >> 6)] >> (h & 63)) & 1:
                for w in range(n_words):
                    after[p * n_words + w] |= relation[h * n_words + w]


cdef void step(
    const int32_t* codes, const uint64_t* bits, int64_t n_layers, int64_t atom, Classes classes,
    uint64_t* after, int64_t n_words
) noexcept nogil:
    """The hypotheses after a coarse atom, for each layer inside a character."""
    cdef int64_t p, h, w, n = classes.n_hypotheses
    memset(after, 0, n_layers * n_words * sizeof(uint64_t))
    for p in range(n_layers):
        for h in range(n):
            if (bits[p * n_words + (h >> 6)] >> (h & 63)) & 1:
                for w in range(n_words):
                    after[p * n_words + w] |= classes.follow[
                        (((codes[p] & 1) * n + h) * classes.n_coarse + atom) * n_words + w
                    ]


cdef int64_t want_after(
    int64_t side, int64_t row, const int32_t* codes, const uint64_t* bits, int64_t n_layers,
    const int64_t* entries, const int32_t* where, Classes classes, Want wanted, int32_t* which,
    uint64_t* room, int64_t n_words
) noexcept nogil:
    """List the sets after each class from a set of these layers. which: by class, its index in
    `wanted`, -1 for none; room: [2, layers, words]. entries, where: see `find_after`. Neighbouring
    classes mostly have the same set, which is listed once. Returns how many are listed."""
    cdef const uint64_t* base = bits
    cdef const uint64_t* source
    cdef uint64_t* after = room
    cdef int64_t c, p, w, i, k, one, low, begin, previous, entry = DEAD_ENTRY, r = -1, n = 0
    cdef int64_t last = 0, n_classes = classes.n
    cdef bint goes_on, fresh, alike
    which[0] = -1
    for c in range(1, n_classes):
        which[c] = -1
        if last == 0 or classes.lead[c] != classes.lead[last]:
            entry, base = entries[classes.lead[c]], bits
            if entry < DEAD_ENTRY:
                base = room + n_layers * n_words
                step(
                    codes, bits, n_layers, classes.coarse[-2 - entry], classes,
                    room + n_layers * n_words, n_words,
                )
        goes_on = entry > 0  # inside the same character
        fresh = (
            last == 0
            or classes.lead[c] != classes.lead[last]
            or classes.element[c] != classes.element[last]
        )
        alike = not fresh and classes.tail[c] == classes.tail[last] and r >= 0
        for p in range(n_layers):
            alike = alike and where[p * n_classes + c] == where[p * n_classes + last]
        if entry != DEAD_ENTRY and fresh and classes.element[c] > INSIDE:
            low = side * classes.n_hypotheses if row == 0 else 0
            join(
                base, n_layers,
                classes.relations + (classes.element[c] * classes.n_relation + low) * n_words,
                after, n_words,
            )
        previous, last = last, c
        if entry == DEAD_ENTRY or (
            goes_on and (classes.element[c] != INSIDE or classes.tail[c] != 0)
        ):
            continue
        if alike:
            which[c] = which[previous]
            continue
        r, begin = r + 1, n
        for p in range(n_layers):
            if where[p * n_classes + c] == ILLEGAL:
                continue
            one = 2 * (where[p * n_classes + c] + 2)
            if goes_on:
                one += codes[p] & 1
            elif classes.element[c] == JOINT and classes.tail[c] != 0:
                one += side
            i = n
            while i > begin and wanted.codes[i - 1] >= one:
                i -= 1
            if i == n or wanted.codes[i] != one:
                for k in range(n, i, -1):
                    wanted.codes[k] = wanted.codes[k - 1]
                    for w in range(n_words):
                        wanted.layers[k * n_words + w] = wanted.layers[(k - 1) * n_words + w]
                n += 1
                wanted.codes[i] = <int32_t>one
                memset(wanted.layers + i * n_words, 0, n_words * sizeof(uint64_t))
            source = base
            if classes.element[c] > INSIDE:
                source = after
            for w in range(n_words):
                wanted.layers[i * n_words + w] |= source[p * n_words + w]
        wanted.rows[r] = <int32_t>(entry if goes_on else classes.tail[c])
        wanted.begins[r + 1], which[c] = n, <int32_t>r
    return r + 1


def find_after(int64_t H, entries, where, Classes classes, SetArrays sets, found_sets):
    """Find the sets after a token of each class from a set, int32 [2, classes]: with a boundary
    before the token and without. entries: int64 [leads], what each lead leads to from the set's
    UTF-8 row: another row inside the same character, -2 - its atom, or DEAD; 0 for no lead at a
    character's end. where: int32 [2, layers, classes], where each class leads in `WholePretokens`,
    without a boundary before the token and with one. Returns whether there was room for all."""
    cdef int64_t first = sets.start[H], m = sets.start[H + 1] - first, row = sets.utf8_row[H]
    cdef int64_t n = classes.n, n_words = sets.n_words, count, r, c, side, k
    cdef const int64_t* given = longs(entries)
    cdef const int32_t* moved = ints(where)
    cdef int32_t* found = ints_out(found_sets)
    rows, codes, begins = np.empty(n, np.int32), np.empty(n * m, np.int32), np.zeros(n + 1, int)
    layers, room = np.empty(n * m * n_words, np.uint64), np.empty(2 * m * n_words, np.uint64)
    places, numbers = np.empty(n, np.int32), np.empty(n, np.int32)
    cdef Want wanted
    cdef int32_t* which = ints_out(places)
    cdef int32_t* numbered = ints_out(numbers)
    cdef uint64_t* between = words_out(room)
    wanted.rows, wanted.begins = ints_out(rows), longs_out(begins)
    wanted.codes, wanted.layers = ints_out(codes), words_out(layers)
    with nogil:
        for side in range(1 if row > 0 else 2):  # inside a character there is no boundary
            count = want_after(
                side, row, sets.code + first, sets.bits + first * n_words, m, given,
                moved + side * m * n, classes, wanted, which, between, n_words,
            )
            for r in range(count):
                k = wanted.begins[r]
                k = number(
                    wanted.rows[r], wanted.codes + k, wanted.layers + k * n_words,
                    wanted.begins[r + 1] - k, sets,
                )
                if k == -2:
                    with gil:
                        return False
                numbered[r] = <int32_t>k
            for c in range(n):
                found[(1 - side) * n + c] = numbered[which[c]] if which[c] >= 0 else NO_SET
        if row > 0:
            for c in range(n):
                found[c] = NO_SET
    return True
