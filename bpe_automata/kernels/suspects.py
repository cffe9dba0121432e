"""Narrowing down which ids are dead at a node: see `constructions.relevance`."""

from __future__ import annotations

import numpy as np

from bpe_automata.kernels import kernel
from bpe_automata.kernels.geometry import clear_intervals


@kernel
def keep_forbidders(
    tokens: np.ndarray,
    suspects: np.ndarray,
    part: np.ndarray,
    birth: np.ndarray,
    by_part: np.ndarray,
    merges: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    order: np.ndarray,
) -> int:
    """Intersect the packed `suspects`, in place, with the ids that forbid each of `tokens` after
    them, until nothing is left. Arguments as of `clear_intervals`, for the left spines.

    Returns how many of the tokens were used.
    """
    allowed = np.empty(len(suspects), np.int32)
    for i in range(len(tokens)):
        allowed[:] = -1
        clear_intervals(tokens[i], part, birth, 1, by_part, merges, low, high, order, allowed)
        left = False
        for w in range(len(suspects)):
            suspects[w] &= ~allowed[w]
            left = left or suspects[w] != 0
        if not left:
            return i + 1
    return len(tokens)
