"""The min-rank loop of byte pair encoding, and the derivation of every token by it.

Source: the algorithm that `tokenizers` runs: while some adjacent pair is in the merge table, merge
the leftmost pair of least rank. For few symbols that pair is looked for among all; for many, which
would take quadratic time, the pairs lie in a heap, as (rank << 32 | position of the left part).
Merges are rows of a table; several of them may have the same rank.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bpe_automata._kernels import inner, jit
from bpe_automata._kernels.hashing import longer, look_up, table_size
from bpe_automata._kernels.watch import poll

NO_RANK = 2**31 - 1
_FEW = 64  # symbols


class Merges(NamedTuple):
    """slots int64, values int32: hash table from left * n_ids + right to the row of a merge; made,
    rank int32 [rows]: the token that it makes, and its rank; n_ids."""

    slots: np.ndarray
    values: np.ndarray
    made: np.ndarray
    rank: np.ndarray
    n_ids: int


@inner
def _row(m: Merges, left: int, right: int) -> int:
    return look_up(m.slots, m.values, left * m.n_ids + right)


@inner
def _rank(m: Merges, left: int, right: int) -> int:
    row = _row(m, left, right)
    return NO_RANK if row < 0 else m.rank[row]


@jit
def merge_all(
    symbols: np.ndarray, ranks: np.ndarray, n: int, m: Merges, watch: np.ndarray
) -> tuple[int, int, int, int]:
    """Encode symbols[:n] in place; ranks is scratch of the same length.

    Returns (number of symbols left, last merge's left part, right part, row); -1s if none. Each
    turn makes one symbol out of two.
    """
    if n > _FEW:
        return _merge_many(symbols, ranks, n, m, watch)
    last_left, last_right, row = -1, -1, -1
    for i in range(n - 1):
        ranks[i] = _rank(m, symbols[i], symbols[i + 1])
    while n > 1:
        best = 0
        for i in range(1, n - 1):
            if ranks[i] < ranks[best]:
                best = i
        if ranks[best] == NO_RANK:
            break
        last_left, last_right = symbols[best], symbols[best + 1]
        row = _row(m, last_left, last_right)
        symbols[best] = m.made[row]
        for i in range(best + 1, n - 1):
            symbols[i] = symbols[i + 1]
            ranks[i] = ranks[i + 1]
        n -= 1
        if best > 0:
            ranks[best - 1] = _rank(m, symbols[best - 1], symbols[best])
        if best < n - 1:
            ranks[best] = _rank(m, symbols[best], symbols[best + 1])
    return n, last_left, last_right, row


@inner
def _merge_many(
    symbols: np.ndarray, ranks: np.ndarray, n: int, m: Merges, watch: np.ndarray
) -> tuple[int, int, int, int]:
    """The same in O(n log n): symbols are linked to their neighbours, and a pair of the heap counts
    while its rank is still that of its position. Each merge adds two pairs at most, so there are
    fewer than 3n of them, and as many turns."""
    last_left, last_right, row = -1, -1, -1
    heap = np.empty(3 * n, np.int64)
    size: Any = np.int64(0)  # not a literal: see `determinize`
    before, after = np.arange(-1, n - 1), np.arange(1, n + 1)
    ranks[n - 1] = NO_RANK
    for i in range(n - 1):
        if poll(watch):
            break
        ranks[i] = _rank(m, symbols[i], symbols[i + 1])
        size = _put(heap, size, ranks[i], i)
    while size > 0 and not poll(watch):
        rank, at = heap[0] >> 32, heap[0] & 0xFFFFFFFF
        size = _drop_least(heap, size)
        if ranks[at] != rank:
            continue
        gone = after[at]
        last_left, last_right = symbols[at], symbols[gone]
        row = _row(m, last_left, last_right)
        symbols[at], symbols[gone] = m.made[row], -1
        ranks[at] = ranks[gone] = NO_RANK
        after[at] = after[gone]
        if after[at] < n:
            before[after[at]] = at
            ranks[at] = _rank(m, symbols[at], symbols[after[at]])
            size = _put(heap, size, ranks[at], at)
        if before[at] >= 0:
            left = before[at]
            ranks[left] = _rank(m, symbols[left], symbols[at])
            size = _put(heap, size, ranks[left], left)
    count = 0
    for i in range(n):
        if symbols[i] >= 0:
            symbols[count] = symbols[i]
            count += 1
    return count, last_left, last_right, row


@inner
def _put(heap: np.ndarray, size: int, rank: int, position: int) -> int:
    """Add a pair to the heap, if it has a rank: the new size."""
    if rank == NO_RANK:
        return size
    key, at = rank << 32 | position, size
    while at > 0 and heap[(at - 1) >> 1] > key:
        heap[at] = heap[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at] = key
    return size + 1


@inner
def _drop_least(heap: np.ndarray, size: int) -> int:
    """Take the least pair out of the heap: the new size."""
    size -= 1
    key, at, child = heap[size], 0, 1
    while child < size:
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= key:
            break
        heap[at] = heap[child]
        at, child = child, 2 * child + 1
    heap[at] = key
    return size


@jit
def derive_all(
    starts: np.ndarray, symbols: np.ndarray, m: Merges, watch: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Run BPE on each token's own symbols: symbols[starts[i]:starts[i+1]], int32.

    Returns (left, right, row, reachable), each of length n_ids: int32 parts and row of the last
    merge (-1 for a token that is one symbol), and whether the run ends in the token itself. A token
    without symbols is unreachable.
    """
    n_ids = len(starts) - 1
    left = np.full(n_ids, -1, np.int32)
    right = np.full(n_ids, -1, np.int32)
    row = np.full(n_ids, -1, np.int32)
    reachable = np.zeros(n_ids, np.bool_)
    longest = 1
    for token in range(n_ids):
        longest = max(longest, starts[token + 1] - starts[token])
    work = np.empty(longest, np.int32)
    ranks = np.empty(longest, np.int32)
    for token in range(n_ids):
        n = starts[token + 1] - starts[token]
        if n == 0 or poll(watch):
            continue
        for i in range(n):
            work[i] = symbols[starts[token] + i]
        n, a, b, last = merge_all(work, ranks, n, m, watch)
        if n == 1 and work[0] == token:
            left[token], right[token], row[token] = a, b, last
            reachable[token] = True
    return left, right, row, reachable


# All splits of all tokens into two tokens, by hashing: arrays in, arrays out.

_OFFSET, _PRIME = 1469598103934665603, 1099511628211  # FNV-1a, 64 bits (as wrapping int64)


@jit
def find_splits(data: np.ndarray, start: np.ndarray, watch: np.ndarray) -> np.ndarray:
    """int32 [m, 3], (left, right, made) as indices of tokens; token i is data[start[i]:start[i+1]]
    (uint8; int64 [n + 1]), all different. Ordered by token, then by the length of the left part."""
    n_tokens = start.size - 1
    size = table_size(n_tokens + 1)
    slots = np.full(size, -1, np.int32)
    for token in range(n_tokens):
        at = _hash(data, start[token], start[token + 1]) & (size - 1)
        while slots[at] >= 0:
            at = (at + 1) & (size - 1)
        slots[at] = token
    rows = np.empty(3 * 1024, np.int32)
    count = 0
    for token in range(n_tokens):
        low, high = start[token], start[token + 1]
        hashed = np.int64(_OFFSET)
        for cut in range(low + 1, high):
            if poll(watch):
                break
            hashed = (hashed ^ np.int64(data[cut - 1])) * _PRIME
            left = _find(slots, data, start, low, cut, _mixed(hashed))
            if left < 0:
                continue
            right = _find(slots, data, start, cut, high, _hash(data, cut, high))
            if right < 0:
                continue
            if count + 3 > rows.size:
                rows = longer(rows, 2 * rows.size)
            rows[count], rows[count + 1], rows[count + 2] = left, right, token
            count += 3
    return rows[:count].copy().reshape(-1, 3)


@inner
def _hash(data: np.ndarray, low: int, high: int) -> Any:
    hashed = np.int64(_OFFSET)
    for i in range(low, high):
        hashed = (hashed ^ np.int64(data[i])) * _PRIME
    return _mixed(hashed)


@inner
def _mixed(hashed: Any) -> Any:
    """The high bits of the product, which depend on all bytes, brought down."""
    return hashed ^ (hashed >> 29)


@inner
def _find(
    slots: np.ndarray, data: np.ndarray, start: np.ndarray, low: int, high: int, hashed: Any
) -> int:
    """The token that spells data[low:high], -1 if there is none."""
    at = hashed & (slots.size - 1)
    while slots[at] >= 0:
        token = slots[at]
        begin = start[token]
        if start[token + 1] - begin == high - low:
            same = True
            for i in range(high - low):
                if data[begin + i] != data[low + i]:
                    same = False
                    break
            if same:
                return token
        at = (at + 1) & (slots.size - 1)
    return -1
