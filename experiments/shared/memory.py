"""What memory this process has, and how to make the number mean something."""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress
from pathlib import Path


def resident(field: str) -> float | None:
    """Megabytes (10^6 bytes) of a field of /proc/self/status; None where there is none."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith(field))


def give_back() -> None:
    """Freed memory goes back to the system, so that it is not counted, nor found by what follows
    as if it were its own."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc only
    if trim is not None:
        trim(0)


def forget_peak() -> None:
    """Linux can be told to begin the peak of resident memory anew; elsewhere it is of all time."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
