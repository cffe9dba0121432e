"""Seconds: measuring them, in turns, summing them up, and being called after some."""

from __future__ import annotations

import math
import signal
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


def timed(call: Callable[[], T]) -> tuple[float, T]:
    """(wall seconds, what the call returned)."""
    started = time.perf_counter()
    result = call()
    return time.perf_counter() - started, result


def repeated(call: Callable[[], object], n: int) -> list[float]:
    """Wall seconds of each of `n` calls; what they return is dropped outside of the clock."""
    seconds = []
    for _ in range(n):
        spent, result = timed(call)
        seconds.append(spent)
        del result
    return seconds


def median(seconds: Sequence[float]) -> float:
    """The median; nan of nothing."""
    return statistics.median(seconds) if seconds else float("nan")


def quantile(seconds: Sequence[float], q: float) -> float:
    """The smallest value that at least the share `q` does not exceed; nan of nothing."""
    if not seconds:
        return float("nan")
    ordered = sorted(seconds)
    enough = math.ceil(q * len(ordered) - 1e-9)  # 0.07 * 100 is a little more than 7
    return ordered[max(0, enough - 1)]


@contextmanager
def called_after(seconds: float, handler: Callable[..., Any]) -> Iterator[None]:
    """Inside, SIGALRM comes once, after so many wall seconds; of the main thread."""
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
