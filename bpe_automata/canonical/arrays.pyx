# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: freethreading_compatible=True
"""The arguments of kernels. See `arrays.pxd` for what the structs and classes hold. Arrays are
contiguous, and are kept alive as long as there is a pointer to them."""

from cpython.buffer cimport (
    PyBUF_C_CONTIGUOUS, PyBUF_FORMAT, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer,
)
from libc.string cimport strlen

import numpy as np

NODE_FIELDS = "label", "depth", "skip", "token", "klass", "text", "first"
NODE = np.dtype([(name, np.int32) for name in NODE_FIELDS])
"""The dtype of `Node`."""
CONFIG = np.dtype([(name, np.int64) for name in ("key", "open", "status", "detour")])
"""The dtype of `Config`."""


cdef void* address(object array, char* kind, bint writable) except? NULL:
    """The address of an array's items. kind: i4, i8, u1 (also for bool) or u8. Raises ValueError
    for an array of another kind, or one that is not contiguous or may not be written to."""
    cdef Py_buffer view
    PyObject_GetBuffer(
        array, &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (PyBUF_WRITABLE if writable else 0)
    )
    cdef char format = view.format[strlen(view.format) - 1]
    cdef Py_ssize_t size = view.itemsize
    cdef void* found = view.buf
    PyBuffer_Release(&view)
    if size != kind[1] - c"0" or format not in (b"bhilq" if kind[0] == c"i" else b"?BHILQ"):
        raise ValueError(f"an array of {kind.decode()} is needed, not of {array.dtype}")
    return found


cdef class Wanted:
    @property
    def steps(self):
        """The numbers of the steps."""
        return [self.numbers[k] for k in range(self.n)]

    def __bool__(self):
        return self.n > 0


cdef class Trie:
    def __init__(self, nodes, start, data):
        """nodes NODE [n]; start int32 [ids + 1], data uint8: the bytes of each id."""
        self.nodes_array, self.start_array, self.data_array = nodes, start, data
        self.n, self.nodes = len(nodes), <const Node*>ints(nodes.view(np.int32))
        self.start, self.data = ints(start), bytes_(data)

    def with_nodes(self, nodes):
        """The same tokens with other nodes."""
        return Trie(nodes, self.start_array, self.data_array)


cdef class Pairs:
    def __init__(self, ids, merges, order, slots, values):
        """ids int32 [n + 1, 5], merges int32 [m, 3], order int32: the id at each position; slots
        int64, values int32: hash table of the ranks."""
        self.kept = ids, merges, order, slots, values
        self.ids, self.merges = <const Id*>ints(ids), <const Interval*>ints(merges)
        self.order, self.n_ids, self.n_order = ints(order), len(ids) - 1, len(order)
        self.slots, self.values, self.n_slots = longs(slots), ints(values), len(slots)


cdef class Base:
    def __init__(self, steps, text, chars, states):
        """steps: trans int32 [states, columns], byte_class uint8 [256], behind int32: the state
        after each step that is not in `trans`, 0: not written down.

        text: utf8 int32 [rows, 256], next int32 [texts, atoms], told bool [texts, 2].

        chars: atoms int32 [atoms, 2], the coarse atom that each belongs to, and is it steady; into
        uint64 [4, kinds, words], the hypotheses that a coarse atom may follow: with a boundary and
        into a universal one; with a boundary, where the text may end then; with a boundary; without
        one (the last kind: those that any atom may follow); end uint64 [words], those with which a
        text may end; follow uint64 [2, n, coarse, words], those after an atom, without and with a
        boundary before it; fragments int32, the tokens of only the last bytes of a character.

        states: accepting bool [states]; good uint8 [states], see `leads_home`; settled uint8, looks
        uint64 [states, 3, words], see `look_ahead`; far int32 [states], bytes to acceptance (of a
        linked automaton perhaps fewer)."""
        trans, byte_class, behind = steps
        utf8, next_text, told = text
        atoms, into, end, follow, fragments = chars
        accepting, good, settled, looks, far = states
        self.kept = steps, text, chars, states
        self.trans, self.byte_class, self.behind = ints(trans), bytes_(byte_class), ints(behind)
        self.utf8, self.next_text, self.told = ints(utf8), ints(next_text), bytes_(told)
        self.atoms, self.into, self.end = <const Atom*>ints(atoms), words(into), words(end)
        self.follow, self.fragments = words(follow), ints(fragments)
        self.accepting, self.far = bytes_(accepting), ints(far)
        self.good, self.settled, self.looks = bytes_out(good), bytes_out(settled), words_out(looks)
        (self.n_states, self.columns), self.n_behind = trans.shape, len(behind)
        self.n_atoms, self.n_far, self.n_fragments = next_text.shape[1], len(far), len(fragments)
        self.n_kinds, self.n_words = into.shape[1:]
        self.n_hypotheses = follow.shape[1]


