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
from bpe_automata.constructions.prefixed import PrefixedDfa
from bpe_automata.constructions.product_tables import ProductTables
from bpe_automata.constructions.relevance import Node, Relevance
from bpe_automata.kernels.bits import contained, members
from bpe_automata.kernels.token_walks import states_after, texts_after

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

    def __init__(self, tables: ProductTables, relevance: Relevance, prefixed: PrefixedDfa) -> None:
        self._tables, self._relevance, self._dfa = tables, relevance, prefixed.dfa
        self._canonical = tables.canonical
        self._nodes: BoundedMemo[Node, Leads] = BoundedMemo(
            _BYTES_OF_ID * self._canonical.tokenizer.n_ids
        )

    def of_node(self, place: int, hypotheses: int) -> Leads:
        """The ids of the node, and where they lead."""
        found = self._nodes.get((place, hypotheses))
        if found is None:
            row = self._relevance.row(place, hypotheses)
            ids = members(row.free | row.bound)
            added = np.isin(ids, self._canonical.pipeline.text.ids)
            places = self._places(place, hypotheses, ids)
            found = Leads(ids, added, places, *self._numbers(place, hypotheses, ids))
            self._nodes.put((place, hypotheses), found)
        return found

    def _numbers(
        self, place: int, hypotheses: int, ids: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The set after each id: that with a boundary alone, and its union with the other one."""
        row, sets = self._relevance.row(place, hypotheses), self._canonical.sets
        kind = self._canonical.actions.of_token[ids]
        free, bound = sets.rows(hypotheses)
        by_free = np.where(contained(row.free, ids), free[kind], NONE)
        by_bound = np.where(contained(row.bound, ids), bound[kind], NONE)
        # (numpy's own way with pairs makes another error of an interrupt.)
        both = (by_free.astype(np.int64) + 1) << 32 | (by_bound.astype(np.int64) + 1)
        pairs, which = np.unique(both, return_inverse=True)
        unions = [sets.union((pair >> 32) - 1, (pair & _LOW) - 1) for pair in pairs.tolist()]
        return by_free, np.array(unions, dtype=np.int64)[which]

    def _places(self, place: int, hypotheses: int, ids: np.ndarray) -> np.ndarray:
        """The place after each id that is no added one."""
        canonical, memo, trie = self._canonical, self._tables.memo, self._canonical.trie
        state, text = int(memo.state[place]), int(memo.added[place])
        row, dfa = canonical.sets.sets[hypotheses].row, self._dfa
        tokens = trie.start, trie.data, ids
        places = states_after(dfa.trans, dfa.byte_class, state, *tokens).astype(np.int64)
        if text == 0 and row == 0:
            texts = canonical.actions.text[ids]
        else:
            utf8, text_next = canonical.pipeline.alphabet.utf8, canonical.pipeline.text.next
            texts = texts_after(utf8, text_next, text, row, *tokens)
        some = np.flatnonzero(texts > 0)
        places[some] = self._tables.places(places[some], texts[some])
        return places
