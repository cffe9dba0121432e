"""What numbers depend on besides a config: the code, the packages, the machine."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from bpe_automata.errors import MissingFileError
from experiments.run.files import ROOT, require

PACKAGES = ("numpy", "numba", "tokenizers", "torch", "transformers", "gguf")


@cache
def code_digest() -> str:
    """Names the package as it is now: the first 16 hex digits of a SHA-256 over its sources."""
    made = hashlib.sha256()
    for path in sorted((ROOT / "bpe_automata").rglob("*.py")):
        made.update(path.relative_to(ROOT).as_posix().encode())
        made.update(path.read_bytes())
    return made.hexdigest()[:16]


def file_sha256(path: Path) -> str:
    """Hex digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def contents_sha256(path: Path) -> str | None:
    """Of a file, or of all files below a folder with their names, but for what Python caches there;
    None for what is not there."""
    if path.is_file():
        return file_sha256(path)
    if not path.is_dir():
        return None
    made = hashlib.sha256()
    files = (found for found in path.rglob("*") if found.is_file())
    for file in sorted(found for found in files if found.parent.name != "__pycache__"):
        made.update(f"{file.relative_to(path).as_posix()} {file_sha256(file)}\n".encode())
    return made.hexdigest()


def version_of(package: str) -> str | None:
    """Of an installed package; None if there is none."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def installed(packages: Iterable[str]) -> dict[str, str]:
    """The versions of those that are."""
    return {name: version for name in packages if (version := version_of(name))}


def versions() -> dict[str, str]:
    """Python, and each installed package that the numbers may depend on."""
    return {"python": platform.python_version()} | installed(PACKAGES)


def machine() -> dict[str, Any]:
    """What the rows were measured on; the load average (1, 5, 15 minutes) is that of the start."""
    load = [round(value, 2) for value in os.getloadavg()]
    return {"machine": platform.machine(), "cores": os.cpu_count(), "load_average": load}


# Where a model runs.


def pick_device(device: str) -> str:
    """ "auto" is the GPU if there is one. Raises `MissingFileError` for a GPU that is not there."""
    has_gpu = require("torch").cuda.is_available()
    if device == "auto":
        return "cuda" if has_gpu else "cpu"
    if device == "cuda" and not has_gpu:
        raise MissingFileError("no CUDA device was found by torch; use --device cpu")
    return device
