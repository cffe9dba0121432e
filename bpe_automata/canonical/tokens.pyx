# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: freethreading_compatible=True
"""Where tokens lead from a state of the byte automaton and one of the text automaton."""

import numpy as np

from bpe_automata.canonical.arrays import NODE

from libc.stdint cimport int32_t, int64_t, uint8_t

from bpe_automata.canonical.arrays cimport (
    Base, Node, Read, Room, Trie, Wanted, Work, after_byte, bytes_, bytes_out, ints, ints_out,
    longs, longs_out, want,
)


cdef int64_t walk_along(
    int64_t state, const uint8_t* data, int64_t n, Base base, Wanted wanted
) noexcept nogil:
    """The state after n bytes, 0 where there is none or a step is wanted."""
    cdef int64_t i
    for i in range(n):
        state = after_byte(state, data[i], base)
        if state <= 0:
            if state < 0:
                want(-1 - state, wanted)
            return 0
    return state


def walk(int64_t state, data, Base base, Wanted wanted):
    """`walk_along` for Python; data: uint8."""
    return walk_along(state, bytes_(data), len(data), base, wanted)


cdef int64_t text_after(
    int64_t text, int64_t row, const uint8_t* data, int64_t n, Base base
) noexcept nogil:
    """State of the text automaton after bytes, from a UTF-8 row; -1 where no text goes on so."""
    cdef int64_t i, entry = row
    for i in range(n):
        entry = base.utf8[(entry if entry > 0 else 0) * 256 + data[i]]
        if entry == -1:
            return -1
        if entry < -1:
            text = base.next_text[text * base.n_atoms - 2 - entry]
            if text < 0:
                return -1
    return text


cdef bint reads_otherwise(int64_t a0, int64_t row0, int64_t first, Base base) noexcept nogil:
    """May the text state after a token differ from its cached one, which holds from text state 0
    and UTF-8 row 0? first: the token's first atom."""
    if row0 != 0:
        return True
    return a0 != 0 and (
        first < 0 or base.next_text[a0 * base.n_atoms + first] != base.next_text[first]
    )


cdef int64_t read_tokens(
    int64_t q0, int64_t a0, int64_t row0, int64_t low, int64_t high, Base base, Trie trie, Room room
) noexcept nogil:
    """The tokens of low < bytes <= high that can be read from (q0, a0) in UTF-8 row row0, whatever
    the hypotheses: rows of room.found. Returns how many."""
    cdef int64_t n = 0, n_stuck = 0
    room.path[0] = <int32_t>q0
    read_nodes(0, trie.n, a0, row0, low, high, base, trie, room, &n, &n_stuck)
    return n


cdef void read_nodes(
    int64_t node, int64_t end, int64_t a0, int64_t row0, int64_t low, int64_t high, Base base,
    Trie trie, Room room, int64_t* n_read, int64_t* n_stuck
) noexcept nogil:
    """Read the nodes `node` .. `end` - 1; room.path has the states above the first. Tokens are
    added to the front of room.found. A node that wants a step is added at its end, with the state
    above it. There are two rows for each node, and no node has one of both kinds."""
    cdef int64_t n = n_read[0], last = room.n_found - 1 - n_stuck[0], q, a, t, size
    cdef int32_t* path = room.path
    cdef Read* found = room.found
    cdef const Node* here
    while node < end:
        here = &trie.nodes[node]
        if here.depth == 1 and base.utf8[row0 * 256 + here.label] == -1:
            node = here.skip
            continue
        q = after_byte(path[here.depth - 1], here.label, base)
        if q < 0:
            want(-1 - q, room.wanted)
            found[last].token, found[last].q = <int32_t>node, path[here.depth - 1]
            q, last = 0, last - 1
        if q == 0:
            node = here.skip
            continue
        path[here.depth] = <int32_t>q
        if here.klass != 0 and here.depth > low:
            t, a = here.token, here.text
            if reads_otherwise(a0, row0, here.first, base):
                size = trie.start[t + 1] - trie.start[t]
                a = text_after(a0, row0, trie.data + trie.start[t], size, base)
            if a >= 0:
                found[n].token, found[n].q, found[n].a = <int32_t>t, <int32_t>q, <int32_t>a
                found[n].klass = here.klass
                n += 1
        node = here.skip if here.depth == high else node + 1
    n_read[0], n_stuck[0] = n, room.n_found - 1 - last


def read_trie(
    int64_t q, int64_t a, int64_t row0, stuck, Trie trie, Work work, Room room
):
    """The tokens of a trie that can be read from (q, a) in a UTF-8 row: room.reads[:n]. Returns
    (n, how many of the last rows of room.reads are nodes that want a step). stuck: int32 [m, 4],
    such rows of an earlier call; if there are some, only their nodes and those below are read."""
    cdef const Read* nodes = <const Read*>ints(stuck)
    cdef int64_t i, node, m = len(stuck), n = 0, n_stuck = 0
    with nogil:
        if m == 0:
            room.path[0] = <int32_t>q
            read_nodes(
                0, trie.n, a, row0, 0, work.deepest, work, trie, room, &n, &n_stuck
            )
        for i in range(m):
            node = nodes[i].token
            room.path[trie.nodes[node].depth - 1] = nodes[i].q
            read_nodes(
                node, trie.nodes[node].skip, a, row0, 0, work.deepest, work, trie, room, &n,
                &n_stuck,
            )
    return n, n_stuck


