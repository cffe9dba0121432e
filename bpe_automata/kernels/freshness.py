"""When is a compiled kernel out of date? When its source has changed, or that of one it calls.

numba looks at the file of the kernel alone, and would go on with the old code of the others. And
where are they kept, if there is no place for them?

Compiling takes long, so the first time in a process it is told, to the logger "bpe_automata" as a
warning: Python shows those on stderr where nobody has said what to do with them, and a program that
has said so decides itself (`logging.getLogger("bpe_automata").setLevel("ERROR")`).
"""

from __future__ import annotations

import atexit
import hashlib
import logging
import re
import shutil
import tempfile
import warnings
from functools import cache
from importlib import resources
from pathlib import Path

from numba.core import event
from numba.core.caching import CacheImpl, _CacheLocator

_PACKAGE = __name__.rpartition(".")[0]
_HOW = ("__init__", "linking")  # how kernels are compiled
_IMPORT = re.compile(rf"^from {re.escape(_PACKAGE)}\.(\w+) import", re.MULTILINE)
_TOLD = (
    "compiling kernels, once on this machine: up to a minute now, one or two in all as others are "
    "needed; `bpe-automata warm` does it beforehand"
)


@cache
def stamp(module: str) -> str:
    """A digest of the sources of a module of kernels, of how kernels are compiled, and of all
    kernels that the module imports, be it through others."""
    source = (resources.files(_PACKAGE) / f"{module}.py").read_text(encoding="utf-8")
    called = {*_HOW, *_IMPORT.findall(source)} if module not in _HOW else set()
    parts = [source, *(stamp(name) for name in sorted(called))]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


# ---------------------------------------------------------------- where they are kept


class KernelCacheWarning(UserWarning):
    """There is no folder to keep compiled kernels in, so each process compiles its own."""


class _ForThisProcess(_CacheLocator):  # type: ignore[misc]
    """The last place that numba looks for: a folder that goes with the process. Without it, numba
    would refuse to make a kernel at all."""

    def __init__(self, file: str) -> None:
        self._file = Path(file)

    @classmethod
    def from_function(cls, _function: object, file: str) -> _ForThisProcess | None:
        return cls(file) if file.startswith(str(Path(__file__).parent)) else None

    def get_cache_path(self) -> str:
        return _folder_of_this_process()

    def get_source_stamp(self) -> float:
        return 0.0  # `stamp` stands in its place

    def get_disambiguator(self) -> str:
        return self._file.stem


@cache
def _folder_of_this_process() -> str:
    warnings.warn(
        "compiled kernels cannot be kept: neither the folder of this package nor the user's cache "
        "can be written to. Each process compiles its own, which takes a minute; set "
        "NUMBA_CACHE_DIR to a folder that can be written to",
        KernelCacheWarning,
        stacklevel=2,
    )
    folder = tempfile.mkdtemp(prefix="bpe_automata_")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


CacheImpl._locator_classes.append(_ForThisProcess)


# ---------------------------------------------------------------- that they are compiled


class _Compiling(event.Listener):  # type: ignore[misc]
    """Counts the kernels that are compiled, not those that are loaded from the disk."""

    count = 0

    def on_start(self, compiling: event.Event) -> None:
        function = getattr(compiling.data["dispatcher"], "py_func", None)
        if not (getattr(function, "__module__", None) or "").startswith(f"{_PACKAGE}."):
            return  # somebody else's
        if not self.count:
            logging.getLogger("bpe_automata").warning(_TOLD)
        self.count += 1

    def on_end(self, compiling: event.Event) -> None:
        """Nothing is told of the end."""


_compiling = _Compiling()
event.register("numba:compile", _compiling)


def compiled() -> int:
    """How many kernels this process has compiled so far; private ones count too."""
    return _compiling.count
