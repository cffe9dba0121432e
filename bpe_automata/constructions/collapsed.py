"""Which collapsed vocabulary goes with which states of a DFA: see `kernels.collapsed`.

A collapsed vocabulary depends on the tokenizer and on the classes of bytes, and serves all DFAs
with a region that has these classes.
"""

from __future__ import annotations

import numpy as np

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.kernels.collapsed import Collapsed, collapse, partition
from bpe_automata.kernels.product_row import Nodes
from bpe_automata.kernels.trie import Trie
from bpe_automata.kernels.watch import watched

_MOST = 64  # of a tokenizer; one of 128,000 ids takes some 0.8 MB
_WIDE = 16  # bytes that a state must read: else a walk over the trie is short
_UNKNOWN, _NARROW = -1, -2
NOTHING = Collapsed(
    np.empty(0, dtype=np.uint8),
    *np.empty((2, 0), dtype=np.int32),
    np.zeros(1, dtype=np.int32),
    *np.empty((2, 0), dtype=np.int32),
    np.zeros(1, dtype=np.int32),
    np.empty(0, dtype=np.int32),
    np.zeros(1, dtype=np.int32),
    np.empty(0, dtype=np.int32),
)


class CollapsedVocabularies:
    """Those of one tokenizer, by the classes of bytes; under its lock. The first row is got by a
    walk over the trie, as most are asked for only once; those used longest ago are forgotten."""

    def __init__(self, trie: Trie, nodes: Nodes) -> None:
        self._trie = trie
        self._found: dict[bytes, Collapsed | None] = {}
        some = nodes.kind > 0
        both = nodes.kind[some].astype(np.int64) << 32 | (nodes.text[some] + 1)
        pairs, number = np.unique(both, return_inverse=True)
        self._pair = np.full(len(nodes.kind), -1, dtype=np.int32)
        self._pair[some] = number
        self._kinds = (pairs >> 32).astype(np.int32)
        self._texts = (pairs & 0xFFFFFFFF).astype(np.int32) - 1

    def of(self, classes: np.ndarray) -> Collapsed:
        """classes: int16 [256]."""
        key = classes.tobytes()
        asked = key in self._found
        found = self._found.pop(key, None)
        if asked and found is None:
            found = collapse(classes, self._pair, self._kinds, self._texts, self._trie)
        self._found[key] = found
        while len(self._found) > _MOST:
            del self._found[next(iter(self._found))]
        return NOTHING if found is None else found


class Regions:
    """The classes of bytes at the wide states of one DFA, found where they are asked for."""

    def __init__(self, dfa: ByteDFA) -> None:
        self._dfa = dfa
        self._of_state = np.full(dfa.n_states, _UNKNOWN, dtype=np.int32)
        self._classes: list[np.ndarray] = []

    def classes(self, state: int) -> np.ndarray | None:
        """int16 [256], see `kernels.collapsed.partition`; None where the state is not wide."""
        found = int(self._of_state[state])
        if found == _UNKNOWN:
            found = self._find(state)
        return None if found == _NARROW else self._classes[found]

    def _find(self, state: int) -> int:
        dfa = self._dfa
        if np.count_nonzero(dfa.trans[state, dfa.byte_class]) < _WIDE:
            self._of_state[state] = _NARROW
            return _NARROW
        classes, region = watched(partition, state, dfa.trans, dfa.byte_class)
        new = region[self._of_state[region] == _UNKNOWN]
        self._classes.append(classes)
        self._of_state[new] = len(self._classes) - 1
        return len(self._classes) - 1
