"""Floor 0: arrays in, arrays out. Every hot loop of the package, compiled by numba.

Kernels know nothing of tokenizers or regexes; the floors above give them their arrays. They are
cached on disk, so only the first run on a machine compiles. $NUMBA_DISABLE_JIT=1 runs them as plain
Python, to look into them with a debugger.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import event

from bpe_automata._budget import excuse
from bpe_automata._storage import cache_folder

F = TypeVar("F", bound=Callable[..., object])

_PACKAGE = Path(__file__).parent.parent
_SOURCES = "_kernels", "_core"
_TOLD = (
    "compiling kernels, once on this machine: half a minute now, a minute in all as others are "
    "needed; `bpe-automata warm` does it beforehand"
)


def _folder() -> str:
    """Where compiled kernels are kept. A kernel depends on others, which numba does not notice, so
    the name says what all sources are; folders of other sources are removed."""
    sources = [path for name in _SOURCES for path in sorted((_PACKAGE / name).glob("*.py"))]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    own = Path(__file__).parent / "__pycache__"
    place = own if os.access(own.parent, os.W_OK) else cache_folder("kernels")
    place = Path(numba.config.CACHE_DIR or place)
    if not (place / digest).exists():
        for old in place.glob("[0-9a-f]" * 16):
            shutil.rmtree(old, ignore_errors=True)
    return str(place / digest)


_FOLDER = _folder()


def jit(function: F) -> F:
    """Compile, without the interpreter's lock; kept on the disk."""
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, _FOLDER
    try:
        inner = function.__name__.startswith("_")  # called by kernels alone
        options = {"no_cfunc_wrapper": True, "no_cpython_wrapper": inner}
        return cast(F, numba.njit(function, nogil=True, cache=True, **options))
    finally:
        numba.config.CACHE_DIR = before


def inlined(function: F) -> F:
    """Write the function into each kernel that calls it. A call counts a reference to each array
    that it passes, 40 ns in all where a step takes 4."""
    return cast(F, numba.njit(function, inline="always"))


class _Compiling(event.Listener):  # type: ignore[misc]
    """No budget counts the time that compiling takes, and the first time it is told."""

    def __init__(self) -> None:
        self.count, self._thread = 0, threading.local()

    def on_start(self, compiling: event.Event) -> None:
        function = getattr(compiling.data["dispatcher"], "py_func", None)
        if (getattr(function, "__module__", None) or "").startswith("bpe_automata."):
            if not self.count:
                logging.getLogger("bpe_automata").warning(_TOLD)
            self.count += 1
        depth = getattr(self._thread, "depth", 0)
        if depth == 0:
            self._thread.begun = time.thread_time_ns()
        self._thread.depth = depth + 1

    def on_end(self, compiling: event.Event) -> None:
        self._thread.depth -= 1
        if self._thread.depth == 0:
            excuse(time.thread_time_ns() - self._thread.begun)


_compiling: Any = _Compiling()
event.register("numba:compile", _compiling)


def compiled() -> int:
    """How many kernels this process has compiled so far, those that it loaded not counted."""
    return int(_compiling.count)
