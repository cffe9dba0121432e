"""matplotlib, imported when it is needed."""

from __future__ import annotations

import importlib
from types import ModuleType

from bpe_automata.errors import MissingDependencyError


def require(module: str) -> ModuleType:
    """Import a module of matplotlib. Raises MissingDependencyError, which says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            "drawing figures needs the package matplotlib: pip install 'bpe-automata[viz]'"
        ) from error
