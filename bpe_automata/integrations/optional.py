"""Host packages, imported when they are needed."""

from __future__ import annotations

import importlib
from typing import Any

from bpe_automata.errors import MissingDependencyError


def require(module: str, install: str) -> Any:
    """Import `module`. Raises MissingDependencyError with the command `install`."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing = error.name or module
        raise MissingDependencyError(
            f"{module} cannot be imported ({missing} is missing): {install}"
        ) from error
