"""Sets of characters as ranges of code points."""

from __future__ import annotations

import numpy as np

LAST_CODE_POINT = 0x10FFFF

Ranges = np.ndarray
"""int32 [n, 2]: half-open ranges of code points, sorted, disjoint, not touching."""


def from_pairs(pairs: list[tuple[int, int]]) -> Ranges:
    """Ranges from half-open pairs that may overlap or touch."""
    merged: list[list[int]] = []
    for low, high in sorted(pairs):
        if merged and low <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], high)
        else:
            merged.append([low, high])
    return np.array(merged, dtype=np.int32).reshape(-1, 2)
