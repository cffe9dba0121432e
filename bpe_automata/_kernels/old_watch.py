"""An end to kernels that may be long: for Ctrl-C, and where the time is up.

Such a kernel takes an array `watch` last, and says `poll(watch)` in its outer loops. Once that is
true it returns at once, and its answer is worth nothing. `watched` calls it: in the caller's thread
as long as few polls are enough, and otherwise once more from the beginning in a thread of its own,
while the caller's looks at the clock and lets handlers of signals run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np

from bpe_automata._budget import check, excuse, excused, out_of_time, seconds_left
from bpe_automata._kernels import inner, jit

T = TypeVar("T")

_LEFT, _STOPPED, _AT = 0, 1, 2  # places of `watch`; watch[_AT] is _STOPPED, see `poll`
_FEW = 5000  # polls: some 20 ms at most
_NO_LIMIT = np.iinfo(np.int64).max
_MOST_KEPT = 1 << 24  # bytes that are put aside to begin anew
_PAUSE = 0.05  # seconds
_SHOWS_CLOCKS = hasattr(time, "pthread_getcpuclockid")


@inner
def poll(watch: np.ndarray) -> bool:
    """Is it time to stop?"""
    watch[_LEFT] -= 1
    if watch[_LEFT] <= 0:
        watch[_STOPPED] = 1
    # Another thread may write there: an index that is not known must be read again each time.
    return watch[watch[_AT]] != 0


@jit
def stopped(watch: np.ndarray) -> bool:
    """Has some `poll` been true? Then nothing that was found may be kept."""
    return watch[_STOPPED] != 0


def watched(function: Callable[..., T], *arguments: Any) -> T:
    """What a kernel answers that takes a watch last. What it has written into its arguments holds
    only if it was not stopped. Raises BudgetExceededError, and what a signal's handler raises:
    KeyboardInterrupt."""
    check()
    arrays = list(_written(arguments))
    if sum(array.nbytes for array in arrays) <= _MOST_KEPT:
        before, watch = [array.copy() for array in arrays], np.array([_FEW, 0, _STOPPED])
        answer = _called(function, *arguments, watch)
        if not watch[_STOPPED]:
            return answer
        for array, kept in zip(arrays, before, strict=True):
            array[...] = kept
    return _in_a_thread(function, *arguments)


def _called(function: Callable[..., T], *arguments: Any) -> T:
    """What a kernel answers. A signal that comes meanwhile is handled in the first line of Python
    that runs then: where a kernel returns arrays it is one of numba's, below C code that turns the
    handler's error into the cause of a SystemError."""
    try:
        return function(*arguments)
    except SystemError as error:
        cause: BaseException = error
        while isinstance(cause, SystemError) and cause.__cause__ is not None:
            cause = cause.__cause__
        raise cause from None


def _written(arguments: tuple[Any, ...]) -> Iterator[np.ndarray]:
    """The arrays that a kernel may write to."""
    for argument in arguments:
        if isinstance(argument, tuple):
            yield from _written(argument)
        elif isinstance(argument, np.ndarray) and argument.flags.writeable:
            yield argument


def _in_a_thread(function: Callable[..., T], *arguments: Any) -> T:
    watch, clock = np.array([_NO_LIMIT, 0, _STOPPED]), _Clock()
    answers, errors, spent = list[T](), list[BaseException](), [0]

    def run() -> None:
        try:
            clock.begin()
            answers.append(function(*arguments, watch))
        except BaseException as error:  # is raised in the caller's thread
            errors.append(error)
        spent[0] = time.thread_time_ns() - excused()

    left, thread = seconds_left(), threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_PAUSE)
            if clock.seconds() > left:
                raise out_of_time()
    finally:
        watch[_STOPPED] = 1
        thread.join()
        excuse(-spent[0])  # it was the caller's work
    if errors:
        raise errors[0]
    return answers[0]


class _Clock:
    """What a thread has worked, as another sees it. Where the system shows that to none (macOS,
    Windows) it is the time that has passed."""

    def __init__(self) -> None:
        self._begun = time.perf_counter()
        self._number: int | None = None

    def begin(self) -> None:
        """In the thread itself: elsewhere it may have ended."""
        if _SHOWS_CLOCKS:
            self._number = time.pthread_getcpuclockid(threading.get_ident())

    def seconds(self) -> float:
        """0 before the thread has begun, and once it has ended."""
        if not _SHOWS_CLOCKS:
            return time.perf_counter() - self._begun
        with suppress(OSError):
            return 0.0 if self._number is None else time.clock_gettime(self._number)
        return 0.0
