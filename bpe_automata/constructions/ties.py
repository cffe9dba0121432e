"""Pairs of tokens about which no rectangle is certain: those are tried one by one.

Merges of one *epoch* (see `tokenizer.derivation`) are carried out from left to right, each with the
late ones that it made possible, before the next. So of two of them neither comes first everywhere.
Let (u, v) be a merge of epoch e that could cross the joint of L and R, where L carries u and R
carries v until epoch e at least:

- If a later epoch uses them up, or none, both are still there when epoch e ends. No encoder leaves
  them so: the pair is broken. That is the merge's rectangle.
- If epoch e itself uses up u inside L, or v inside R, it depends on which is farther left, and on
  what they are made of. BPE of both tokens tells (but for the first merge of an epoch with a v that
  epoch e uses up: the joint is farther left, so it is broken, and in the rectangle too).

Epochs of one merge have no such pairs, and most tables have no other epochs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata.errors import ImproperMergeTableError
from bpe_automata.kernels.geometry import merge_intervals
from bpe_automata.kernels.tied_pairs import BY_COLUMN, BY_ROW, EACH, Tried, broken_pairs
from bpe_automata.kernels.watch import watched
from bpe_automata.tokenizer.derivation import Derivation

_MOST_STEPS = 500_000_000


class Forest(NamedTuple):
    """The reachable tokens by one of their parts. start: int32 [n_ids + 1] and children: int32, CSR
    of the tokens that have each as that part, by decreasing birth; position, end, order: as in
    `geometry.Side`."""

    start: np.ndarray
    children: np.ndarray
    position: np.ndarray
    end: np.ndarray
    order: np.ndarray


class Ties(NamedTuple):
    """pairs: int32 [k, 2], the pairs that are broken, but by no rectangle, sorted; ordered: are
    encoders doing the same as carrying out one derivation after the other, as `proper` has them?"""

    pairs: np.ndarray
    ordered: bool


def tied_pairs(
    derivation: Derivation,
    rows: Forest,
    columns: Forest,
    table: tuple[np.ndarray, np.ndarray],
) -> Ties:
    """`rows`, `columns`: by the right part and by the left one; `table`: slots and values of the
    derivations. Raises ImproperMergeTableError where trying all pairs would take too long, and
    BudgetExceededError."""
    d = derivation
    tried = Tried(
        d.left,
        d.right,
        d.birth,
        _numbers(d),
        d.starts,
        d.symbols,
        d.listed,
        *table,
    )
    boxes = _boxes(d, rows, columns)
    pairs, ordered, done = watched(
        broken_pairs, boxes, rows.order, columns.order, _MOST_STEPS, tried
    )
    if not done:
        raise ImproperMergeTableError(
            f"{int(d.late.sum())} merges come before the merges that make their parts, and too "
            "many pairs of tokens would have to be tried to tell which merge comes first in which "
            "text. Put each merge after those that make its parts, or retrain"
        )
    return Ties(np.unique(pairs, axis=0), ordered)


def _numbers(derivation: Derivation) -> np.ndarray:
    """int32 [n_ids]: where the derivation of each token stands in `proper`, -1: nowhere."""
    numbers = np.full(len(derivation.birth), -1, dtype=np.int32)
    numbers[derivation.proper[:, 2]] = np.arange(len(derivation.proper), dtype=np.int32)
    return numbers


def _boxes(derivation: Derivation, rows: Forest, columns: Forest) -> np.ndarray:
    """int64 [n, 6]: the pairs whose joint a merge may cross while its own epoch uses up one of its
    parts inside, as `kernels.tied_pairs.broken_pairs` takes them.

    What happens up to that epoch is the same for all R that carry v beyond it, v itself among them,
    which is the first of its interval: so (L, v) tells for most of them; likewise for u."""
    first = derivation.birth[derivation.proper[:, 2]]
    size = np.bincount(first, minlength=len(first))[first]
    tied = size > 1
    left, right, _ = derivation.proper[tied].T
    row, row_tie, row_end = _carriers(derivation, rows, left, first[tied])
    column, column_tie, column_end = _carriers(derivation, columns, right, first[tied])
    end = (first + size)[tied]
    boxes = [
        (row_tie, row_end, column, column_tie, end, np.full_like(end, BY_ROW)),
        (row, row_tie, column_tie, column_end, end, np.full_like(end, BY_COLUMN)),
        (row_tie, row_end, column_tie, column_end, end, np.full_like(end, EACH)),
    ]
    found = np.concatenate([np.stack(box, axis=1) for box in boxes]).astype(np.int64)
    kept: np.ndarray = found[(found[:, 0] < found[:, 1]) & (found[:, 2] < found[:, 3])]
    return kept


def _carriers(
    derivation: Derivation, forest: Forest, parts: np.ndarray, first: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions (low, tie, high) for each part and the first merge of an epoch: low:high carry the
    part until that epoch at least, and tie:high of them until that epoch only."""
    parts, tree = np.ascontiguousarray(parts), (forest.start, forest.children)
    span = (derivation.birth, forest.position, forest.end)
    low, tie = merge_intervals(parts, first, 0, *tree, *span)
    _, high = merge_intervals(parts, first, 1, *tree, *span)
    return low, tie, high
