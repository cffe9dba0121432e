"""Relevance: which ids keep acceptance within reach, exactly and only where visited.

Whether acceptance can be reached after an id r depends on where r leads, a configuration c = (state
pair, set), and on r itself only through the pairs that r forbids. If acceptance can be reached
through a boundary right at c, or the text can end there, every r is relevant. Otherwise the next id
n stands in the same pretoken, and

    dead(c) = { r : every n that leads on from c is forbidden after r }

    n leads on from c  iff  n leads to a configuration where n is not dead       (least fixpoint)

The ids that lead on are a least fixpoint, so the dead sets are the greatest:
dead(c) is the intersection, over the n that lead on, of the ids that forbid n; all ids,
where none leads on. A few n nearly always make it empty; then the rest of c is never looked at.

Most ids are decided before that, by a remembered id that may follow them (`_kernels.masks`,
`_kernels.leading_ids`); what is left is settled by `_kernels.dead_sets`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata._constructions.geometry import Geometry
from bpe_automata._constructions.product_tables import ProductTables
from bpe_automata._kernels.bits import differing
from bpe_automata._kernels.product import SET_BITS, configuration_key
from bpe_automata._kernels.settled import NOTHING, UNSETTLED, settled_at
from bpe_automata._sharing import BoundedMemo, locked

Configuration = tuple[int, int]


class Readable(NamedTuple):
    """free, bound: packed int32 ids, those with and without a boundary at the joint."""

    free: np.ndarray
    bound: np.ndarray


class _Difference(NamedTuple):
    """Readable ids, free and then bound ones, as what differs from others: where, of the fewest
    bits that number all words; words: int32."""

    base: np.ndarray
    where: np.ndarray
    words: np.ndarray


_NOTHING = np.empty((2, 0), dtype=np.int32)


def _written_out(kept: _Difference) -> np.ndarray:
    both = kept.base.copy()
    both[kept.where] = kept.words
    return both


class Relevance:
    """Readable ids and dead sets of one product, memoised; for any number of threads."""

    def __init__(self, tables: ProductTables, geometry: Geometry) -> None:
        self._tables, self.lock, self._n_words = tables, tables.lock, geometry.n_words
        # Most sets of readable ids differ little from the empty one, or a full one that many share.
        self._rows: BoundedMemo[Configuration, _Difference] = BoundedMemo(2 * 4 * geometry.n_words)

    def readable(self, state_pair: int, number: int) -> Readable:
        """The ids that can be read at a configuration and are relevant there; new arrays. number:
        of the hypothesis set."""
        found = self._rows.get((state_pair, number))
        both = self._new_row((state_pair, number)) if found is None else _written_out(found)
        return Readable(both[: self._n_words], both[self._n_words :])

    def holds(self, state_pair: int, number: int, token: int) -> tuple[bool, bool]:
        """Is an id readable at a configuration, as a free one, as a bound one?"""
        kept = self._rows.get((state_pair, number))
        if kept is None:
            kept = _Difference(self._new_row((state_pair, number)), *_NOTHING)
        base, where, words = kept
        found = []
        for word in (token >> 5, self._n_words + (token >> 5)):
            at = int(where.searchsorted(word))
            differs = at < len(where) and where[at] == word
            found.append(bool((words[at] if differs else base[word]) >> (token & 31) & 1))
        return found[0], found[1]

    @locked
    def _new_row(self, configuration: Configuration) -> np.ndarray:
        """Free and then bound ids, packed, and kept."""
        found = self._rows.get(configuration)  # by another thread meanwhile
        if found is not None:
            return _written_out(found)
        both, open_, base = self._tables.readable(*configuration)
        if len(open_):
            self._tables.add_lively(open_, both[: self._n_words], both[self._n_words :])
        where, words = differing(both, base)
        where = where.astype(np.min_scalar_type(len(both)))
        few = 2 * len(where) < len(both)
        self._rows.put(
            configuration,
            _Difference(base, where, words) if few else _Difference(both.copy(), *_NOTHING),
        )
        return both

    @locked
    def dead(self, configuration: Configuration) -> np.ndarray | None:
        """The ids that are irrelevant when they lead to this configuration, None if none is: a set
        of positions (see `_kernels.geometry`), not to be written to."""
        at = self._at(configuration)
        return None if at == NOTHING else self._tables.settled.dead.sets[at]

    @locked
    def any_dead(self, configuration: Configuration) -> bool:
        """Is any id dead at this configuration?"""
        return self._at(configuration) != NOTHING

    def _at(self, configuration: Configuration) -> int:
        """NOTHING, or the index of its dead set."""
        key = int(configuration_key(*configuration))
        at = int(settled_at(key, self._tables.settled))
        if at == UNSETTLED:
            self._tables.settle(np.array([key]))
            at = int(settled_at(key, self._tables.settled))
        return at

    @locked
    def settle(self, state_pairs: np.ndarray, numbers: np.ndarray) -> None:
        """Find what is dead at many configurations, int64."""
        self._tables.settle(state_pairs << SET_BITS | numbers)
