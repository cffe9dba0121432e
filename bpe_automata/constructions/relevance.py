"""Relevance: which ids keep acceptance within reach, exactly and only where visited.

Whether acceptance can be reached after an id r depends on where r leads, a node (place, set), and
on r itself only through the pairs that r forbids. If a boundary can come at the node, or the text
can end there, every r is relevant. Otherwise the next id n stands in the same pretoken, and

    dead(node) = { r : every n that leads on from the node is forbidden after r }

    n leads on from the node  iff  n leads to a node where n is not dead       (least fixpoint)

So dead(node) is the intersection, over the n that lead on, of the ids that forbid n. A few n nearly
always make it empty; then the rest of the node is never looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata.constructions.geometry import Geometry
from bpe_automata.constructions.memo import BoundedMemo
from bpe_automata.constructions.product_tables import ProductTables
from bpe_automata.kernels.settled import NOTHING, UNSETTLED, settled_at
from bpe_automata.kernels.world import SET_BITS, node_key
from bpe_automata.sharing import locked

Node = tuple[int, int]


class Row(NamedTuple):
    """free, bound: packed int32 ids, those with and without a boundary at the joint."""

    free: np.ndarray
    bound: np.ndarray


class Relevance:
    """Rows and dead sets of one product, memoised; for any number of threads."""

    def __init__(self, tables: ProductTables, geometry: Geometry) -> None:
        self._tables, self.lock = tables, tables.lock
        self._rows: BoundedMemo[Node, Row] = BoundedMemo(2 * 4 * geometry.n_words)

    def row(self, place: int, number: int) -> Row:
        """The ids readable at a node that lead to relevant states."""
        found = self._rows.get((place, number))
        return self._new_row((place, number)) if found is None else found

    @locked
    def _new_row(self, node: Node) -> Row:
        found = self._rows.get(node)  # by another thread meanwhile
        if found is None:
            free, bound, open_ = self._tables.row(*node)
            if len(open_):
                self._tables.add_lively(open_, free, bound)
            found = Row(free, bound)
            self._rows.put(node, found)
        return found

    @locked
    def dead(self, node: Node) -> np.ndarray | None:
        """The ids that are irrelevant when they lead to this node, None if none is: a set of places
        (see `kernels.beside`), not to be written to."""
        at = self._at(node)
        return None if at == NOTHING else self._tables.settled.dead.sets[at]

    @locked
    def any_dead(self, node: Node) -> bool:
        """Is any id dead at this node?"""
        return self._at(node) != NOTHING

    def _at(self, node: Node) -> int:
        """NOTHING, or the row of its set."""
        key = int(node_key(*node))
        at = int(settled_at(key, self._tables.settled))
        if at == UNSETTLED:
            self._tables.settle(np.array([key]))
            at = int(settled_at(key, self._tables.settled))
        return at

    @locked
    def settle(self, places: np.ndarray, numbers: np.ndarray) -> None:
        """Find what is dead at many nodes, int64."""
        self._tables.settle(places << SET_BITS | numbers)
