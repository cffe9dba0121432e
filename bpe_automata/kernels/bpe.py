"""The min-rank loop of byte pair encoding, and the derivation of every token by it.

Source: the algorithm that `tokenizers` runs: while some adjacent pair is in the merge table, merge
the leftmost pair of least rank.
"""

from __future__ import annotations

import numpy as np

from bpe_automata.kernels import kernel
from bpe_automata.kernels.hashing import look_up

NO_RANK = 2**31 - 1


@kernel
def _rank(slots: np.ndarray, values: np.ndarray, n_ids: int, left: int, right: int) -> int:
    rank = look_up(slots, values, left * n_ids + right)
    return NO_RANK if rank < 0 else rank


@kernel
def merge_all(
    symbols: np.ndarray,
    ranks: np.ndarray,
    n: int,
    slots: np.ndarray,
    values: np.ndarray,
    made: np.ndarray,
    n_ids: int,
) -> tuple[int, int, int, int]:
    """Encode symbols[:n] in place; ranks is scratch of the same length.

    Returns (number of symbols left, last merge's left part, right part, rank); -1s if none.
    """
    last_left, last_right, last_rank = -1, -1, -1
    for i in range(n - 1):
        ranks[i] = _rank(slots, values, n_ids, symbols[i], symbols[i + 1])
    while n > 1:
        best = 0
        for i in range(1, n - 1):
            if ranks[i] < ranks[best]:
                best = i
        rank = ranks[best]
        if rank == NO_RANK:
            break
        last_left, last_right, last_rank = symbols[best], symbols[best + 1], rank
        symbols[best] = made[rank]
        for i in range(best + 1, n - 1):
            symbols[i] = symbols[i + 1]
            ranks[i] = ranks[i + 1]
        n -= 1
        if best > 0:
            ranks[best - 1] = _rank(slots, values, n_ids, symbols[best - 1], symbols[best])
        if best < n - 1:
            ranks[best] = _rank(slots, values, n_ids, symbols[best], symbols[best + 1])
    return n, last_left, last_right, last_rank


@kernel
def derive_all(
    starts: np.ndarray,
    symbols: np.ndarray,
    slots: np.ndarray,
    values: np.ndarray,
    made: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Run BPE on each token's own symbols: symbols[starts[i]:starts[i+1]], int32.

    Returns (left, right, birth, reachable), each of length n_ids: int32 parts and rank of the last
    merge (-1 for a token that is one symbol), and whether the run ends in the token itself. A token
    without symbols is unreachable.
    """
    n_ids = len(starts) - 1
    left = np.full(n_ids, -1, np.int32)
    right = np.full(n_ids, -1, np.int32)
    birth = np.full(n_ids, -1, np.int32)
    reachable = np.zeros(n_ids, np.bool_)
    longest = 1
    for token in range(n_ids):
        longest = max(longest, starts[token + 1] - starts[token])
    work = np.empty(longest, np.int32)
    ranks = np.empty(longest, np.int32)
    for token in range(n_ids):
        n = starts[token + 1] - starts[token]
        if n == 0:
            continue
        work[:n] = symbols[starts[token] : starts[token + 1]]
        n, a, b, rank = merge_all(work, ranks, n, slots, values, made, n_ids)
        if n == 1 and work[0] == token:
            left[token], right[token], birth[token] = a, b, rank
            reachable[token] = True
    return left, right, birth, reachable
