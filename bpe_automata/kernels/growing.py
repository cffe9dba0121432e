"""Arrays that double when they are full."""

from __future__ import annotations

import numpy as np

from bpe_automata.kernels import kernel


@kernel
def grown(array: np.ndarray, count: int) -> np.ndarray:
    if count < len(array):
        return array
    bigger = np.empty(2 * len(array), array.dtype)
    bigger[:count] = array[:count]
    return bigger


@kernel
def grown_rows(array: np.ndarray) -> np.ndarray:
    bigger = np.empty((2 * len(array), array.shape[1]), array.dtype)
    bigger[: len(array)] = array
    return bigger
