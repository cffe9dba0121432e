"""Runs text filters over texts, for tests."""

from __future__ import annotations

import numpy as np

from bpe_automata.tokenizer.filter_table import TableFilter


class Reader:
    """Do all of these filters accept a text?"""

    def __init__(self, filters: tuple[TableFilter, ...]) -> None:
        self.filters = filters
        self.columns = [_columns(made) for made in filters]

    def accepts(self, text: str) -> bool:
        pairs = zip(self.filters, self.columns, strict=True)
        return all(_accepts(made, columns, text) for made, columns in pairs)


def _columns(made: TableFilter) -> np.ndarray:
    columns = np.full(0x110000, -1)
    for number, ranges in enumerate(made.classes):
        for low, high in ranges:
            assert (columns[low:high] == -1).all(), "two classes overlap"
            columns[low:high] = number
    return columns


def _accepts(made: TableFilter, columns: np.ndarray, text: str) -> bool:
    state: int | None = made.start
    for character in text:
        number = int(columns[ord(character)])
        state = made.step(state, frozenset() if number < 0 else frozenset({number}))
        if state is None:
            return False
    return made.ends(state)


def representatives(made: TableFilter) -> list[str]:
    """A character of each class, and one of none."""
    columns = _columns(made)
    firsts = np.unique(columns, return_index=True)[1]
    return [chr(first) for first in firsts.tolist()]
