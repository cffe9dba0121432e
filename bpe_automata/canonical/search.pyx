# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: freethreading_compatible=True
"""Is an id live where it leads?

An id r that leads to a configuration c is live there if some id n may come next that leads to an
ALIVE configuration, or is live where it leads: reachability in a graph of pairs (c, r). A search
goes depth first, towards acceptance. If it succeeds, n may come after many other last ids too:

    config.open    of c, the ids that are not proved live there: all but those that may come before
                   some n that leads on. Nearly always a few n prove every id live, and c is never
                   searched again.

If it fails, no pair that it visited is live, and all of them are cached as dead. (So `far`, by
which options are put into phases, must not change during a search, and only one thread at a time
may search.)
"""

from libc.stdint cimport int32_t, int64_t, uint64_t

from bpe_automata.canonical.arrays cimport (
    ALIVE, BREAKS, B, COMPLETE, DEAD, DONE, HARMLESS, LATER, NEED_CONFIGURATIONS, NEED_ROOM,
    NEED_ROWS, NEED_SET, NEED_STEPS, NEED_TIME, NEED_VISITED, NO_TOKEN, PARTLY, WITHIN, Frame,
    Option, Room, Wanted, Work, after_byte, longs, meets,
)
from bpe_automata.canonical.pairs cimport may_follow
from bpe_automata.canonical.status cimport (
    H_of, a_of, is_dead, is_live, settle_all, learn, look_ahead, members, need_set, number_all,
    pair_of, q_of, sets_after,
)
from bpe_automata.canonical.tokens cimport added_steps, read_tokens
from bpe_automata._kernels.hashing cimport slot_of, spread

cdef enum:
    MANY = 8  # ids that are open at one configuration
    MOST_WAITING = 16  # ids whose searches wait for something, in one call
    # Phases: ids of one byte, if they surely lead on; ids of up to SHORT bytes; longer ones; and
    # all that do not lead nearer to acceptance.
    NEARER = 3
    NO_ID = -2


cdef bint lives_on(
    int64_t q, int64_t kind, const uint64_t* within, int boundary, Work work
) noexcept nogil:
    """May a boundary come, or the text end, after one of some hypotheses inside a character that
    ends with a coarse atom in state q? boundary: is there one before the character?"""
    cdef int64_t w, h, v, n = work.n_words
    cdef uint64_t remaining
    cdef const uint64_t* after
    cdef const uint64_t* looks = work.looks + (3 * q + B) * n
    for w in range(n):
        remaining, h = within[w], 64 * w
        while remaining != 0:
            if remaining & 1:
                after = work.follow + (
                    (boundary * work.n_hypotheses + h) * (work.n_kinds - 1) + kind
                ) * n
                for v in range(n):
                    if after[v] & looks[v] or (work.accepting[q] and after[v] & work.end[v]):
                        return True
            remaining >>= 1
            h += 1
    return False


cdef int64_t complete(int64_t c, int64_t token, Work work, Wanted wanted) noexcept nogil:
    """A token that completes the character begun at a configuration, may follow an id, and after
    which a boundary may come or the text end: it proves that the id is live. -1 if there is
    none."""
    cdef int64_t key = work.configs[c].key, q0, a0, H, row, k, t, i, inside, q, atom, entry, a, kind
    cdef int64_t before, calls, last, size
    q0, a0, H = q_of(key), a_of(key), H_of(key)
    row = work.utf8_row[H]
    last = work.n_fragments if row != 0 else -1
    for k in range(-1, last):
        t = work.fragments[k] if k >= 0 else work.hints[row]  # the token found last time
        if t < 0:
            continue
        inside, q, atom = row, q0, -1
        for i in range(work.trie.start[t], work.trie.start[t + 1]):
            entry = work.utf8[inside * 256 + work.trie.data[i]] if atom < 0 else -1
            if entry == -1:
                q = 0
                break
            q = after_byte(q, work.trie.data[i], work)
            if q <= 0:
                break
            if entry < -1:
                atom = -2 - entry
            else:
                inside = entry
        if q <= 0 or atom < 0:
            continue
        a = work.next_text[a0 * work.n_atoms + atom]
        if a < 0 or not work.told[2 * a + HARMLESS]:
            continue
        if work.settled[q] != COMPLETE:
            before, calls = wanted.n, wanted.calls
            look_ahead(q, work, wanted)
            wanted.n, wanted.calls = before, calls  # there are other ways to find out
        kind = work.atoms[atom].coarse
        if (
            lives_on(q, kind, members(H, WITHIN, work), 0, work)
            or lives_on(q, kind, members(H, WITHIN + 1, work), 1, work)
        ) and may_follow(token, t, work.pairs):
            size = work.trie.start[t + 1] - work.trie.start[t]
            work.hints[row] = <int32_t>t
            work.configs[c].detour = max(work.configs[c].detour, size)
            work.counts[2] = max(work.counts[2], work.configs[c].detour)
            return t
    return -1


