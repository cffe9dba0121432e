"""Merge tables whose ranks are out of order: is the repaired order what encoders do?

`tokenizer.derivation` puts a derivation of too low a rank right after its parts. An encoder does so
too, but position by position: it merges one pair of rank m, then at once the late ones that this
made possible, then goes on to the next pair of rank m. So the two can only differ on a pair (L, R)
where a merge across the joint falls into the same epoch as a merge that uses up one of its parts
inside L or R. Those pairs are few; they are tried one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bpe_automata.errors import ImproperMergeTableError
from bpe_automata.kernels.tied_pairs import first_wrong
from bpe_automata.tokenizer.derivation import Derivation

if TYPE_CHECKING:
    from bpe_automata.constructions.geometry import Geometry, Side

_MOST_PAIRS = 20_000_000


def check_ties(derivation: Derivation, geometry: Geometry) -> None:
    """Raises ImproperMergeTableError for the first pair on which the order matters."""
    epochs = np.unique(derivation.epoch[derivation.late])
    boxes = [
        box
        for merge in np.flatnonzero(np.isin(derivation.epoch, epochs)).tolist()
        for box in _tied(derivation, geometry, merge)
    ]
    if not boxes:
        return
    count = sum((b - a) * (d - c) for a, b, c, d in boxes)
    if count > _MOST_PAIRS:
        raise ImproperMergeTableError(
            f"{int(derivation.late.sum())} merges have a lower rank than the merges that make "
            f"their parts, and {count} pairs of tokens depend on which comes first: too many to "
            "try. Reorder the merges or retrain"
        )
    left, right = first_wrong(
        np.array(boxes, dtype=np.int64),
        geometry.rows.order,
        geometry.columns.order,
        derivation.left,
        derivation.right,
        derivation.birth,
        derivation.starts,
        derivation.symbols,
        (derivation.slots, derivation.values, derivation.made),
        (geometry.slots, geometry.values),
    )
    if left >= 0:
        raise ImproperMergeTableError(
            f"merges of lower rank than those that make their parts: whether tokens {left} and "
            f"{right} may stand side by side depends on the order from left to right, which is not "
            "modelled. Reorder the merges or retrain"
        )


def _tied(
    derivation: Derivation, geometry: Geometry, merge: int
) -> list[tuple[int, int, int, int]]:
    """Boxes of positions (row low, high, column low, high): the pairs whose joint this merge may
    cross while, in the same epoch, a part of it is used up inside."""
    left, right, _ = derivation.proper[merge].tolist()
    row_ties, rows = _carriers(derivation, geometry.rows, left, merge)
    column_ties, columns = _carriers(derivation, geometry.columns, right, merge)
    return [
        *((a, b, c, d) for a, b in row_ties for c, d in columns),
        *((a, b, c, d) for a, b in rows for c, d in column_ties),
    ]


def _carriers(
    derivation: Derivation, side: Side, part: int, merge: int
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Intervals of the tokens that carry `part` until the merge's epoch and no longer, and of those
    that carry it until then at least."""
    epoch = int(derivation.epoch[merge])
    children = np.flatnonzero((side.part == part) & (derivation.birth >= 0))
    ends = derivation.epoch[derivation.birth[children]]
    spans = [(int(side.position[c]), int(side.end[c])) for c in children[ends >= epoch]]
    ties = [(int(side.position[c]), int(side.end[c])) for c in children[ends == epoch]]
    own = int(side.position[part])
    return ties, [(own, own + 1), *spans]
