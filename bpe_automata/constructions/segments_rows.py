"""Rows of a product that are shared between all places where a segment stands.

    row(node) = row(node of the segment), out of a `SegmentCache`

Nodes that are in no segment get their rows as `relevance` makes them.
"""

from __future__ import annotations

import numpy as np

from bpe_automata.constructions.memo import BoundedMemo
from bpe_automata.constructions.product_tables import ProductTables
from bpe_automata.constructions.relevance import Node, Relevance, Row
from bpe_automata.constructions.segments import Segments
from bpe_automata.constructions.segments_cache import SegmentCache
from bpe_automata.sharing import locked


class SharedRows(Relevance):
    """Rows and dead sets of one product; rows are those of `Relevance`."""

    def __init__(
        self,
        tables: ProductTables,
        added_from: np.ndarray,
        cache: SegmentCache,
        context: str,
    ) -> None:
        """See `Segments` for `added_from` and `context`."""
        super().__init__(tables, tables.canonical.geometry)
        self.cache = cache
        self.segments = Segments(tables, added_from, context)
        self._shared: BoundedMemo[Node, Row] = BoundedMemo(8 * tables.canonical.geometry.n_words)

    def row(self, place: int, number: int) -> Row:
        """The ids readable at a node that lead to relevant states."""
        row = self._shared.get((place, number))
        if row is None:
            row = self._row(place, number)
            self._shared.put((place, number), row)
        return row

    @locked
    def _row(self, place: int, number: int) -> Row:
        node = self.segments.of(place, number)
        if node is None:
            self.cache.count_apart()
            return super().row(place, number)
        row = self.cache.row(node.segment.key, node.at)
        if row is None:
            row = super().row(place, number)
            self.cache.add_row(node.segment.key, node.at, row)
        return row
