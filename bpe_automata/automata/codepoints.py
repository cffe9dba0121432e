"""Sets of code points, as inversion lists.

    (t0, t1, t2, t3, ...)  means  [t0, t1) + [t2, t3) + ...,   t0 < t1 < t2 < ... <= 0x110000

What a class of a regex engine holds is never described here: the engine itself is asked, by
running the class over a string of all code points.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np

N_CODE_POINTS = 0x110000
Inversion = tuple[int, ...]
EVERYTHING: Inversion = (0, N_CODE_POINTS)
SURROGATES = (0xD800, 0xE000)
_BELOW, _ABOVE = slice(0, SURROGATES[0]), slice(SURROGATES[1], N_CODE_POINTS)


@lru_cache(maxsize=1)
def all_code_points() -> str:
    """The string whose character number c is chr(c), surrogates included (4 MB)."""
    units = np.arange(N_CODE_POINTS, dtype="<u4")
    low, high = (units[part].tobytes().decode("utf-32-le") for part in (_BELOW, _ABOVE))
    return low + "".join(map(chr, range(*SURROGATES))) + high


def runs(engine_pattern: Any) -> Inversion:
    """The code points of the runs that a compiled pattern of `re` or `regex` matches."""
    return tuple(chain.from_iterable(m.span() for m in engine_pattern.finditer(all_code_points())))


def union(sets: Iterable[Inversion]) -> Inversion:
    """The code points that are in one of the sets."""
    ranges = sorted(pair for s in sets for pair in zip(s[::2], s[1::2], strict=True))
    merged: list[int] = []
    for start, end in ranges:
        if merged and start <= merged[-1]:
            merged[-1] = max(merged[-1], end)
        else:
            merged += (start, end)
    return tuple(merged)


def complement(members: Inversion) -> Inversion:
    """The code points that are not in the set."""
    flipped = members[1:] if members and members[0] == 0 else (0, *members)
    if flipped and flipped[-1] == N_CODE_POINTS:
        return flipped[:-1]
    return (*flipped, N_CODE_POINTS)


def without(members: Inversion, removed: Inversion) -> Inversion:
    """The code points of the first set that are not in the second."""
    return complement(union((complement(members), removed)))
