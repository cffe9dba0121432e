"""States that stand inside an escape, made in bulk and shared where they act alike."""

from __future__ import annotations

import numpy as np

from bpe_automata.budget import Budget, out_of_memory
from bpe_automata.kernels.minimise import equal_columns
from bpe_automata.kernels.watch import watched

HEX = tuple(f"{digit:x}".encode() for digit in range(16))
HEX_BOTH = tuple(digit if digit.isdigit() else digit + digit.upper() for digit in HEX)
_ROW_BYTES = 64  # at least, of a row of the table that is being made
_CHUNK = 4096  # rows that are put together at a time, before equal ones are merged


class Nodes:
    """Rows of a table under construction, state `first` being the next free one.

    letters: for each of the columns of a row, the bytes that lead there.
    """

    def __init__(self, first: int, budget: Budget) -> None:
        self.count = first
        self._max_rows = budget.max_bytes // _ROW_BYTES
        self._budget = budget
        self._blocks: list[tuple[int, np.ndarray, tuple[bytes, ...]]] = []

    def add(self, targets: np.ndarray, letters: tuple[bytes, ...]) -> np.ndarray:
        """int32 [...], the state for each row of targets int32 [..., len(letters)]; equal rows
        get the same one, and rows of zeros the dead state. Raises BudgetExceededError."""
        shape, rows = targets.shape[:-1], targets.reshape(-1, targets.shape[-1])
        some, which = _distinct(rows)
        live = rows[some].any(axis=1)
        number = np.zeros(len(some), np.int32)
        number[live] = self.count + np.arange(np.count_nonzero(live))
        if live.any():
            self._blocks.append((self.count, rows[some[live]], letters))
            self.count += int(np.count_nonzero(live))
        if self.count > self._max_rows:
            raise out_of_memory(self._budget)
        return number[which].reshape(shape)

    def single(self, targets: np.ndarray, letters: bytes) -> np.ndarray:
        """The states that go to `targets`, int32 [...], by any of the letters."""
        return self.add(targets[..., None], (letters,))

    def told_apart(self) -> np.ndarray:
        """int64 [256, m]: bytes with equal rows lead to the same states from all states here."""
        found = np.full((256, len(self._blocks)), -1)
        for i, (_, rows, letters) in enumerate(self._blocks):
            numbers, _ = watched(equal_columns, rows)
            for number, alike in zip(numbers, letters, strict=True):
                found[list(alike), i] = number
        return found

    def fill(self, table: np.ndarray, column: np.ndarray) -> None:
        """Write all rows. table: int32 [count, k]; column: [256], that of each byte."""
        for first, rows, letters in self._blocks:
            for i, alike in enumerate(letters):
                for letter in alike:
                    table[first : first + len(rows), column[letter]] = rows[:, i]


def _distinct(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the places of some rows, all different, for each row which of them it is equal to)."""
    odd = np.random.default_rng(0).integers(1 << 62, size=rows.shape[1], dtype=np.uint64)
    key = (rows.astype(np.uint64) * (2 * odd + np.uint64(1))).sum(axis=1, dtype=np.uint64)
    _, some, which = np.unique(key, return_index=True, return_inverse=True)
    if not np.array_equal(rows[some[which]], rows):  # two rows with one key
        _, some, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return some, which.ravel()


def chunks(states: np.ndarray) -> list[np.ndarray]:
    """The states in parts, so that no array over all of them and all code points is made."""
    return [states[i : i + _CHUNK] for i in range(0, len(states), _CHUNK)]
