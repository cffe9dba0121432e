"""Packages that not everyone installs, imported when they are needed."""

from __future__ import annotations

import importlib
from typing import Any

from bpe_automata.errors import MissingDependencyError


def require(module: str, install: str = "pip install 'bpe-automata[viz]'") -> Any:
    """The module, imported. Raises MissingDependencyError, which gives the command `install`."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing = (error.name or module).partition(".")[0]
        raise MissingDependencyError(
            f"{module} cannot be imported ({missing} is missing): {install}"
        ) from error
