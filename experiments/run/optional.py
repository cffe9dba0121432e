"""Packages that only the experiments need, imported with an error that says what to install."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from types import ModuleType

from bpe_automata.errors import MissingDependencyError, MissingFileError

INSTALL = "pip install -e '.[experiments]'"


def require(name: str, install: str = INSTALL) -> ModuleType:
    """The module `name`. Raises `MissingDependencyError` with the command that installs it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        message = f"the package {name!r} cannot be imported ({error}); install it with: {install}"
        raise MissingDependencyError(message) from error


def cache_name() -> str:
    """What the installed transformers calls a model's key and value cache."""
    return str(require("bpe_automata.integrations.transformers.support").CACHE)


def package_file(package: str, pattern: str, install: str) -> Path:
    """The one file that matches `pattern` in an installed package, which is not imported.

    Importing may be impossible (the package lacks its own dependencies) or slow; the file is all
    that is wanted. Raises `MissingDependencyError` or `MissingFileError`.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingDependencyError(f"{package!r} is not installed; install it with: {install}")
    folder = Path(spec.submodule_search_locations[0])
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        message = f"expected one file {pattern!r} in {folder}, found {len(found)}; try: {install}"
        raise MissingFileError(message)
    return found[0]
