"""An end to kernels: they stop where the time is up, and for Ctrl-C.

A kernel that may run for more than some 50 ms takes an array `watch`, last or in its `Product`, and
says `poll(watch)` in its outer loops. Once that is true it returns at once, and its answer is
worth nothing; `watched` then raises what stopped it. What a kernel found since is not kept either:
a search that was stopped has found nothing where there may be something.

The clock is that of the thread (see `budget`), and is asked at every 256th poll at most: no more
than a millisecond should lie between two polls. Every 50 ms a kernel in the main thread asks the
interpreter for signals as well; what a handler raises is put away and raised by `watched`.

Where the system has no `clock_gettime` for threads kernels run to their end.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from llvmlite import binding
from numba import types

from bpe_automata._budget import out_of_time
from bpe_automata._budget import watch as watch_of_thread
from bpe_automata._kernels import kernel

T = TypeVar("T")

# Places of the array `budget.watch()`. The last three: an exception, as `PyErr_Fetch` gives it.
_DEADLINE, _COUNTDOWN, _PACE, _CLOCK, STOPPED, _MAIN, _SEEN, _NEXT_LOOK = 0, 1, 2, 3, 4, 5, 6, 7
_SECONDS, _NANOSECONDS, _KIND, _ERROR, _TRACEBACK = 8, 9, 10, 11, 12

_SLOWEST, _FASTEST = 256, 8  # polls between two looks at the clock
_SOON, _LATE = 1_000_000, 4_000_000  # ns between two looks that are close, or far apart
_BETWEEN_SIGNALS = 50_000_000  # ns
_NOT_STOPPED, _OUT_OF_TIME, _RAISED, _FAILED = 0, 1, 2, 3
_NO_LIMIT = np.iinfo(np.int64).max
_CLOCK_ID = getattr(time, "CLOCK_THREAD_CPUTIME_ID", -1)
_POLLS = _CLOCK_ID >= 0 and not numba.config.DISABLE_JIT


def _external(name: str, signature: Any, library: ctypes.CDLL) -> Any:
    """A function of C for kernels, under an address that holds for this process: kernels on disk
    know its name alone. Where the library lacks it, it is never called (see `_POLLS`)."""
    found = getattr(library, name, None) or ctypes.pythonapi.PyErr_CheckSignals
    address = ctypes.cast(found, ctypes.c_void_p).value
    binding.add_symbol(name, address)
    return types.ExternalFunction(name, signature)


_clock_gettime = _external(
    "clock_gettime", types.int32(types.int32, types.voidptr), ctypes.CDLL(None)
)
_ensure = _external("PyGILState_Ensure", types.int32(), ctypes.pythonapi)
_release = _external("PyGILState_Release", types.void(types.int32), ctypes.pythonapi)
_check_signals = _external("PyErr_CheckSignals", types.int32(), ctypes.pythonapi)
_fetch = _external(
    "PyErr_Fetch", types.void(types.voidptr, types.voidptr, types.voidptr), ctypes.pythonapi
)


@kernel
def poll(watch: np.ndarray) -> bool:
    """Is it time to stop?"""
    watch[_COUNTDOWN] -= 1
    return watch[_COUNTDOWN] <= 0 and _look(watch)


@kernel
def stopped(watch: np.ndarray) -> bool:
    """Has some `poll` been true? Then nothing that was found may be kept."""
    return watch[STOPPED] != _NOT_STOPPED


@kernel
def _look(watch: np.ndarray) -> bool:
    if watch[STOPPED] != _NOT_STOPPED:
        return True
    _clock_gettime(watch[_CLOCK], watch[_SECONDS:].ctypes)
    now = watch[_SECONDS] * 1_000_000_000 + watch[_NANOSECONDS]
    if watch[_SEEN] == 0:
        watch[_NEXT_LOOK] = now + _BETWEEN_SIGNALS
    elif now - watch[_SEEN] < _SOON:
        watch[_PACE] = min(2 * watch[_PACE], _SLOWEST)
    elif now - watch[_SEEN] > _LATE:
        watch[_PACE] = max(watch[_PACE] >> 2, 1)
    watch[_SEEN], watch[_COUNTDOWN] = now, watch[_PACE]
    if now >= watch[_DEADLINE]:
        watch[STOPPED] = _OUT_OF_TIME
    elif watch[_MAIN] != 0 and now >= watch[_NEXT_LOOK]:
        watch[_NEXT_LOOK] = now + _BETWEEN_SIGNALS
        _look_for_signals(watch)
    if watch[STOPPED] != _NOT_STOPPED:
        watch[_COUNTDOWN] = 0
        return True
    return False


@kernel
def _look_for_signals(watch: np.ndarray) -> None:
    """Let the handlers run, which is the interpreter's work and needs its lock."""
    state = _ensure()
    if _check_signals() != 0:
        _fetch(watch[_KIND:].ctypes, watch[_ERROR:].ctypes, watch[_TRACEBACK:].ctypes)
        watch[STOPPED] = _RAISED
    _release(state)


