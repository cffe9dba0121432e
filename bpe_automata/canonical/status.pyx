# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: freethreading_compatible=True
"""Configurations, numbered as they are visited, and their statuses. Can a text go on to acceptance
from one? Two ANDs of bits nearly always decide:

B(q)    hypotheses after which a boundary and an ASCII character surely lead to acceptance, whatever
        the ids (perhaps not all such)
ALIVE   the text may end, or a hypothesis after which a boundary may come is in B(q)
DEAD    no character can follow: see U1 and U0 of `look_ahead`
PARTLY  neither is proved; `search` settles it, exactly
"""

from libc.stdint cimport int32_t, int64_t, uint64_t

from bpe_automata.canonical.arrays cimport (
    ALIVE, BEGINNING, BINDS, BREAKS, B, COMPLETE, DEAD, ENDS, EVERY_ID, EVERY_MADE, HARMLESS,
    NONE_PROVED, PARTLY, U0, U1, UNDER_WAY, Base, Read, Wanted, Work, after_byte, meets, want,
)
from bpe_automata.canonical.pairs cimport forbid
from bpe_automata._kernels.hashing cimport slot_of


cdef int64_t configuration(int64_t key, Work work) noexcept nogil:
    """The number of a configuration, by its key; -1: there is no room for one more."""
    cdef int64_t n = work.counts[0], at = slot_of(work.slots, work.n_slots, key)
    if work.slots[at] != key:
        if n >= work.n_configs or 2 * n >= work.n_slots:
            return -1
        work.slots[at], work.values[at], work.configs[n].key = key, <int32_t>n, key
        work.counts[0] = n + 1
    return work.values[at]


cdef bint number_all(
    const Read* found, int64_t n, const int32_t* after, Work work, int64_t* numbers
) noexcept nogil:
    """Write to `numbers` the configurations that n tokens lead to, -1 for none. After a token of
    class -1 a text begins anew. after: the set after each class. Returns whether there is room."""
    cdef int64_t i, H, key, last = -1, c = -1
    for i in range(n):
        H = after[found[i].klass] if found[i].klass >= 0 else BEGINNING
        if H < 0:
            numbers[i] = -1
            continue
        key = key_of(found[i].q, found[i].a, H)
        if key != last:
            last = key
            c = configuration(key, work)
            if c < 0:
                return False
        numbers[i] = c
    return True


cdef void learn(
    int64_t c, int64_t n, bint free, int64_t detour, Work work, uint64_t* other
) noexcept nogil:
    """Note that an id leads on from a configuration; free: with a boundary before it. detour: how
    many bytes, with those of the id, lead from there to a configuration from which acceptance can
    be reached whatever the last id was."""
    cdef uint64_t* row
    cdef uint64_t open_bits = 0
    cdef int64_t w, open_ = work.configs[c].open
    work.configs[c].detour = max(work.configs[c].detour, detour)
    work.counts[2] = max(work.counts[2], detour)
    if free:
        work.configs[c].open = EVERY_ID
    elif open_ != EVERY_ID and open_ != EVERY_MADE:
        if open_ == NONE_PROVED:
            open_ = work.configs[c].open = work.counts[1]
            work.counts[1] += 1
            row = work.rows + open_ * work.row_words
            forbid(n, work.pairs, row)
            for w in range(work.row_words):
                open_bits |= row[w]
        else:
            row = work.rows + open_ * work.row_words
            forbid(n, work.pairs, other)
            for w in range(work.row_words):
                row[w] &= other[w]
                open_bits |= row[w]
        if open_bits == 0:
            work.configs[c].open = EVERY_MADE


cdef bint leads_home(int64_t q, Base base) noexcept nogil:
    """Is a state good: does some text of steady atoms lead to acceptance? (Only shortest texts are
    tried, so a good state may be missed.)"""
    cdef int64_t state, inside, entry, after
    cdef int turn, byte
    cdef bint found = False, moved
    if base.n_behind > 0 or base.n_far == 0 or base.good[q] != 0:  # linked: settled beforehand
        return base.good[q] == 1
    for turn in range(2):  # the second one notes what the first one found
        state, inside, moved = q, 0, True
        while moved:
            if inside == 0:
                if base.accepting[state] or base.good[state] == 1:
                    found = True
                    break
                if turn == 1:
                    base.good[state] = 1 if found else 2
            moved = False
            for byte in range(256):
                entry = base.utf8[inside * 256 + byte]
                if entry == -1 or (entry < -1 and not base.atoms[-2 - entry].steady):
                    continue
                after = base.trans[state * base.columns + base.byte_class[byte]]
                if after > 0 and base.far[after] >= 0 and base.far[after] < base.far[state]:
                    inside = entry if entry > 0 else 0
                    state, moved = after, True
                    break
    if found:
        base.good[q] = 1
    return found