def step_each(
    ids, int64_t q0, int64_t a0, int64_t row0, by_id, Base base, Trie trie, Wanted wanted
):
    """int32 [n, 4], rows of `Read`: where some tokens (int64) lead from (q0, a0) in a UTF-8 row,
    state 0 and class 0 where a token cannot be read. by_id: int32 [ids, 3], class, text state and
    first atom of each."""
    reads = np.empty((len(ids), 4), np.int32)
    cdef const int64_t* tokens = longs(ids)
    cdef const int32_t* endings = ints(by_id)
    cdef Read* found = <Read*>ints_out(reads)
    cdef int64_t n = len(ids), i, t, q, a, size
    cdef const uint8_t* spelled
    cdef bint read
    with nogil:
        for i in range(n):
            t = tokens[i]
            spelled, size = trie.data + trie.start[t], trie.start[t + 1] - trie.start[t]
            q, a = walk_along(q0, spelled, size, base, wanted), endings[3 * t + 1]
            if reads_otherwise(a0, row0, endings[3 * t + 2], base):
                a = text_after(a0, row0, spelled, size, base)
            read = q > 0 and a >= 0
            found[i].token, found[i].klass = <int32_t>t, endings[3 * t] if read else 0
            found[i].q, found[i].a = <int32_t>q if read else 0, <int32_t>a if read else 0
    return reads


cdef int64_t added_steps(
    int64_t q, int64_t a, Work work, Read* found, Wanted wanted
) noexcept nogil:
    """The added tokens that can be read between pretokens: rows of class -1. Returns how many."""
    cdef int64_t n = 0, k, row, begin, text, last
    if work.n_added == 0:
        return 0
    begin = q if work.n_around == 0 else work.added_from[q]
    if begin == 0:
        return 0
    row = work.added_row[a]
    for k in range(work.n_added):
        text = work.added_after[row * work.n_added + k]
        if work.added[k].id < 0 or text < 0:
            continue
        last = walk_along(
            begin, work.added_data + work.added[k].begin, work.added[k].end - work.added[k].begin,
            work, wanted,
        )
        if last > 0 and work.n_around > 0:
            last = work.added_behind[last]
        if last > 0:
            found[n].token, found[n].q, found[n].a = work.added[k].id, <int32_t>last, <int32_t>text
            found[n].klass = -1
            n += 1
    return n


# ---------------------------------------------------------------- for slices


def without(Trie trie, gone):
    """NODE [n]: the nodes of a trie without some tokens (bool [ids]), and without the nodes that
    led only to these."""
    cdef const uint8_t* is_gone = bytes_(gone)
    cdef int64_t i, n = trie.n, k = 0, d, t, top = 0
    kept, before = np.empty(n, NODE), np.empty(n + 1, np.int32)
    cdef Node* nodes = <Node*>ints_out(kept.view(np.int32))
    cdef int32_t* tokens = ints_out(before)  # that are kept, before each node
    path = np.empty(trie.nodes_array["depth"].max(initial=0) + 1, np.int64)
    cdef int64_t* last = longs_out(path)  # by depth, the last node that was kept
    tokens[0] = 0
    for i in range(n):
        t = trie.nodes[i].token
        tokens[i + 1] = tokens[i] + (t >= 0 and not is_gone[t])
    i = 0
    while i < n:
        if tokens[trie.nodes[i].skip] == tokens[i]:
            i = trie.nodes[i].skip
            continue
        nodes[k], d = trie.nodes[i], trie.nodes[i].depth
        if tokens[i + 1] == tokens[i]:
            nodes[k].token, nodes[k].klass = -1, 0
        while top >= d:  # their subtrees end here
            nodes[last[top]].skip, top = <int32_t>k, top - 1
        last[d], top = k, d
        k, i = k + 1, i + 1
    for d in range(1, top + 1):
        nodes[last[d]].skip = <int32_t>k
    return kept[:k]


def inside(use, int64_t length, may, Trie trie):
    """bool [ids]: those of the tokens `may` (bool [ids]) that have at most `length` bytes, all of
    them in `use` (bool [256])."""
    answers = np.zeros(len(may), np.bool_)
    cdef uint8_t* found = bytes_out(answers)
    cdef const uint8_t* used = bytes_(use)
    cdef const uint8_t* asked = bytes_(may)
    cdef int64_t node = 0, t
    while node < trie.n:
        t = trie.nodes[node].token
        if trie.nodes[node].depth > length or not used[trie.nodes[node].label]:
            node = trie.nodes[node].skip
            continue
        if t >= 0:
            found[t] = asked[t]
        node += 1
    return answers


# ---------------------------------------------------------------- for limits on ids


def furthest(int64_t q, int64_t depth, trans, behind, far, seen):
    """The most bytes to acceptance (far, int32 [states]) from the states that at most `depth` bytes
    lead to, as far as these are written down; -1 if they are too many. seen: int32 [states], marks
    of earlier calls; seen[0] counts the calls. trans, behind: see `Base`."""
    cdef int64_t[4096] queue
    cdef const int32_t* steps = ints(trans)
    cdef const int32_t* written = ints(behind)
    cdef const int32_t* bytes_left = ints(far)
    cdef int32_t* marks = ints_out(seen)
    cdef int64_t most = bytes_left[q], k = 0, n = 1, end, state, column, after
    cdef int64_t columns = trans.shape[1]
    marks[0] += 1
    queue[0], marks[q] = q, marks[0]
    for _ in range(depth):
        end = n
        while k < end:
            state = queue[k]
            k += 1
            for column in range(columns):
                after = steps[state * columns + column]
                if after < 0:
                    after = written[-1 - after]
                if after <= 0 or marks[after] == marks[0]:
                    continue
                if n == 4096:
                    return -1
                marks[after], queue[n] = marks[0], after
                n += 1
                most = max(most, bytes_left[after])
    return most