def _fresh(main: bool, countdown: int) -> np.ndarray:
    """What the array holds before a call, its first and last places excepted."""
    return np.array([countdown, _FASTEST, _CLOCK_ID, _NOT_STOPPED, main, 0], np.int64)


_IN_MAIN, _ELSEWHERE = _fresh(True, _FASTEST), _fresh(False, _FASTEST)
_NEVER = _fresh(False, _NO_LIMIT)


def armed() -> np.ndarray:
    """The array of the calling thread, for one call of a kernel."""
    watch = watch_of_thread()
    if not _POLLS:
        watch[_COUNTDOWN:_NEXT_LOOK] = _NEVER
    elif threading.get_ident() == threading.main_thread().ident:
        watch[_COUNTDOWN:_NEXT_LOOK] = _IN_MAIN
    else:
        watch[_COUNTDOWN:_NEXT_LOOK] = _ELSEWHERE
    return watch


class _Local(threading.local):
    error: BaseException | None = None


_local = _Local()


def stop_for(watch: np.ndarray, error: BaseException) -> None:
    """Stop the kernel that has called the interpreter: `error` is raised after it."""
    _local.error = error
    watch[STOPPED], watch[_COUNTDOWN] = _FAILED, 0


def raise_what_stopped(watch: np.ndarray) -> None:
    """After the call. Raises BudgetExceededError, what a signal's handler raised, or what the
    kernel's own call of the interpreter did."""
    if watch[STOPPED] == _FAILED and _local.error is not None:
        error, _local.error = _local.error, None
        raise error
    if watch[STOPPED] == _RAISED:
        taken = (ctypes.c_void_p(int(watch[at])) for at in (_KIND, _ERROR, _TRACEBACK))
        ctypes.pythonapi.PyErr_Restore(*taken)  # ctypes looks for an error, and raises it
    elif watch[STOPPED] != _NOT_STOPPED:
        raise out_of_time()


def watched(function: Callable[..., T], *arguments: Any) -> T:
    """What a kernel answers that takes a watch last. Raises BudgetExceededError, and what a
    signal's handler raises: KeyboardInterrupt."""
    watch = armed()
    return called(watch, function, *arguments, watch)


def called(watch: np.ndarray, function: Callable[..., T], *arguments: Any) -> T:
    """The same for a kernel that has the armed `watch` somewhere in its arguments."""
    try:
        answer = function(*arguments)
    except SystemError as error:
        raise _beneath(error) from None
    raise_what_stopped(watch)
    return answer


def _beneath(error: SystemError) -> BaseException:
    """What a signal's handler has raised while the interpreter took over the answer of a kernel:
    numba goes on, and the interpreter finds an error beside an answer."""
    found: BaseException = error
    while isinstance(found, SystemError) and found.__cause__ is not None:
        found = found.__cause__
    return found
