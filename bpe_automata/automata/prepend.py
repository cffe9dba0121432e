"""{ prefix w : w in L }."""

from __future__ import annotations

import numpy as np

from bpe_automata.automata.dfa import ByteDFA


def prepended(prefix: bytes, dfa: ByteDFA) -> ByteDFA:
    """The automaton that reads `prefix` first. Not minimal if `dfa` loops through its start."""
    if not prefix or dfa.is_empty:
        return dfa
    byte_class, trans = _told_apart(dfa, sorted(set(prefix)))
    n = len(trans)
    rows = np.zeros((len(prefix), trans.shape[1]), dtype=np.int32)
    for k, byte in enumerate(prefix):
        rows[k, byte_class[byte]] = dfa.start if k + 1 == len(prefix) else n + k + 1
    accepting = np.concatenate([dfa.accepting, np.zeros(len(prefix), dtype=bool)])
    return ByteDFA(np.concatenate([trans, rows]), byte_class, accepting, n)


def _told_apart(dfa: ByteDFA, letters: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """(byte_class, trans) in which each of the bytes `letters` has a column of its own."""
    columns = dfa.byte_class.astype(np.int64)
    columns[letters] = dfa.n_classes + np.arange(len(letters))
    _, first, byte_class = np.unique(columns, return_index=True, return_inverse=True)
    trans = np.ascontiguousarray(dfa.trans[:, dfa.byte_class[first]])
    return byte_class.ravel().astype(dfa.byte_class.dtype), trans