cdef void look_ahead(int64_t q, Base base, Wanted wanted) noexcept nogil:
    """Find B, U1 and U0 of a state at a character's end, as bits of hypotheses. Steps that are not
    written down are wanted, unless they cannot add anything.

    B     some ASCII character may follow with a boundary before it, into a hypothesis from which
          every text can be read, and a good state (or the text may end)
    U1    some character may follow with a boundary before it, whatever comes then (of those beyond
          ASCII it is enough that they can begin)
    U0    the same without one
    """
    cdef int64_t w, byte, entry, after, kind, last = -1, last_kind = -1, n = base.n_words
    cdef int64_t most = base.n_kinds - 1
    cdef bint whole = True, good = False
    cdef uint64_t* looks = base.looks + 3 * q * n
    cdef const uint64_t* into = base.into
    for byte in range(0xF5):
        entry = base.utf8[byte]
        if entry == -1:
            continue
        after = after_byte(q, byte, base)
        if after != 0 and entry >= 0:
            for w in range(n):
                looks[U1 * n + w] |= into[(2 * base.n_kinds + most) * n + w]
                looks[U0 * n + w] |= into[(3 * base.n_kinds + most) * n + w]
            break
        if after < 0:
            want(-1 - after, wanted)
            whole = False
        if after <= 0:
            continue
        kind = base.atoms[-2 - entry].coarse
        if after == last and kind == last_kind:
            continue
        if after != last:
            good = base.good[after] == 1 or leads_home(after, base)
        last, last_kind = after, kind
        for w in range(n):
            if base.atoms[-2 - entry].steady:
                if good:
                    looks[B * n + w] |= into[kind * n + w]
                if base.accepting[after]:
                    looks[B * n + w] |= into[(base.n_kinds + kind) * n + w]
            looks[U1 * n + w] |= into[(2 * base.n_kinds + kind) * n + w]
            looks[U0 * n + w] |= into[(3 * base.n_kinds + kind) * n + w]
    base.settled[q] = COMPLETE if whole else UNDER_WAY


cdef int64_t status_within(int64_t q, int64_t a, int64_t H, Work work) noexcept nogil:
    """The status at a text state that is not harmless: ALIVE if one ASCII character proves it, else
    PARTLY."""
    cdef int64_t byte, entry, after, q2, kind
    cdef const uint64_t* bits = members(H, BREAKS, work)
    cdef bint goes_on, may_end
    for byte in range(128):
        entry = work.utf8[byte]
        if entry >= -1:
            continue
        after = work.next_text[a * work.n_atoms - 2 - entry]
        if after < 0 or not work.told[2 * after + HARMLESS]:
            continue
        q2 = after_byte(q, byte, work)
        if q2 <= 0:
            continue
        kind = work.atoms[-2 - entry].coarse
        goes_on = meets(bits, work.into + kind * work.n_words, work.n_words)
        may_end = meets(bits, work.into + (work.n_kinds + kind) * work.n_words, work.n_words)
        if may_end and work.accepting[q2] and work.told[2 * after + ENDS]:
            return ALIVE
        if goes_on and work.good[q2] != 2 and (work.good[q2] == 1 or leads_home(q2, work)):
            return ALIVE
    return PARTLY


cdef void settle_all(const int64_t* numbers, int64_t n, Work work, Wanted wanted) noexcept nogil:
    """Find the statuses of n configurations (-1: none) that have none yet. Those for which steps
    are wanted stay 0."""
    cdef int64_t i, c, q, a, H, key, before, calls
    cdef int64_t m = work.n_words
    cdef const uint64_t* breaks
    cdef const uint64_t* looks
    for i in range(n):
        c = numbers[i]
        if c < 0 or work.configs[c].status != 0:
            continue
        key = work.configs[c].key
        q, a, H = q_of(key), a_of(key), H_of(key)
        if work.utf8_row[H] != 0:
            work.configs[c].status = PARTLY
            continue
        breaks = members(H, BREAKS, work)
        if work.accepting[q] and work.told[2 * a + ENDS] and meets(breaks, work.end, m):
            work.configs[c].status = ALIVE
            continue
        if not work.told[2 * a + HARMLESS]:
            work.configs[c].status = status_within(q, a, H, work)
            continue
        before, calls = wanted.n, wanted.calls
        if work.settled[q] != COMPLETE:
            look_ahead(q, work, wanted)
        looks = work.looks + 3 * q * m
        if meets(breaks, looks + B * m, m):
            wanted.n, wanted.calls = before, calls  # they are not needed
            work.configs[c].status = ALIVE
        elif work.settled[q] == COMPLETE:
            if (
                work.n_added > 0
                or meets(breaks, looks + U1 * m, m)
                or meets(members(H, BINDS, work), looks + U0 * m, m)
            ):
                work.configs[c].status = PARTLY
            else:
                work.configs[c].status = DEAD
