"""How much fits into the arrays that kernels work on, which nothing checks there.

What is numbered, counted or pointed into by an int32 stays below `NUMBERS`; what is packed into one
int64 has limits of its own, which stand beside the packing. Each is checked once, where the arrays
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


_LARGE = 1 << 17
_SEPARATE = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)


def untouched(shape: tuple[int, ...] | int, dtype: Any) -> np.ndarray:
    """`np.zeros` of an array of which most is never written to. A large one takes the pages of
    memory that are, and no time (numpy asks the system for pages of 2 MB, and malloc clears what it
    has had before)."""
    sizes = (shape,) if isinstance(shape, int) else shape
    n_bytes = math.prod(sizes) * np.dtype(dtype).itemsize
    if n_bytes < _LARGE or not _SEPARATE:
        return np.zeros(shape, dtype)
    memory = mmap.mmap(-1, n_bytes, flags=_SEPARATE)
    return np.ndarray(sizes, dtype, memory)
