"""The interned hypothesis sets as arrays for the kernels, extended as sets are added."""

from __future__ import annotations

import numpy as np

from bpe_automata.constructions.canonical import CanonicalAutomaton
from bpe_automata.constructions.whole_pieces import MUST_END
from bpe_automata.kernels.world import Sets
from bpe_automata.sharing import locked

_SHOWN = 8, 3  # of each set: texts, and what is said of them


class _Growing:
    """An array that grows. What was handed out of it keeps its length; kernels write into some,
    and what they wrote is in the grown one too."""

    def __init__(self, dtype: type, shape: tuple[int, ...] = ()) -> None:
        self._array: np.ndarray = np.zeros((256, *shape), dtype=dtype)

    def filled(self, count: int, values: list[int] | np.ndarray) -> np.ndarray:
        """The first `count` places, then `values`."""
        needed = count + len(values)
        if needed > len(self._array):
            bigger = np.zeros((2 * needed, *self._array.shape[1:]), dtype=self._array.dtype)
            bigger[:count] = self._array[:count]
            self._array = bigger
        self._array[count:needed] = np.reshape(values, (-1, *self._array.shape[1:]))
        return self._array[:needed]


class SetArrays:
    """Keeps up with `canonical.sets`, for any number of threads."""

    def __init__(self, canonical: CanonicalAutomaton) -> None:
        self.lock = canonical.tokenizer.lock
        self._sets, self._whole = canonical.sets.sets, canonical.whole
        self._ends, self._text_ends = canonical.sets.ends, bool(canonical.pipeline.text.ends[0])
        self._columns = [_Growing(t) for t in (*[np.int32] * 3, bool, bool, np.int32, bool, bool)]
        self._columns.append(_Growing(np.int32, _SHOWN))
        nothing = [column.filled(0, []) for column in self._columns]
        self._arrays = Sets(self._columns[0].filled(0, [0]), *nothing[1:])

    def current(self) -> Sets:
        """The arrays of all sets interned so far."""
        if len(self._arrays.row) < len(self._sets):
            self._extend()
        return self._arrays

    @locked
    def _extend(self) -> None:
        """Interrupted, it has done nothing: what was written so far is written again."""
        done, before = len(self._arrays.row), len(self._arrays.hypothesis)
        fresh = self._sets[done:]
        members = [member for found in fresh for member in found.members]
        sizes = np.cumsum([len(found.members) for found in fresh], dtype=np.int64)
        start, hypothesis, boundary, may_break, may_bind, row, ends, given_up, shown = self._columns
        # Before `given_up`: an interrupt in between forgets texts, not what they stand for.
        texts = shown.filled(done, np.zeros((len(fresh), *_SHOWN), dtype=np.int32))
        self._arrays = Sets(
            start.filled(done + 1, (before + sizes).tolist()),
            hypothesis.filled(before, [h for h, _, _ in members]),
            boundary.filled(before, [b for _, b, _ in members]),
            may_break.filled(before, [self._whole.may_end(w) for _, _, w in members]),
            may_bind.filled(before, [w != MUST_END for _, _, w in members]),
            row.filled(done, [found.row for found in fresh]),
            ends.filled(
                done, [self._text_ends and self._ends(done + k) for k in range(len(fresh))]
            ),
            given_up=given_up.filled(done, [False] * len(fresh)),
            shown=texts,
        )
