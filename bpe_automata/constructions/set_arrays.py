"""The interned hypothesis sets as arrays for the kernels, extended as sets are added, and what has
been proved about them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata.budget import check
from bpe_automata.constructions.canonical import CanonicalAutomaton
from bpe_automata.constructions.hypothesis_sets import NONE
from bpe_automata.constructions.whole_pieces import MUST_END
from bpe_automata.kernels.hashing import EMPTY
from bpe_automata.kernels.world import Witnesses
from bpe_automata.sharing import locked

SHOWN = 8, 3  # of each set: texts, and what is said of them
_COVERS = 4, 8, 4  # of each UTF-8 row, ways in each of them, and fragments in a way
_WITNESSES = 1 << 14


class _Growing:
    """An array that grows. What was handed out of it keeps its length."""

    def __init__(self, dtype: type, shape: tuple[int, ...] = ()) -> None:
        self._array: np.ndarray = np.zeros((256, *shape), dtype=dtype)

    def filled(self, count: int, values: list[int] | np.ndarray) -> np.ndarray:
        """The first `count` places, then `values`."""
        needed = count + len(values)
        if needed > len(self._array):
            self._array = resized(self._array[:count], 2 * needed)
        self._array[count:needed] = values
        return self._array[:needed]


class Columns(NamedTuple):
    """Those of `kernels.world.Sets` that never change."""

    start: np.ndarray
    hypothesis: np.ndarray
    boundary: np.ndarray
    may_break: np.ndarray
    may_bind: np.ndarray
    row: np.ndarray
    ends: np.ndarray


class SetArrays:
    """Keeps up with `canonical.sets`, for any number of threads."""

    def __init__(self, canonical: CanonicalAutomaton) -> None:
        self.lock = canonical.tokenizer.lock
        self._sets, self._whole = canonical.sets.sets, canonical.whole
        self._ends, self._text_ends = canonical.sets.ends, bool(canonical.pipeline.text.ends[0])
        self._rows, n_classes = canonical.sets.rows, len(canonical.actions.classes)
        self._bound = _Growing(np.int32, (n_classes,))
        self._known = np.empty(0, dtype=np.int32), self._bound.filled(0, np.empty((0, n_classes)))
        self._columns = [_Growing(t) for t in (*[np.int32] * 3, bool, bool, np.int32, bool)]
        nothing = [column.filled(0, []) for column in self._columns]
        self._arrays = Columns(self._columns[0].filled(0, [0]), *nothing[1:])

    def current(self) -> Columns:
        """The arrays of all sets interned so far."""
        if len(self._arrays.row) < len(self._sets):
            self._extend()
        return self._arrays

    def know(self, number: int) -> bool:
        """Find where token classes lead from a set without a boundary: `known_rows` has it then.
        Was that known before?"""
        row_of, _ = self._known
        known = number < len(row_of) and row_of[number] != NONE
        if not known:
            self._know(number, self._rows(number)[1])
        return bool(known)

    @locked
    def _know(self, number: int, bound: np.ndarray) -> None:
        row_of, rows = self._known
        if len(row_of) <= number or row_of[number] == NONE:
            # A copy: whoever has the old one has no such row either.
            size = len(row_of) if number < len(row_of) else 2 * len(self._sets)
            longer = resized(row_of, size, NONE)
            longer[number] = len(rows)
            self._known = longer, self._bound.filled(len(rows), bound[None])

    def known_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """(int32 [n_sets or more] into the rows, NONE where it is not known; int32 [rows,
        n_classes]); the same tuple as long as nothing is new."""
        known = self._known  # once: another thread's may name sets that it has no room for
        return self._with_room() if len(known[0]) < len(self._sets) else known

    @locked
    def _with_room(self) -> tuple[np.ndarray, np.ndarray]:
        row_of, rows = self._known
        self._known = resized(row_of, max(len(row_of), 2 * len(self._sets)), NONE), rows
        return self._known

    @locked
    def _extend(self) -> None:
        """Interrupted, it has done nothing: what was written so far is written again."""
        done, before = len(self._arrays.row), len(self._arrays.hypothesis)
        fresh = self._sets[done:]
        members = [member for found in fresh for member in found.members]
        sizes = np.cumsum([len(found.members) for found in fresh], dtype=np.int64)
        start, hypothesis, boundary, may_break, may_bind, row, ends = self._columns
        self._arrays = Columns(
            start.filled(done + 1, (before + sizes).tolist()),
            hypothesis.filled(before, [h for h, _, _ in members]),
            boundary.filled(before, [b for _, b, _ in members]),
            may_break.filled(before, [self._whole.may_end(w) for _, _, w in members]),
            may_bind.filled(before, [w != MUST_END for _, _, w in members]),
            row.filled(done, [found.row for found in fresh]),
            ends.filled(
                done, [self._text_ends and self._ends(done + k) for k in range(len(fresh))]
            ),
        )


class Proofs(NamedTuple):
    """What was proved of a tokenizer by the products that met it first, for those that come after:
    see `kernels.world`, `Sets` (given_up, shown), `Fragments` (covers) and `Witnesses`."""

    given_up: np.ndarray
    shown: np.ndarray
    covers: np.ndarray
    witnesses: Witnesses


class Proven:
    """The proofs of one tokenizer. Kernels read and write them in one call, so each call has a copy
    to itself: one after another, the same; at the same time, each its own, which knows what was
    found in the calls that had it."""

    def __init__(self, n_rows: int) -> None:
        """n_rows: of UTF-8, see `tokenizer.alphabet`."""
        self._n_rows = n_rows
        self._idle: list[Proofs] = []

    def taken(self) -> Proofs:
        """A copy, to be given back. (One that is not, is forgotten with all that it knows.)"""
        try:
            return self._idle.pop()
        except IndexError:
            return _nothing_proved(self._n_rows)

    def begun(self) -> Proofs:
        """What a new product takes: what was given up in another language has another chance. (One
        that was given up where it is not hopeless can cost seconds.)"""
        proofs = self.taken()
        proofs.shown[proofs.given_up] = 0
        proofs.given_up[:] = False
        return proofs

    def give_back(self, proofs: Proofs) -> None:
        """The one that was used last is the next that is taken."""
        self._idle.append(proofs)


def _nothing_proved(n_rows: int) -> Proofs:
    id_, after = np.zeros((2, _WITNESSES), dtype=np.int32)
    return Proofs(
        given_up=np.zeros(256, dtype=bool),
        shown=np.zeros((256, *SHOWN), dtype=np.int32),
        covers=np.full((n_rows, *_COVERS), -1, dtype=np.int32),
        witnesses=Witnesses(np.full(_WITNESSES, EMPTY, dtype=np.int64), id_, after),
    )


def with_room_for(proofs: Proofs, n_sets: int) -> Proofs:
    """The same, of so many sets at least."""
    if n_sets <= len(proofs.given_up):
        return proofs
    given_up, shown = (resized(array, 2 * n_sets) for array in proofs[:2])
    return proofs._replace(given_up=given_up, shown=shown)


def resized(array: np.ndarray, size: int, fill: int = 0) -> np.ndarray:
    """A larger one that begins with it; what is new is `fill`."""
    shape = size, *array.shape[1:]
    # Pages of zeros that nobody writes to take no time, and no memory.
    bigger = np.full(shape, fill, array.dtype) if fill else np.zeros(shape, array.dtype)
    check()
    bigger[: len(array)] = array
    return bigger
