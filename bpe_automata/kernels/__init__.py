"""Floor 0: arrays in, arrays out. Every hot loop of the package, compiled by numba.

Kernels know nothing of tokenizers or regexes; the floors above give them their arrays. They are
cached on disk, so only the first run on a machine compiles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numba

F = TypeVar("F", bound=Callable[..., object])


def kernel(function: F) -> F:
    """Compile without Python objects, releasing the GIL, cached on disk."""
    return numba.njit(function, cache=True, nogil=True)
