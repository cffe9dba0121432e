"""The min-rank loop of byte pair encoding.

Source: the algorithm that `tokenizers` runs: while some adjacent pair is in the merge table, merge
the leftmost pair of least rank. Merges are rows of a table; several of them may have the same rank.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from bpe_automata._kernels import jit
from bpe_automata._kernels.hashing import look_up
from bpe_automata._kernels.watch import poll


class Merges(NamedTuple):
    """slots int64, values int32: hash table from left * n_ids + right to the row of a merge; made,
    rank int32 [rows]: the token that it makes, and its rank; n_ids."""

    slots: np.ndarray
    values: np.ndarray
    made: np.ndarray
    rank: np.ndarray
    n_ids: int


@jit
def merge_each(
    starts: np.ndarray, symbols: np.ndarray, m: Merges, watch: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Run BPE on each of the pretokens symbols[starts[k]:starts[k + 1]], int32, in place, in
    O(n log n) for n symbols.

    Returns (size, left, right, row), int32, of each pretoken: how many symbols are left of it, at
    its beginning, then its last merge: the parts and the row, -1 if there was none.

    Symbols are linked to their neighbours, and pairs lie in a heap, as rank << 32 | position of the
    left part; a pair of the heap counts while its rank is still that of its position.
    """
    n_texts, longest = len(starts) - 1, np.int64(0)
    size, row = np.zeros(n_texts, np.int32), np.empty(n_texts, np.int32)
    left, right = np.empty(n_texts, np.int32), np.empty(n_texts, np.int32)
    for k in range(n_texts):
        left[k] = right[k] = row[k] = -1
        longest = max(longest, np.int64(starts[k + 1] - starts[k]))
    before, after = np.empty(longest, np.int64), np.empty(longest, np.int64)
    rows = np.empty(longest, np.int64)  # of the pair of a symbol and the next one, -1: no merge
    heap = [np.int64(0)]
    heap.clear()
    for k in range(len(size)):
        work, n = symbols[starts[k] : starts[k + 1]], starts[k + 1] - starts[k]
        for i in range(n):
            before[i], after[i], rows[i] = i - 1, i + 1, -1
            if i + 1 < n and not poll(watch):
                rows[i] = look_up(m.slots, m.values, work[i] * m.n_ids + work[i + 1])
                if rows[i] >= 0:
                    heappush(heap, np.int64(m.rank[rows[i]]) << 32 | i)
        while len(heap) > 0 and not poll(watch):
            key = heappop(heap)
            at = key & 0xFFFFFFFF
            if rows[at] < 0 or m.rank[rows[at]] != key >> 32:
                continue
            gone = after[at]
            left[k], right[k], row[k] = work[at], work[gone], rows[at]
            work[at], work[gone] = m.made[rows[at]], -1
            rows[gone], after[at] = -1, after[gone]
            if after[at] < n:
                before[after[at]] = at
            for here in (before[at], at):
                if here < 0:
                    continue
                rows[here] = -1
                if after[here] < n:
                    pair = work[here] * m.n_ids + work[after[here]]
                    rows[here] = look_up(m.slots, m.values, pair)
                if rows[here] >= 0:
                    heappush(heap, np.int64(m.rank[rows[here]]) << 32 | here)
        for i in range(n):
            if work[i] >= 0:
                work[size[k]] = work[i]
                size[k] += 1
    return size, left, right, row
