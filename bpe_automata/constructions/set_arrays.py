"""The interned hypothesis sets as arrays for the kernels, extended as sets are added."""

from __future__ import annotations

import numpy as np

from bpe_automata.constructions.canonical import CanonicalAutomaton
from bpe_automata.constructions.whole_pieces import MUST_END
from bpe_automata.kernels.world import Sets


class _Growing:
    """A one-dimensional array that is appended to; `view` is what has been filled."""

    def __init__(self, dtype: type) -> None:
        self._array: np.ndarray = np.zeros(256, dtype=dtype)
        self._count = 0

    def extend(self, values: list[int]) -> None:
        needed = self._count + len(values)
        if needed > len(self._array):
            bigger = np.zeros(2 * needed, dtype=self._array.dtype)
            bigger[: self._count] = self._array[: self._count]
            self._array = bigger
        self._array[self._count : needed] = values
        self._count = needed

    @property
    def view(self) -> np.ndarray:
        return self._array[: self._count]


class SetArrays:
    """Keeps up with `canonical.sets`."""

    def __init__(self, canonical: CanonicalAutomaton) -> None:
        self._sets, self._whole = canonical.sets.sets, canonical.whole
        self._columns = [_Growing(t) for t in (np.int32, np.int32, np.int32, bool, bool, np.int32)]
        self._columns[0].extend([0])
        self._done, self._members = 0, 0
        self._arrays: Sets | None = None

    def current(self) -> Sets:
        """The arrays of all sets interned so far."""
        if self._arrays is None or self._done < len(self._sets):
            self._extend()
            self._arrays = Sets(*(column.view for column in self._columns))
        return self._arrays

    def _extend(self) -> None:
        fresh = self._sets[self._done :]
        self._done = len(self._sets)
        start, hypothesis, boundary, may_break, may_bind, row = self._columns
        starts = []
        for found in fresh:
            self._members += len(found.members)
            starts.append(self._members)
        start.extend(starts)
        members = [member for found in fresh for member in found.members]
        hypothesis.extend([h for h, _, _ in members])
        boundary.extend([b for _, b, _ in members])
        may_break.extend([self._whole.may_end(w) for _, _, w in members])
        may_bind.extend([w != MUST_END for _, _, w in members])
        row.extend([found.row for found in fresh])
