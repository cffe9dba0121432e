"""Floor 0: arrays in, arrays out. Every hot loop of the package, compiled by numba.

Kernels know nothing of tokenizers or regexes; the floors above give them their arrays. They are
cached on disk, so only the first run on a machine compiles. $NUMBA_DISABLE_JIT=1 runs them as plain
Python, to look into them with a debugger.
"""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import shutil
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import event

from bpe_automata._budget import excuse
from bpe_automata._storage import private_folder

F = TypeVar("F", bound=Callable[..., object])

_PACKAGE = Path(__file__).parent.parent
_SOURCES = "_kernels", "_core"
_TOLD = (
    "compiling kernels, once on this machine: half a minute now, a minute in all as others are "
    "needed; `bpe-automata warm` does it beforehand"
)
_NO_PLACE = (
    "compiled kernels cannot be kept: neither the folder of this package nor the user's cache can "
    "be written to. Each process compiles its own, which takes a minute; set NUMBA_CACHE_DIR to a "
    "folder that can be written to"
)


class KernelCacheWarning(UserWarning):
    """There is no folder to keep compiled kernels in, so each process compiles its own."""


def _places() -> Iterator[Path]:
    """Where that may be. What is there is run, so others must not be able to write there."""
    given, beside = numba.config.CACHE_DIR, Path(__file__).parent / "__pycache__"
    yield Path(given) if given else beside
    own = private_folder("kernels")
    if own is not None:
        yield own


def _folder() -> str:
    """Where compiled kernels are kept. A kernel depends on others, which numba does not notice, so
    the name says what all sources are; folders of other sources are removed."""
    sources = [path for name in _SOURCES for path in sorted((_PACKAGE / name).glob("*.py"))]
    kind = f"{numba.__version__} {numba.config.BOUNDSCHECK}".encode()
    content = b"".join([kind, *(path.read_bytes() for path in sources)])
    digest = hashlib.sha256(content).hexdigest()[:16]
    for place in _places():
        with suppress(OSError):
            is_new = not (place / digest).exists()
            (place / digest).mkdir(parents=True, exist_ok=True)
            if not os.access(place / digest, os.W_OK):
                continue
            for old in place.glob("[0-9a-f]" * 16) if is_new else ():
                if old.name != digest:
                    shutil.rmtree(old, ignore_errors=True)
            return str(place / digest)
    warnings.warn(_NO_PLACE, KernelCacheWarning, stacklevel=2)
    folder = tempfile.mkdtemp(prefix="bpe_automata_")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


_FOLDER = _folder()


def jit(function: F) -> F:
    """Compile, without the interpreter's lock; kept on the disk."""
    return _compiled(function)


def inner(function: F) -> F:
    """The same for what only kernels call: there is no way in for Python, which takes as long to
    compile as a short kernel."""
    return _compiled(function, no_cpython_wrapper=True)


def _compiled(function: F, **options: bool) -> F:
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, _FOLDER
    try:
        kept = numba.njit(function, nogil=True, cache=True, no_cfunc_wrapper=True, **options)
        return cast(F, kept)
    finally:
        numba.config.CACHE_DIR = before


def inlined(function: F) -> F:
    """Write the function into each kernel that calls it. That is for functions with one caller,
    which need not be compiled by themselves then, and for short ones: a call counts a reference to
    each array that it passes, 40 ns in all where a step takes 4."""
    return cast(F, numba.njit(function, inline="always"))


class _Compiling(event.Listener):  # type: ignore[misc]
    """No budget counts the time that compiling takes, and the first time it is told. (numba's
    documentation offers these events to applications, in its chapter "Event API"; nothing else
    tells when a kernel is compiled that another one calls.)"""

    def __init__(self) -> None:
        self.count, self._thread = 0, threading.local()
        self.after_each: Callable[[], None] = lambda: None

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
        self.after_each()


_compiling: Any = _Compiling()
event.register("numba:compile", _compiling)


def compiled() -> int:
    """How many kernels this process has compiled so far, those that it loaded not counted."""
    return int(_compiling.count)


@contextmanager
def after_each_compiled(call: Callable[[], None]) -> Iterator[None]:
    """Inside, `call` is called whenever a kernel has been compiled. (One at a time.)"""
    _compiling.after_each = call
    try:
        yield
    finally:
        _compiling.after_each = lambda: None
