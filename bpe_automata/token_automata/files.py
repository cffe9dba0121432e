"""Token automata in npz files: the arrays, by name. Nothing is unpickled.

Spellings are two more arrays: `spelled`, the bytes of all of them in turn, and `ends`, where each
one ends. An automaton without spellings has neither.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from bpe_automata.errors import MalformedAutomatonError, MissingFileError
from bpe_automata.token_automata.table import AnyTable, Table

_FORMAT = "bpe_automata token automaton 3"
_ARRAYS = ("accepting", "offsets", "symbols", "targets", "alphabet")


def save(automaton: Table, path: str | Path) -> Path:
    """Write a .npz file, atomically, and return its path. Raises MissingFileError (no such folder),
    MalformedAutomatonError (another suffix)."""
    path = _checked_path(path)
    if not path.parent.is_dir():
        raise MissingFileError(f"there is no folder {path.parent} to write {path.name} to")
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **_parts(automaton))
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def load(cls: type[AnyTable], path: str | Path) -> AnyTable:
    """The automaton that `save` wrote. Raises MissingFileError, MalformedAutomatonError."""
    path = _checked_path(path)
    if not path.is_file():
        raise MissingFileError(f"there is no file {path}")
    try:
        # We open the file ourselves, as numpy leaves a file open that it cannot read.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as content:
            return _restored(cls, dict(content))
    except MalformedAutomatonError as error:
        raise MalformedAutomatonError(f"{path}: {error}") from None
    except Exception as error:  # numpy and zipfile raise all kinds for other and damaged files
        said = str(error) or type(error).__name__
        raise MalformedAutomatonError(f"{path}: no file of a token automaton: {said}") from error


def _checked_path(path: str | Path) -> Path:
    path = Path(path)
    if path.suffix != ".npz":
        raise MalformedAutomatonError(f"{path}: an automaton is kept as .npz")
    return path


def _parts(automaton: Table) -> dict[str, Any]:
    """The arrays to write, by name."""
    parts = {name: getattr(automaton, name) for name in _ARRAYS}
    if automaton.spellings is not None:
        parts["spelled"] = np.frombuffer(b"".join(automaton.spellings), dtype=np.uint8)
        parts["ends"] = np.cumsum([len(s) for s in automaton.spellings], dtype=np.int64)
    return {"format": np.array(_FORMAT), "start": np.array(automaton.start), **parts}


def _restored(cls: type[AnyTable], parts: dict[str, Any]) -> AnyTable:
    """The automaton of these parts. Raises MalformedAutomatonError; for the parts of another file
    also other errors."""
    if str(parts.get("format")) != _FORMAT:
        raise MalformedAutomatonError(
            f"its format is {str(parts.get('format'))!r}, not {_FORMAT!r}: save the automaton anew"
        )
    spellings = None
    if "ends" in parts:
        data, ends = parts["spelled"].tobytes(), parts["ends"].tolist()
        begins = [0, *ends][: len(ends)]
        spellings = tuple(data[a:b] for a, b in zip(begins, ends, strict=True))
    accepting, offsets, symbols, targets, alphabet = (parts[name] for name in _ARRAYS)
    return cls(parts["start"].item(), accepting, offsets, symbols, targets, alphabet, spellings)
