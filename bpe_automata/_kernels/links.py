"""Automata that are written down while kernels run.

The table of a linked automaton (see `_automata.linked`) has room for more states than are known.
Where a step leads out of what is written down it holds a negative number, and a kernel that follows
it calls the interpreter, which writes what is behind it into the same arrays: they never move, so
the kernel goes on as if it had always been there. In other automata no number is negative.
"""

from __future__ import annotations

import ctypes
import weakref
from typing import Any, Protocol

import numba
import numpy as np
from llvmlite import binding
from numba import types

from bpe_automata._budget import watch as watch_of_thread
from bpe_automata._kernels import kernel
from bpe_automata._kernels.watch import stop_for

_NAME = "bpe_automata_enter"


class Linked(Protocol):
    """An automaton whose table is being written."""

    trans: np.ndarray

    def enter(self, entry: int) -> int:
        """The state that a negative entry of the table stands for, which is written down now."""


_by_table: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
"""Linked automata, by the address of their tables."""


def register(linked: Linked) -> None:
    """From now on kernels may follow what its table does not hold yet."""
    _by_table[linked.trans.ctypes.data] = linked


def _entered(table: Any, entry: int) -> int:
    """What kernels call. An error stops the kernel, as a signal does, and is raised after it."""
    watch = watch_of_thread()
    before = watch.copy()  # kernels that run meanwhile, in this thread, have the same array
    error: BaseException | None = None
    try:
        found = _by_table[table if isinstance(table, int) else table.data].enter(entry)
    except BaseException as raised:  # nothing may go through the kernel
        found, error = 0, raised
    watch[1:] = before[1:]
    watch_of_thread()  # when the time is up, as budgets within may have said something else
    if error is not None:
        stop_for(watch, error)
    return found


if numba.config.DISABLE_JIT:
    _enter: Any = _entered
else:
    # The kernels on the disk know the name alone.
    _callback = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(_entered)
    binding.add_symbol(_NAME, ctypes.cast(_callback, ctypes.c_void_p).value)
    _enter = types.ExternalFunction(_NAME, types.int64(types.voidptr, types.int64))


@kernel
def followed(entry: int, trans: np.ndarray) -> int:
    """The state that an entry of a table stands for."""
    return entry if entry >= 0 else _enter(trans.ctypes, entry)
