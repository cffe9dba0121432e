"""Time and memory of this process: seconds of calls, and resident megabytes (10^6 bytes)."""

from __future__ import annotations

import ctypes
import gc
import resource
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
_LOOKS = 0.05  # seconds between two looks at the clock


def timed(call: Callable[..., T], *given: Any) -> tuple[float, T]:
    """(seconds, the result of the call). Seconds are the lesser of wall time and of the process's
    CPU time, as others use the machine too."""
    busy, started = time.process_time(), time.perf_counter()
    result = call(*given)
    wall = time.perf_counter() - started
    return min(wall, time.process_time() - busy), result


def spent(call: Callable[..., T], *given: Any) -> tuple[float, T]:
    """`timed` in microseconds."""
    seconds, made = timed(call, *given)
    return round(1e6 * seconds, 2), made


def repeated(call: Callable[[], object], n: int) -> list[float]:
    """Seconds of each of `n` calls, see `timed`; freeing the results is not timed."""
    seconds = []
    for _ in range(n):
        spent, result = timed(call)
        seconds.append(spent)
        del result
    return seconds


def resident(field: str) -> float | None:
    """Megabytes (10^6 bytes) of a field of /proc/self/status; None where there is none."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith(field))


def settled() -> float:
    """Resident megabytes after freed memory was returned to the system, so that it does not count
    for later work; 0.0 if the system does not say."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc only
    if trim is not None:
        trim(0)
    return resident("VmRSS") or 0.0


@contextmanager
def limited(seconds: float, megabytes: float) -> Iterator[None]:
    """Inside, the main thread raises TimeoutError after so many seconds of CPU time, and
    MemoryError when the process has grown by more than so many 10^6 bytes."""

    end = time.process_time() + seconds

    def late(*_: Any) -> None:
        if time.process_time() > end:
            raise TimeoutError(f"over {seconds:g} s")

    now = resident("VmSize") or 0.0
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (int((now + megabytes) * 1e6), before[1]))
    handler = signal.signal(signal.SIGALRM, late)
    # The timer is of wall time, as a CPU timer would make the clock of CPU time coarse.
    signal.setitimer(signal.ITIMER_REAL, _LOOKS, _LOOKS)
    try:
        yield
    except MemoryError as error:
        raise MemoryError(f"over {megabytes / 1e3:g} GB") from error
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)
