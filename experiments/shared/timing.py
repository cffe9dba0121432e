"""Seconds: measuring them, and being called after some."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
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
