"""Optional packages: imported when they are needed, with the command that installs them."""

from __future__ import annotations

import hashlib
import importlib
from types import ModuleType

from bpe_automata.errors import MissingDependencyError


def optional(module: str, extra: str, purpose: str) -> ModuleType:
    """Import `module`. Raises MissingDependencyError, which names the extra that brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f"{purpose} needs the package {(error.name or module).partition('.')[0]}: "
            f"pip install 'bpe-automata[{extra}]'"
        ) from error


def fingerprint(*parts: bytes | str) -> str:
    """sha256 (hex) of the parts; where one ends and the next begins counts."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()
