"""The interned hypothesis sets of a tokenizer, and where token classes lead from them. See
`hypotheses` for what the sets are, and `hypotheses.SetArrays` for what the arrays hold."""

from __future__ import annotations

import numpy as np

from bpe_automata._budget import check
from bpe_automata._limits import check_fits, untouched
from bpe_automata._sharing import BoundedMemo, Lock, locked
from bpe_automata.canonical.arrays import NO_SET
from bpe_automata.canonical.hypotheses import Classes, SetArrays, find_after, number_of
from bpe_automata.canonical.token_actions import (
    ILLEGAL,
    MUST_END,
    OFF,
    TokenActions,
    WholePretokens,
)
from bpe_automata.tokenizer.alphabet import DEAD
from bpe_automata.tokenizer.pipeline import Pipeline

Arrays = tuple[np.ndarray, ...]
MOST_SETS = 1 << 24  # keys of configurations have room for so many
_LONGEST = 4  # bytes of a character
_INTRICATE = "more than are told apart: the tokenizer's pretokenizer is too intricate"
_UNION = 256  # bytes that a cached union takes
_ROOM, _ROWS = 1 << 12, 64  # at first, for sets and for sets with cached successors


def words(bits: np.ndarray) -> np.ndarray:
    """The bits packed into uint64 along the last axis, the lowest bit first."""
    size = -(-bits.shape[-1] // 64) * 64
    wide = np.zeros((*bits.shape[:-1], size), np.bool_)
    wide[..., : bits.shape[-1]] = bits
    return np.ascontiguousarray(np.packbits(wide, axis=-1, bitorder="little")).view(np.uint64)


class HypothesisSets:
    """The interned sets, and how token classes act on them, which is found when first needed. Any
    number of threads may use it: what is cached is read without the lock."""

    def __init__(self, pipeline: Pipeline, actions: TokenActions, whole: WholePretokens) -> None:
        self.lock = Lock()
        self.follow = words(pipeline.boundaries.follow)
        self._utf8, coarse = pipeline.alphabet.utf8, np.array(pipeline.coarse, np.int32)
        self._leads, classes = _classes(actions, pipeline.boundaries.n)
        self._classes = Classes(*classes, self.follow, coarse)
        self._whole = _whole(actions, whole)
        self._entries: dict[int, np.ndarray] = {}  # by UTF-8 row, see `_entry`
        self._readable = _completed(pipeline), words(pipeline.boundaries.ends), self._whole[2]
        self._unions: BoundedMemo[tuple[int, int], int] = BoundedMemo(_UNION)
        self._n_rows, self._room = 0, _ROOM
        self._publish(self._with_room(), self._with_rows(_ROWS), np.full(self._room, -1, np.int32))
        layer = np.zeros(self.follow.shape[-1], np.uint64)
        layer[0] = 1
        self._number(0, {2 * (OFF + 2): layer})

    def _with_rows(self, n: int) -> list[np.ndarray]:
        return untouched(((n, 2, len(self._classes)), np.int32))

    def _with_room(self) -> tuple[Arrays, Arrays, Arrays]:
        """(described, told, found) for `_room` sets and twice as many layers."""
        n, n_words = min(self._room, MOST_SETS), self.follow.shape[-1]
        bits = (n, 4, n_words), np.uint64
        described = (n, np.int32), (n + 1, np.int64), (2 * self._room, np.int32)
        layers = (2 * self._room, n_words), np.uint64
        made = untouched(*described, layers, bits, (n, np.bool_), (n, np.uint64))
        slots = np.full(1 << (2 * n).bit_length(), -1, np.int32)
        return tuple(made[:4]), tuple(made[4:6]), (slots, made[6], np.zeros(1, np.int64))

    def _publish(
        self, made: tuple[Arrays, Arrays, Arrays], rows: list[np.ndarray], at: np.ndarray
    ) -> None:
        """Make these the arrays that are read: all of them or, if a signal interrupts it, none."""
        described, told, found = made
        sets = SetArrays(*made, self._readable)
        arrays = told[0], described[0], at, *rows
        self._described, self._told, self._found, self._rows = described, told, found, rows
        self._at, self._ends, self._sets, self._arrays = at, told[1], sets, arrays

    def _grow(self) -> None:
        """Make room for more sets. Raises BudgetExceededError over MOST_SETS."""
        check()
        described, told, found = self._described, self._told, self._found
        n = int(found[2][0])
        check_fits("hypothesis sets", n + 1, MOST_SETS, _INTRICATE)
        self._room *= 2
        made = self._with_room()
        sizes = n, n + 1, *[int(described[1][n])] * 2, n, n
        for old, new, size in zip((*described, *told), (*made[0], *made[1]), sizes, strict=True):
            new[:size] = old[:size]
        slots, hashes, count = made[2]
        hashes[:n], count[0] = found[1][:n], n
        for k, at in enumerate((hashes[:n] & np.uint64(len(slots) - 1)).tolist()):
            while slots[at] >= 0:
                at = (at + 1) % len(slots)
            slots[at] = k
        at = np.full(len(hashes), -1, np.int32)
        at[:n] = self._at[:n]
        self._publish(made, self._rows, at)

    def current(self) -> Arrays:
        """The arguments of `Work.use_sets`: the same tuple until the arrays grow."""
        return self._arrays

    @locked
    def know(self, number: int) -> None:
        """Find the sets after each token class of a set. Raises BudgetExceededError."""
        if self._at[number] >= 0:
            return
        k = self._n_rows
        if k == len(self._rows[0]):  # with another `at`, as the old one belongs to the old rows
            more = self._with_rows(2 * k)
            for old, new in zip(self._rows, more, strict=True):
                new[:k] = old
            self._publish((self._described, self._told, self._found), more, self._at.copy())
        after, row = self._rows[0][k], self.utf8_row(number)
        _, start, code, _ = self._described
        wholes = (code[start[number] : start[number + 1]] >> 1) - 2
        where = np.stack([[self._moved(side, w) for w in wholes.tolist()] for side in range(2)])
        if row not in self._entries:
            self._entries[row] = np.array([_entry(row, lead, self._utf8) for lead in self._leads])
        while not find_after(number, self._entries[row], where, self._classes, self._sets, after):
            self._grow()
        self._n_rows = k + 1
        self._at[number] = k

    def _moved(self, side: int, node: int) -> np.ndarray:
        """int32 [classes]: where each class leads in `WholePretokens` from a node, without a
        boundary before it (side 0) or with one."""
        begun, stays, complete, start, of_class, child = self._whole
        if (node >= 0 and complete[node]) if side else node == MUST_END:
            return np.full(len(begun), ILLEGAL, np.int32)
        if side or node < 0:
            return begun if side else stays
        there, found = slice(start[node], start[node + 1]), stays.copy()
        found[of_class[there]] = child[there]
        return found

    def successors(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """(free, bound): int32 [n_classes], the set after a token of each class, with a boundary
        before the token and without one; not to be written to."""
        if self._arrays[2][number] < 0:
            self.know(number)
        sets = self._arrays
        free, bound = sets[3][sets[2][number]]
        return free, bound

    def union(self, one: int, other: int) -> int:
        """The union of two sets after the same text (NO_SET is empty)."""
        if one == other or other == NO_SET:
            return one
        if one == NO_SET:
            return other
        found = self._unions.get((one, other))
        return self._new_union(one, other) if found is None else found

    @locked
    def _new_union(self, one: int, other: int) -> int:
        utf8_row, start, code, bits = self._described
        layers: dict[int, np.ndarray] = {}
        for number in (one, other):
            for k in range(start[number], start[number + 1]):
                layers[int(code[k])] = layers.get(int(code[k]), np.uint64(0)) | bits[k]
        found = self._number(int(utf8_row[one]), layers)
        self._unions.put((one, other), found)
        return found

    def _number(self, utf8_row: int, layers: dict[int, np.ndarray]) -> int:
        """The number of a set, by its layers and their codes."""
        while True:
            codes = np.array(sorted(layers), np.int32)
            bits = np.stack([layers[code] for code in codes.tolist()])
            found: int | None = number_of(utf8_row, codes, bits, self._sets)
            if found is not None:
                return found
            self._grow()

    def ends(self, number: int) -> bool:
        """Can a text, or a piece between added tokens, end after this?"""
        return bool(self._ends[number])

    def utf8_row(self, number: int) -> int:
        """The UTF-8 row of the character being read, 0 at a character's end."""
        return int(self._arrays[1][number])


def _entry(row: int, lead: bytes, utf8: np.ndarray) -> int:
    """One of the `entries` of `find_after`, for one lead."""
    if not lead or not row:
        return DEAD if lead or row else 0
    for byte in lead:
        row = int(utf8[row, byte]) if row >= 0 else DEAD
    return row


def _classes(actions: TokenActions, n: int) -> tuple[list[bytes], Arrays]:
    """The leads, and lead, element, tail int32 [classes], relations uint64 [elements, 2n, words]:
    the lead of each class, by number, and the hypotheses after each element."""
    leads = {b"": 0}
    lead = [leads.setdefault(c.lead, len(leads)) for c in actions.classes]
    columns = lead, [c.element for c in actions.classes], [c.tail for c in actions.classes]
    relations = np.zeros((len(actions.relations), 2 * n, n), np.bool_)
    for number, relation in enumerate(actions.relations):
        relations[number, : len(relation)] = relation
    made = (np.array(column, np.int32) for column in columns)
    return list(leads), (*made, words(relations))


def _whole(actions: TokenActions, whole: WholePretokens) -> Arrays:
    """begun, stays int32 [classes]: where a class leads in the trie from its root, with a boundary
    before it, and, without one, from a node that has no child of this class; complete bool [nodes];
    child_start, child_class, child int32: CSR of the children of nodes."""
    class_of = {c.own: number for number, c in enumerate(actions.classes) if c.own >= 0}
    begun, stays = np.full((2, len(actions.classes)), OFF, np.int32)
    for token in whole.tokens:
        number = class_of.pop(token, 0)  # such a token is no child in the trie
        begun[number], stays[number] = MUST_END, ILLEGAL
    start, edges = [0], list[tuple[int, int]]()
    for children in whole.children:
        edges += ((class_of[t], to) for t, to in children.items() if t in class_of)
        start.append(len(edges))
    pairs = np.array(edges, np.int32).reshape(-1, 2).T.copy()
    begun[pairs[0, : start[1]]] = pairs[1, : start[1]]
    complete = np.zeros(len(whole.children), np.bool_)
    complete[list(whole.complete)] = True
    return begun, stays, complete, np.array(start, np.int32), pairs[0].copy(), pairs[1].copy()


def _completed(pipeline: Pipeline) -> np.ndarray:
    """uint64 [rows, 2, words]: for a character that is read as far as a UTF-8 row, the hypotheses
    that it can follow, without and with a boundary before it."""
    utf8, follows = pipeline.alphabet.utf8, pipeline.boundaries.follow.any(axis=3)
    atoms = np.zeros((len(utf8), follows.shape[2]), np.bool_)
    rows, data = np.nonzero(utf8 < DEAD)
    atoms[rows, pipeline.coarse[-2 - utf8[rows, data]]] = True
    rows, data = np.nonzero(utf8 > 0)
    rows, inside = np.unique(np.stack([rows, utf8[rows, data]]), axis=1)
    for _ in range(_LONGEST):
        np.logical_or.at(atoms, rows, atoms[inside])
    return words(np.einsum("rk,bhk->rbh", atoms, follows))