cdef int64_t length(int64_t token, Work work) noexcept nogil:
    """The bytes of an id; those of the longest added token if there is no id."""
    cdef int64_t longest = 0, k
    if token >= 0:
        return work.trie.start[token + 1] - work.trie.start[token]
    for k in range(work.n_added):
        longest = max(longest, work.added[k].end - work.added[k].begin)
    return longest


cdef struct Look:
    int64_t code
    int64_t top  # one past the last option that is listed
    int64_t leads, free, detour  # an id that surely leads on, or NO_ID; see `learn`


cdef Look candidates(
    int64_t c, int64_t token, int64_t low, int64_t high, bint nearer, int64_t top, Work work,
    Room room,
) noexcept nogil:
    """Look at the ids of low < bytes <= high that may come at a configuration after an id (for low
    = 0, also at added tokens) until one surely leads on. The others are listed from
    room.options[top] on: only those that lead nearer to acceptance (`nearer`), or only those that
    do not. Whether they may come after the id is not tested yet."""
    cdef Look look
    cdef int64_t key = work.configs[c].key, q0, a0, H0, row0, before, n, m = 0, total, i, t, child
    cdef int64_t s, far
    cdef int side
    cdef bint binds
    cdef Option* option
    look.code, look.top, look.leads, look.free, look.detour = DONE, top, NO_ID, 0, 0
    q0, a0, H0 = q_of(key), a_of(key), H_of(key)
    row0 = work.utf8_row[H0]
    if low == 0 and row0 != 0:
        t = complete(c, token, work, room.wanted)
        if t >= 0:
            look.leads, look.detour = t, length(t, work)
            return look
    if work.at[H0] < 0:
        need_set(H0, room)
        look.code = NEED_SET
        return look
    before = room.wanted.calls
    n = read_tokens(q0, a0, row0, low, high, work, work.trie, room)
    if low == 0 and row0 == 0 and meets(members(H0, BREAKS, work), work.end, work.n_words):
        m = added_steps(q0, a0, work, room.found + n, room.wanted)
    binds = token >= 0 and work.pairs.ids[token].position >= 0
    for side in range(2 if binds else 1):
        total = n + m if side == 0 else n
        if not number_all(room.found, total, sets_after(H0, side, work), work, room.numbers):
            look.code = NEED_CONFIGURATIONS
            return look
        settle_all(room.numbers, total, work, room.wanted)
        for i in range(total):
            t, child = room.found[i].token if i < n else NO_TOKEN, room.numbers[i]
            if child < 0:
                continue
            s = work.configs[child].status
            if s == 0 or s == DEAD:
                continue
            if s == ALIVE or is_live(t, child, work):
                if side == 0 or may_follow(token, t, work.pairs):
                    look.leads, look.free = t, 1 - side
                    look.detour = length(t, work) + work.configs[child].detour
                    return look
                continue
            far = work.far[q_of(work.configs[child].key)]
            if (far < work.far[q0]) != nearer:
                continue
            if look.top == room.n_options:
                look.code = NEED_ROOM
                return look
            option = &room.options[look.top]
            option.id, option.child, option.free, option.far = t, child, 1 - side, far
            look.top += 1
    if room.wanted.calls > before:
        look.code = NEED_STEPS
    return look


cdef int visit(int64_t pair, Work work) noexcept nogil:
    """Note that this search visits a pair. Returns 1 if it did before, or the pair is proved dead;
    -1 if there is no room; else 0."""
    cdef int64_t mask = work.most_seen - 1, at = spread(pair) & mask, n = work.n_visited
    if is_dead(pair, work):
        return 1
    while work.stamps[at] == work.now and work.seen[at] != pair:
        at = (at + 1) & mask
    if work.stamps[at] == work.now:
        return 1
    if 2 * n >= work.most_seen or 2 * (work.n_failed + n) >= work.most_failed:
        return -1
    work.seen[at], work.stamps[at], work.listed[n] = pair, work.now, pair
    work.n_visited = n + 1
    return 0


cdef void fail(int64_t pair, Work work) noexcept nogil:
    work.failed[slot_of(work.failed, work.most_failed, pair)] = pair
    work.n_failed += 1


def search_each(pairs, int64_t calls, Work work, Room room):
    """Find whether ids are live at configurations: `pair_of` each, int64, sorted. calls: for an id
    of a slice, at most so many calls of `candidates` (0: `work.quota` for all); a configuration for
    which they are not enough gets the status LATER. Returns (code, True)."""
    cdef const int64_t* open_ = longs(pairs)
    cdef int64_t n = len(pairs), code
    with nogil:
        code = search_all(open_, n, calls, work, room)
    return code, True


