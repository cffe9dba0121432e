"""Text filters: automata over characters that accept the texts that a normalizer does not change.

A filter is given by functions over labels: `labels[c]` is the label of code point c, and `follow`
is the transition function. Its reachable states are tabulated (some hundred; a minimal table has
one less), and labels with equal transitions become one class. The product of several filters runs
over the atoms of an alphabet, and holds only the reachable pairs of states.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from bpe_automata._budget import check, check_bytes
from bpe_automata._storage import checked_load, store_arrays
from bpe_automata.errors import BudgetExceededError
from bpe_automata.tokenizer.alphabet import LAST_CODE_POINT, Ranges, inside

State = TypeVar("State", bound=Hashable)
DEAD = -1
N_CODE_POINTS = LAST_CODE_POINT + 1
MOST_STATES = 4096
TABLE = "the normalizers' table"


@dataclass(frozen=True, eq=False)
class TableFilter:
    """classes: disjoint; table: int32 [n_states, n_classes + 1], the transitions, the last column
    for characters in no class, -1 for dead; accepting: bool [n_states]. State 0 is the start."""

    classes: tuple[Ranges, ...]
    table: np.ndarray
    accepting: np.ndarray


def tabulate(
    labels: np.ndarray,
    start: State,
    follow: Callable[[State, int], State | None],
    ends: Callable[[State], bool],
) -> TableFilter:
    """The filter of the automaton that starts in `start`; `labels`: int32 [0x110000],
    numbered from 0 without gaps. Raises BudgetExceededError over `MOST_STATES` states."""
    n_labels = int(labels.max()) + 1
    numbers, order, rows = {start: 0}, [start], []
    for state in order:  # grows while we go
        check()
        row = []
        for label in range(n_labels):
            after = follow(state, label)
            if after is not None and after not in numbers:
                numbers[after] = len(order)
                order.append(after)
            row.append(DEAD if after is None else numbers[after])
        rows.append(row)
        if len(order) > MOST_STATES:
            raise BudgetExceededError(
                "states of a normalizer's filter", MOST_STATES, "its pattern is too intricate"
            )
    accepting = np.array([ends(state) for state in order])
    return _with_merged_classes(labels, np.array(rows, dtype=np.int32), accepting)


def _with_merged_classes(
    labels: np.ndarray, table: np.ndarray, accepting: np.ndarray
) -> TableFilter:
    """Labels with equal columns become one class; the largest class is the unnamed last one."""
    columns, merged = np.unique(table, axis=1, return_inverse=True)
    column_of = merged.ravel()[labels]
    usual = int(np.bincount(column_of).argmax())
    others = [k for k in range(columns.shape[1]) if k != usual]
    classes = ranges_of(column_of, others)
    return TableFilter(classes, np.ascontiguousarray(columns[:, [*others, usual]]), accepting)


def ranges_of(numbers: np.ndarray, wanted: list[int]) -> tuple[Ranges, ...]:
    """For each wanted number the code points that have it; `numbers`: int [0x110000]."""
    cuts = np.concatenate([[0], np.flatnonzero(np.diff(numbers)) + 1, [len(numbers)]])
    value = numbers[cuts[:-1]]
    pairs = np.column_stack([cuts[:-1], cuts[1:]]).astype(np.int32)
    return tuple(pairs[value == k] for k in wanted)


def label_by(keys: list[np.ndarray]) -> np.ndarray:
    """int32 [0x110000]: equal where all `keys` (bool or int [0x110000]) are equal."""
    changes = np.zeros(N_CODE_POINTS, dtype=bool)
    changes[0] = True
    for key in keys:
        changes[1:] |= key[1:] != key[:-1]
    begins = np.flatnonzero(changes)  # of runs: there are a thousand times more code points
    code = np.zeros(len(begins), dtype=np.int64)
    for key in keys:
        each = key[begins]
        _, code = np.unique(code * (int(each.max()) + 1) + each, return_inverse=True)
    labels = code.ravel().astype(np.int32)
    return np.repeat(labels, np.diff(begins, append=N_CODE_POINTS))


def mask_of(ranges: Ranges) -> np.ndarray:
    """bool [0x110000]: which code points are in the ranges."""
    change = np.zeros(N_CODE_POINTS + 1, dtype=np.int8)
    change[ranges[:, 0]] += 1
    change[ranges[:, 1]] -= 1
    return np.cumsum(change[:-1], dtype=np.int8).astype(bool)


# ---------------------------------------------------------------- stored on disk


def stored(key: str, build: Callable[[], TableFilter]) -> TableFilter:
    """The filter stored under `key`; if there is none, that of `build`, which is stored now."""
    found = checked_load("filter", key, "", _unpacked)
    if found is not None:
        return found
    made = build()
    classes = {f"class {k}": ranges for k, ranges in enumerate(made.classes)}
    store_arrays("filter", key, "", {"table": made.table, "accepting": made.accepting, **classes})
    return made


def _unpacked(arrays: dict[str, np.ndarray]) -> TableFilter:
    """The filter of stored arrays. These are copied, so that the file is not kept open."""
    own = {name: array.copy() for name, array in arrays.items()}
    classes = tuple(own[f"class {k}"] for k in range(own["table"].shape[1] - 1))
    return TableFilter(classes, own["table"], own["accepting"])


# ---------------------------------------------------------------- products


class FilterProduct(NamedTuple):
    """next: int64 [n, n_atoms], the transitions, -1 for dead; ends: bool [n], accepting states.
    State 0 is the start."""

    next: np.ndarray
    ends: np.ndarray


def product(filters: tuple[TableFilter, ...], rows: np.ndarray) -> FilterProduct:
    """The filter of what all filters accept; every state is reachable. rows: bool [n_classes,
    n_atoms], which atoms are in the classes of the filters, one filter after the other. Raises
    BudgetExceededError."""
    columns, first = np.zeros((len(filters) + 1, rows.shape[1]), dtype=np.int64), 0
    for filter_, own in zip(filters, columns, strict=False):
        own[:] = _columns(rows[first : first + len(filter_.classes)])
        first += len(filter_.classes)
    distinct, atom = np.unique(columns, axis=1, return_inverse=True)
    made = FilterProduct(np.zeros((1, distinct.shape[1]), dtype=np.int64), np.array([True]))
    for filter_, own in zip(filters, distinct, strict=False):
        made = _crossed(made, filter_, own)
    check_bytes(8 * len(made.next) * rows.shape[1], TABLE)
    return made._replace(next=made.next[:, atom.ravel()])


def classes_of(filters: tuple[TableFilter, ...], points: np.ndarray) -> np.ndarray:
    """bool [n_classes, n]: which of the code points are in each class, the `rows` of `product`."""
    rows = [inside(ranges, points) for filter_ in filters for ranges in filter_.classes]
    return np.array(rows, dtype=bool).reshape(len(rows), len(points))


def _crossed(one: FilterProduct, other: TableFilter, columns: np.ndarray) -> FilterProduct:
    """The product of both, with only the reachable pairs. columns: int [n], the column of `other`
    that belongs to each column of `one`. Raises BudgetExceededError."""
    n = len(other.table)
    states, seen = np.zeros(1, dtype=np.int64), {0}  # the pair (a, b) is a * n + b
    levels, tables = [states], []
    while len(states):
        check()
        check_bytes(32 * len(seen) * len(columns), TABLE)
        a, b = one.next[states // n], other.table[(states % n)[:, None], columns]
        tables.append(np.where((a == DEAD) | (b == DEAD), DEAD, a * n + b))
        reached = np.unique(tables[-1]).tolist()
        states = np.array([s for s in reached if s != DEAD and s not in seen], dtype=np.int64)
        seen.update(states.tolist())
        levels.append(states)
    pairs = np.concatenate(levels)
    ends = one.ends[pairs // n] & other.accepting[pairs % n]
    return FilterProduct(numbered(pairs, np.concatenate(tables)), ends)


def numbered(listed: np.ndarray, states: np.ndarray) -> np.ndarray:
    """int64: the index of each state in `listed`, which holds all of them; -1 for -1."""
    order = np.argsort(listed)
    indices = order[np.minimum(np.searchsorted(listed[order], states), len(order) - 1)]
    return np.where(states < 0, DEAD, indices)


def _columns(rows: np.ndarray) -> np.ndarray:
    """The column of each atom; an atom in no class has the last one."""
    columns = np.full(rows.shape[1], len(rows))
    for k, row in enumerate(rows):
        columns[row] = k
    return columns
