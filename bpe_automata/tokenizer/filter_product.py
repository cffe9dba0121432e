"""Several text filters as one: it accepts what all of them accept.

The two filters of NFC have 54 and 202 states, their product 4,812. It is made a row at a time: that
takes half a second, one call for each state and class would take many.
"""

from __future__ import annotations

import numpy as np

from bpe_automata.errors import BudgetExceededError
from bpe_automata.tokenizer.filter_table import DEAD, N_CODE_POINTS, TableFilter, ranges_of

MOST_STATES = 100_000


def product(filters: tuple[TableFilter, ...]) -> TableFilter:
    """The filter of all of them together; of none, the one that accepts every text. Raises
    BudgetExceededError over `MOST_STATES` states."""
    everything = TableFilter((), np.zeros((1, 1), dtype=np.int32), np.ones(1, dtype=bool))
    whole = filters[0] if filters else everything
    for other in filters[1:]:
        whole = _of_two(whole, other)
    return whole


def _of_two(first: TableFilter, second: TableFilter) -> TableFilter:
    classes, columns = _common_classes(first, second)
    rows, others = first.table[:, columns[0]], second.table[:, columns[1]]
    width = len(others)
    numbers = np.full(len(rows) * width, DEAD, dtype=np.int32)
    numbers[0], order, table = 0, [0], []
    for pair in order:  # grows while we go
        left, right = rows[pair // width], others[pair % width]
        after = np.where((left == DEAD) | (right == DEAD), DEAD, left * width + right)
        met = np.unique(after[after != DEAD])
        new = met[numbers[met] == DEAD]
        numbers[new] = np.arange(len(order), len(order) + len(new))
        order.extend(new.tolist())
        table.append(np.where(after == DEAD, DEAD, numbers[after]))
        if len(order) > MOST_STATES:
            raise BudgetExceededError(
                "states of a normalizer's filters", MOST_STATES, "use fewer normalizer steps"
            )
    pairs = np.array(order)
    accepting = first.accepting[pairs // width] & second.accepting[pairs % width]
    return TableFilter(classes, np.array(table, dtype=np.int32), accepting)


def _common_classes(
    first: TableFilter, second: TableFilter
) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """(the classes of both, int64 [2, n_classes + 1]: the columns that they have in each)."""
    cuts = np.concatenate([[0], *(r.ravel() for f in (first, second) for r in f.classes)])
    starts = np.unique(cuts[cuts < N_CODE_POINTS]).astype(np.int64)
    held = np.stack([_columns(made, starts) for made in (first, second)])
    columns, merged = np.unique(held, axis=1, return_inverse=True)
    lengths = np.diff(np.append(starts, N_CODE_POINTS))
    usual = int(np.bincount(merged.ravel(), weights=lengths).argmax())
    others = [k for k in range(columns.shape[1]) if k != usual]
    classes = ranges_of(np.repeat(merged.ravel(), lengths), others)
    return classes, columns[:, [*others, usual]]


def _columns(made: TableFilter, starts: np.ndarray) -> np.ndarray:
    """The column of each of these code points."""
    columns = np.full(len(starts), len(made.classes))
    for number, ranges in enumerate(made.classes):
        index = np.searchsorted(ranges[:, 0], starts, side="right") - 1
        columns[(index >= 0) & (starts < ranges[index, 1])] = number
    return columns