cdef int64_t search_all(
    const int64_t* open_, int64_t n, int64_t calls, Work work, Room room
) noexcept nogil:
    cdef int64_t i, c, token, found, code = DONE, waiting = 0, tried = -1, settled = -1
    for i in range(n):
        c, token = open_[i] >> 20, (open_[i] & 0xFFFFF) - 1
        if work.configs[c].status == LATER or is_live(token, c, work) or is_dead(open_[i], work):
            continue
        # An id that is not proved live by now is dead: see `settle`.
        if c == settled and 2 * work.n_failed < work.most_failed:
            fail(open_[i], work)
            continue
        if calls > 0:
            work.quota = calls
        found = search(c, token, work, room)
        if found == NEED_TIME and calls > 0:
            work.configs[c].status = LATER
        elif found == NEED_STEPS or found == NEED_SET:  # others may need more of them
            code, waiting = found, waiting + 1
            if waiting == MOST_WAITING:
                break
        elif found != DONE:
            return found
        elif c != tried and i + MANY < n and open_[i + MANY] >> 20 == c:
            tried = c
            if not is_live(token, c, work) and settle(c, work, room):
                settled = c
    return code


cdef bint settle(int64_t c, Work work, Room room) noexcept nogil:
    """Learn all ids that lead on from a configuration where one id is proved dead: none leads on
    with a boundary before it, as that would make every id live. An id that is not proved live
    afterwards is dead. Returns False if it is not settled for some id whether it leads on. (The
    successors of the set are cached, as a search has ended there.)"""
    cdef int64_t key = work.configs[c].key, q0, a0, H0, before = room.wanted.calls, n, i, t, child
    cdef int64_t s
    q0, a0, H0 = q_of(key), a_of(key), H_of(key)
    n = read_tokens(q0, a0, work.utf8_row[H0], 0, work.deepest, work, work.trie, room)
    if not number_all(room.found, n, sets_after(H0, 1, work), work, room.numbers):
        return False
    settle_all(room.numbers, n, work, room.wanted)
    for i in range(n):
        t, child = room.found[i].token, room.numbers[i]
        s = work.configs[child].status if child >= 0 else DEAD
        if s == ALIVE or (s == PARTLY and is_live(t, child, work)):
            if work.counts[1] == work.n_rows:
                return False
            learn(c, t, False, length(t, work) + work.configs[child].detour, work, room.other)
        elif s != DEAD and not is_dead(pair_of(child, t), work):
            return False
    return room.wanted.calls == before


cdef int64_t search(int64_t root, int64_t token, Work work, Room room) noexcept nogil:
    """Find whether an id is live at a configuration, given by its number; `is_live` then says so.
    The search goes first along ids that lead nearer to acceptance, then along all. Returns a code:
    if it is not DONE, call again with what is needed."""
    cdef Look look
    cdef Frame* frame
    cdef Option option
    cdef int64_t n = 0, phases = NEARER - 1, phase, low, high, nearest, k, detour
    cdef int new
    look.leads, look.free, look.detour = NO_ID, 0, 0
    while n > 0 or phases <= NEARER:
        if n == 0:
            phases += 1
            work.now += 1
            work.n_visited = 0
            new = visit(pair_of(root, token), work)
            if new != 0:
                return DONE if new == 1 else NEED_VISITED
            frame = &room.frames[0]
            frame.c, frame.id, frame.free = root, token, 0
            frame.phases, frame.next, frame.past = 0, 0, 0
            n = 1
        frame = &room.frames[n - 1]
        if frame.next == frame.past:
            if frame.phases == phases:
                n -= 1
                continue
            if work.quota <= 0:
                return NEED_TIME
            work.quota -= 1
            phase = frame.phases
            low = SHORT if phase == 2 else 0
            high = 1 if phase == 0 else SHORT if phase == 1 else work.deepest
            look = candidates(frame.c, frame.id, low, high, phase < NEARER, frame.past, work, room)
            if look.code != DONE:
                return look.code
            if look.leads != NO_ID:
                break
            frame.phases += 1
            if phase > 0:
                frame.past = look.top
            continue
        nearest = frame.next
        for k in range(frame.next + 1, frame.past):
            if room.options[k].far < room.options[nearest].far:
                nearest = k
        option = room.options[nearest]
        room.options[nearest] = room.options[frame.next]
        frame.next += 1
        if not option.free and not may_follow(frame.id, option.id, work.pairs):
            continue
        if is_live(option.id, option.child, work):
            look.leads, look.free = option.id, option.free
            look.detour = length(option.id, work) + work.configs[option.child].detour
            break
        new = visit(pair_of(option.child, option.id), work)
        if new == 1:
            continue
        if new < 0:
            return NEED_VISITED
        if n == room.n_frames:
            return NEED_ROOM
        room.frames[n].c, room.frames[n].id = option.child, option.id
        room.frames[n].free, room.frames[n].phases = option.free, 0
        room.frames[n].next = room.frames[n].past = frame.past
        n += 1
    if look.leads == NO_ID:  # none of all that was visited is live
        for k in range(work.n_visited):
            fail(work.listed[k], work)
        return DONE
    if work.counts[1] + n > work.n_rows:
        return NEED_ROWS
    detour = look.detour
    learn(room.frames[n - 1].c, look.leads, look.free, detour, work, room.other)
    for k in range(n - 2, -1, -1):
        detour += length(room.frames[k + 1].id, work)
        learn(
            room.frames[k].c, room.frames[k + 1].id, room.frames[k + 1].free, detour, work,
            room.other,
        )
    return DONE
