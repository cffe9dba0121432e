"""Small files kept between runs: written atomically, read defensively, never pickled.

What is kept here can always be made again, so an unreadable or half-written file is simply
treated as absent. The folder is `$BPE_AUTOMATA_CACHE`, or `bpe_automata` in the user's cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

import numpy as np


def cache_folder(*parts: str) -> Path:
    """The cache's folder for `parts` (not created)."""
    base = os.environ.get("BPE_AUTOMATA_CACHE")
    if base:
        return Path(base, *parts)
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home, "bpe_automata", *parts)


def _path(kind: str, key: str) -> Path:
    return cache_folder(kind) / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.npy"


def load_array(kind: str, key: str) -> np.ndarray | None:
    """The array stored under (`kind`, `key`), or None when there is none that can be read."""
    try:
        return np.load(_path(kind, key), allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None


def store_array(kind: str, key: str, array: np.ndarray) -> None:
    """Store atomically; a cache that cannot be written is no error, only slower next time."""
    path = _path(kind, key)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(handle, "wb") as file:
            np.save(file, array, allow_pickle=False)
        os.replace(temporary, path)
