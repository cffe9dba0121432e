"""Pairs of tokens tried one by one: does the order of merges say what BPE does?"""

from __future__ import annotations

import numpy as np

from bpe_automata.kernels import kernel
from bpe_automata.kernels.bpe import merge_all
from bpe_automata.kernels.geometry import breaking_merge


@kernel
def first_wrong(
    boxes: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    birth: np.ndarray,
    starts: np.ndarray,
    symbols: np.ndarray,
    listed: tuple[np.ndarray, np.ndarray, np.ndarray],
    proper: tuple[np.ndarray, np.ndarray],
) -> tuple[int, int]:
    """The first pair (L, R) for which the merges `proper` across the joint and BPE by the merges
    `listed` differ on whether it stays as it is; (-1, -1) if there is none.

    boxes: int64 [n, 4] of positions (row low, high, column low, high); rows, columns: int32,
    position -> token; listed: slots, values, made; proper: slots, values.
    """
    longest = 0
    for token in range(len(starts) - 1):
        longest = max(longest, starts[token + 1] - starts[token])
    work, ranks = np.empty(2 * longest, np.int32), np.empty(2 * longest, np.int32)
    for k in range(len(boxes)):
        for i in range(boxes[k, 0], boxes[k, 1]):
            for j in range(boxes[k, 2], boxes[k, 3]):
                a, b = rows[i], columns[j]
                m = starts[a + 1] - starts[a]
                n = m + starts[b + 1] - starts[b]
                work[:m] = symbols[starts[a] : starts[a + 1]]
                work[m:n] = symbols[starts[b] : starts[b + 1]]
                slots, values, made = listed
                count, _, _, _ = merge_all(work, ranks, n, slots, values, made, len(birth))
                stays = count == 2 and work[0] == a and work[1] == b
                if stays != (breaking_merge(a, b, left, right, birth, proper[0], proper[1]) < 0):
                    return a, b
    return -1, -1
