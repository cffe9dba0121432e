"""Paths in the repository, JSON lines, and files of installed packages."""

from __future__ import annotations

import gzip
import importlib.util
import json
from collections.abc import Iterator
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from bpe_automata import _optional
from bpe_automata.errors import MissingDependencyError, MissingFileError

ROOT = Path(__file__).resolve().parents[1]


# Files of JSON objects, one a line, gzipped or not.


def lines_of(path: Path) -> Iterator[Any]:
    """The values of the lines; empty lines are skipped. Raises MissingFileError."""
    opened: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8") as lines:
            yield from (json.loads(line) for line in lines if line.strip())
    except (OSError, ValueError) as error:
        raise MissingFileError(f"{path} cannot be read as JSON lines: {error}") from error


# Packages that only the experiments need; if one is missing, the error says what to install.

INSTALL = "pip install -e '.[torch,gguf]' --group experiments"


require = partial(_optional.require, install=INSTALL)
"""The module of a name. Raises `MissingDependencyError` with the command that installs it."""


def cache_name() -> str:
    """The name of a model's key and value cache in the installed transformers."""
    return str(require("bpe_automata.integrations.transformers._model").CACHE)


def version_of(package: str) -> str | None:
    """The version of an installed package; None if there is none."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def package_file(package: str, pattern: str, install: str) -> Path:
    """The one file that matches `pattern` in an installed package, which is not imported.

    An import may be slow, or fail for dependencies that the file does not need. Raises
    `MissingDependencyError` or `MissingFileError`."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingDependencyError(f"{package!r} is not installed; install it with: {install}")
    folder = Path(spec.submodule_search_locations[0])
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        message = f"expected one file {pattern!r} in {folder}, found {len(found)}; try: {install}"
        raise MissingFileError(message)
    return found[0]
