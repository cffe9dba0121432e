"""Where all the ids of one node of CartesianMerge lead, at once.

A node is (place, hypotheses). Where an id leads from a state there depends on the last id only in
one bit, whether the two may stand side by side in one pretoken; so what is known of a node serves
all of its states.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata.constructions.hypothesis_sets import NONE
from bpe_automata.constructions.memo import BoundedMemo
from bpe_automata.constructions.product_tables import ProductTables
from bpe_automata.constructions.relevance import Node, Relevance
from bpe_automata.kernels.bits import contained, members

_BYTES_OF_ID = 29  # in Leads, whose `free` is int32
_LOW = (1 << 32) - 1


class Leads(NamedTuple):
    """ids: int64, ascending, all that can be read at the node, end-of-sequence left out; added:
    bool, the added tokens, of which nothing else is said; places: where each leads; free, bound:
    the hypothesis set after it if it may not, or may, follow the last id without a boundary."""

    ids: np.ndarray
    added: np.ndarray
    places: np.ndarray
    free: np.ndarray
    bound: np.ndarray


class Successors:
    """The successors of the nodes of one product, memoised."""

    def __init__(self, tables: ProductTables, relevance: Relevance) -> None:
        self._tables, self._relevance = tables, relevance
        self._canonical = tables.canonical
        self._nodes: BoundedMemo[Node, Leads] = BoundedMemo(
            _BYTES_OF_ID * self._canonical.tokenizer.n_ids
        )

    def of_node(self, place: int, hypotheses: int) -> Leads:
        """The ids of the node, and where they lead."""
        found = self._nodes.get((place, hypotheses))
        if found is None:
            found = self._led(place, hypotheses)
            self._nodes.put((place, hypotheses), found)
        return found

    def _led(self, place: int, hypotheses: int) -> Leads:
        row, sets = self._relevance.row(place, hypotheses), self._canonical.sets
        ids = members(row.free | row.bound)
        places, kinds, start, grouped = self._tables.edges(place, sets.sets[hypotheses].row)
        # Added tokens are in no group: their own is the last one, of which nothing is said.
        group_of = np.full(self._canonical.tokenizer.n_ids, len(kinds), dtype=np.int32)
        group_of[grouped] = np.repeat(np.arange(len(kinds), dtype=np.int32), np.diff(start))
        group, places = group_of[ids], np.append(places, 0)
        none = np.int32(NONE)
        free, bound = (np.append(after, none) for after in sets.after(hypotheses, kinds))
        by_free = np.where(contained(row.free, ids), free[group], none)
        by_bound = np.where(contained(row.bound, ids), bound[group], none)
        # (numpy's own way with pairs makes another error of an interrupt.)
        both = (by_free.astype(np.int64) + 1) << 32 | (by_bound.astype(np.int64) + 1)
        pairs, which = np.unique(both, return_inverse=True)
        unions = [sets.union((pair >> 32) - 1, (pair & _LOW) - 1) for pair in pairs.tolist()]
        by_bound = np.array(unions, dtype=np.int64)[which]
        return Leads(ids, group == len(kinds), places[group], by_free, by_bound)
