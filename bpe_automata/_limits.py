"""How much fits into the arrays that kernels work on, which nothing checks there.

What is numbered, counted or pointed into by an int32 stays below `NUMBERS`; what is packed into one
int64 has limits of its own, which stand with the packing. Each is checked once, where the arrays
are made.
"""

from __future__ import annotations

import math
import mmap
from typing import Any

import numpy as np

from bpe_automata.errors import BudgetExceededError

NUMBERS = 2**31 - 1
"""The most that an int32 can number: states, state pairs, ids, bytes of all tokens, cells of a
table."""


def check_fits(resource: str, count: int, limit: int, advice: str) -> None:
    """Raises BudgetExceededError if `count` is over the limit; `advice`: what to do then."""
    if count > limit:
        raise BudgetExceededError(resource, limit, f"there are {count:,}, {advice}")


_LARGE, _ALIGNMENT = 1 << 17, 64
_SEPARATE = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)


def untouched(*wanted: tuple[tuple[int, ...] | int, Any]) -> list[np.ndarray]:
    """`np.zeros` of each shape and dtype, for arrays of which most is never written to. Large ones
    take the pages of memory that are, and no time but for one call of the system, some 5 us for all
    of them (numpy asks for pages of 2 MB, and malloc clears what it has had before)."""
    offsets, end = [], 0
    for shape, dtype in wanted:
        offsets.append(end)
        size = math.prod((shape,) if isinstance(shape, int) else shape) * np.dtype(dtype).itemsize
        end += size + -size % _ALIGNMENT
    if end < _LARGE or not _SEPARATE:
        return [np.zeros(shape, dtype) for shape, dtype in wanted]
    memory = mmap.mmap(-1, end, flags=_SEPARATE)
    pairs = zip(wanted, offsets, strict=True)
    return [np.ndarray(shape, dtype, memory, offset) for (shape, dtype), offset in pairs]
