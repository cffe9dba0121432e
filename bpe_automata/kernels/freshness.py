"""When is a compiled kernel out of date? When its source has changed, or that of one it calls.

numba looks at the file of the kernel alone, and would go on with the old code of the others.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib import resources

_PACKAGE = __name__.rpartition(".")[0]
_IMPORT = re.compile(rf"^from {re.escape(_PACKAGE)}\.(\w+) import", re.MULTILINE)


@cache
def stamp(module: str) -> str:
    """A digest of the sources of a module of kernels, of how kernels are compiled, and of all
    kernels that the module imports, be it through others."""
    source = (resources.files(_PACKAGE) / f"{module}.py").read_text(encoding="utf-8")
    called = {"__init__", *_IMPORT.findall(source)} if module != "__init__" else set()
    parts = [source, *(stamp(name) for name in sorted(called))]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