cdef class Work(Base):
    def __init__(self, steps, text, chars, states, trie, pairs, added, deepest):
        """added: from, behind int32 [states]: where an added token is read from at each state, and
        the state after one that ends there (of length 0: the state itself); row int32: the row of
        each text state in after int32 [rows, n], the text states after each token; texts int32
        [n, 3]: the id of each token, and where its bytes begin and end in data uint8."""
        super().__init__(steps, text, chars, states)
        self.trie, self.pairs, self.deepest, self.kept_added = trie, pairs, deepest, added
        from_, behind, row, after, texts, data = added
        self.added_from, self.added_behind, self.added_row = ints(from_), ints(behind), ints(row)
        self.added_after, self.added, self.added_data = (
            ints(after), <const AddedText*>ints(texts), bytes_(data)
        )
        self.n_added, self.n_around = len(texts), len(from_)
        self.row_words = (self.pairs.n_order + 63) >> 6

    def use_sets(self, bits, utf8_row, at, after):
        """bits uint64 [sets, 4, words], utf8_row int32 [sets], at int32 [sets]: the row of each set
        in `after` (-1: its successors are not cached), int32 [rows, 2, classes]: the sets after
        each token class, with a boundary before the token and without."""
        self.bits, self.utf8_row, self.at, self.after, self.kept_sets = (
            words(bits), ints(utf8_row), ints(at), ints(after), (bits, utf8_row, at, after)
        )
        self.n_classes = after.shape[2]

    def remember(self, counts, hints):
        """counts int64 [3], hints int32 [rows of utf8]."""
        self.counts, self.hints, self.kept_counts = (
            longs_out(counts), ints_out(hints), (counts, hints)
        )

    def remember_configs(self, slots, values, configs):
        """slots int64, values int32: hash table of configurations; configs CONFIG [n]."""
        self.slots, self.values, self.configs = (
            longs_out(slots), ints_out(values), <Config*>longs_out(configs.view(np.int64))
        )
        self.slots_array, self.values_array, self.configs_array = slots, values, configs
        self.n_slots, self.n_configs = len(slots), len(configs)

    def remember_rows(self, rows):
        """rows: uint64 [n, words]."""
        self.rows, self.rows_array, self.n_rows = words_out(rows), rows, len(rows)

    def remember_visited(self, failed, n_failed, room):
        """failed int64: hash table without values of pairs, of which there are `n_failed`; room
        int64 [3, n] for those of one search, of which half are used."""
        self.failed, self.seen, self.failed_array, self.kept_visited = (
            longs_out(failed), longs_out(room), failed, room
        )
        self.n_failed, self.most_failed, self.most_seen = n_failed, len(failed), room.shape[1]
        self.stamps, self.listed = self.seen + self.most_seen, self.seen + 2 * self.most_seen
        self.now = self.n_visited = 0


cdef class Room:
    def __init__(self, int64_t n, depth, n_words, n_options, n_frames):
        """n: nodes of a trie and added tokens; depth: bytes of the longest id; n_words: of a row
        of ids by position."""
        self.reads, self.pairs = np.empty((2 * n, 4), np.int32), np.empty(n, np.int64)
        self.out, self.wanted = np.empty((2, 2 * n), np.int32), Wanted()
        path, other = np.empty(depth + 2, np.int32), np.empty(n_words, np.uint64)
        options, numbers = np.empty((n_options, 4), np.int64), np.empty(2 * n, np.int64)
        frames = np.empty((n_frames, 6), np.int64)
        self.kept = path, other, options, numbers, frames
        self.found, self.path = <Read*>ints_out(self.reads), ints_out(path)
        self.options, self.numbers = <Option*>longs_out(options), longs_out(numbers)
        self.frames, self.other = <Frame*>longs_out(frames), words_out(other)
        self.open, self.free = longs_out(self.pairs), ints_out(self.out)
        self.bound = self.free + 2 * n
        self.n_found, self.most_pairs, self.n_options, self.n_frames = 2 * n, n, n_options, n_frames

    def empty(self):
        self.n_needed = self.n_pairs = self.wanted.n = self.wanted.calls = 0

    def sets_needed(self):
        """The sets whose successors must be found."""
        return [self.needed[k] for k in range(self.n_needed)]
