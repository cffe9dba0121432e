"""Which collapsed vocabulary goes with which states of a DFA: see `kernels.collapsed`.

A collapsed vocabulary depends on the tokenizer and on the classes of bytes, and serves all DFAs
with a region that has these classes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.constructions.memo import BoundedMemo
from bpe_automata.kernels.collapsed import Collapsed, collapse, full_row, n_readable, partition
from bpe_automata.kernels.product_row import Nodes
from bpe_automata.kernels.trie import Trie
from bpe_automata.kernels.watch import watched
from bpe_automata.sharing import Lock, locked

_MOST = 32  # one of 128,000 ids takes some 0.8 MB
_MOST_ASKED = 4096
_WALKS = 2  # over all of the trie, that a collapsed one is worth
_LEAST = 16  # bytes that a state must read: else a walk over the trie is short
_UNKNOWN, _NARROW = -1, -2
_NONE = np.empty(0, dtype=np.int32)
NOTHING = Collapsed(
    classes=_NONE.astype(np.int16),
    label=_NONE.astype(np.uint8),
    parent=_NONE,
    skip=_NONE,
    node=_NONE,
    kind=_NONE,
    text=_NONE,
    start=np.zeros(1, dtype=np.int32),
    ids=_NONE,
    left_at=_NONE,
    leaving=_NONE,
    outside=_NONE.astype(np.bool_),
)


class CollapsedVocabularies:
    """Those of one tokenizer, by the classes of bytes; under its lock. To make one costs as much as
    some walks over all of the trie, so the first rows are got by walks, until they have cost as
    much. Those used longest ago are forgotten."""

    def __init__(self, trie: Trie, nodes: Nodes) -> None:
        self._trie = trie
        self._found: dict[bytes, Collapsed] = {}
        self._left: dict[bytes, int] = {}  # rows until it pays
        self._full: BoundedMemo[tuple[int, int], tuple[np.ndarray, np.ndarray]] = BoundedMemo(
            len(trie.start)  # four rows, so that no more than a quarter of the usual is kept
        )
        some = nodes.kind > 0
        both = nodes.kind[some].astype(np.int64) << 32 | (nodes.text[some] + 1)
        pairs, number = np.unique(both, return_inverse=True)
        self._pair = np.full(len(nodes.kind), -1, dtype=np.int32)
        self._pair[some] = number
        self._kinds = (pairs >> 32).astype(np.int32)
        self._texts = (pairs & 0xFFFFFFFF).astype(np.int32) - 1

    def of(self, classes: np.ndarray) -> Collapsed:
        """classes: int16 [256]. NOTHING as long as it does not pay."""
        key = classes.tobytes()
        found = self._found.pop(key, None)
        if found is None:
            left = self._left.get(key)
            if left is None:
                readable = max(1, n_readable(classes, self._trie))
                left = _WALKS * len(self._trie.label) // readable
            if left > 0:
                self._left[key] = left - 1
                return NOTHING
            tables = self._pair, self._kinds, self._texts, self._trie
            found = watched(collapse, classes, *tables)
            self._left.pop(key, None)
            if len(self._left) > _MOST_ASKED:
                self._left.clear()
        self._found[key] = found  # last, as the one used last
        if len(self._found) > _MOST:
            del self._found[next(iter(self._found))]
        return found

    def full_row(
        self, collapsed: Collapsed, number: int, free: np.ndarray, bound: np.ndarray
    ) -> np.ndarray:
        """`kernels.collapsed.full_row` for a hypothesis set and what is after it."""
        key = id(collapsed.ids), number
        found = self._full.get(key)
        if found is None or found[0] is not collapsed.ids:
            row = full_row(collapsed, free, bound, len(self._trie.start) - 1)
            found = collapsed.ids, row
            self._full.put(key, found)
        return found[1]


class Regions:
    """The collapsed vocabularies at the wide states of one DFA, found where they are asked for.

    lock: the tokenizer's; reach: bytes of its longest token; vocabularies: made when they are first
    needed."""

    def __init__(
        self,
        dfa: ByteDFA,
        lock: Lock,
        reach: int,
        vocabularies: Callable[[], CollapsedVocabularies],
    ) -> None:
        self._dfa, self.lock, self._reach, self._vocabularies = dfa, lock, reach, vocabularies
        self._of_state = np.full(dfa.n_states, _UNKNOWN, dtype=np.int32)
        self._classes: list[np.ndarray] = []
        self._outside: dict[int, np.ndarray] = {}  # by state, where there is any
        self._level = np.full(0, -1, dtype=np.int32)
        self._bytes_to = np.zeros(0, dtype=np.int64)

    @locked
    def at(self, state: int) -> Collapsed:
        """The vocabulary as a DFA state tells its bytes apart, or NOTHING."""
        found = int(self._of_state[state])
        if found == _UNKNOWN:
            found = self._find(state)
        vocabulary = NOTHING if found < 0 else self._vocabularies().of(self._classes[found])
        if vocabulary is not NOTHING and state in self._outside:
            return vocabulary._replace(outside=self._outside[state])
        return vocabulary

    def _find(self, state: int) -> int:
        dfa = self._dfa
        if np.count_nonzero(dfa.trans[state, dfa.byte_class]) < _LEAST:
            self._of_state[state] = _NARROW
            return _NARROW
        if not len(self._level):
            self._level = np.full(dfa.n_states, -1, dtype=np.int32)
            self._bytes_to = np.zeros(dfa.n_states, dtype=np.int64)
        scratch = self._level, self._bytes_to
        classes, outside, region = watched(
            partition, state, self._reach, dfa.trans, dfa.byte_class, *scratch
        )
        if not (classes >= 0).any():
            self._of_state[state] = _NARROW
            return _NARROW
        if outside.any():
            self._outside[state] = outside
        self._classes.append(classes)
        self._of_state[region[self._of_state[region] == _UNKNOWN]] = len(self._classes) - 1
        return len(self._classes) - 1
