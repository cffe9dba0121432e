"""Token automata in files: the arrays under their names, as npz or as JSON. Nothing is unpickled.

Spellings are two more arrays, `spelled`, the bytes of all one after the other, and `ends`, where
each ends; an automaton without spellings has neither.
"""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from bpe_automata._token_automata.table import AnyTable, Table
from bpe_automata.errors import MalformedAutomatonError, MissingFileError

_FORMAT = "bpe_automata token automaton 2"
_ARRAYS = ("accepting", "offsets", "symbols", "targets", "alphabet")
_SPELLED = ("spelled", "ends")
# What numpy, zipfile and json raise of a file that is something else, or damaged; RuntimeError
# where a member says that it is encrypted.
_BROKEN = (
    *(OSError, EOFError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError),
    *(MemoryError, RuntimeError, zipfile.BadZipFile, zlib.error),
)


def save(automaton: Table, path: str | Path) -> Path:
    """Write .npz or .json, by the suffix: the whole file, or none. See `TokenAutomaton.save`."""
    path = _checked_path(path)
    if not path.parent.is_dir():
        raise MissingFileError(f"there is no folder {path.parent} to write {path.name} to")
    parts = _parts(automaton)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            if path.suffix == ".npz":
                np.savez_compressed(file, allow_pickle=False, **parts)
            else:
                listed = {name: part.tolist() for name, part in parts.items()}
                file.write(json.dumps(listed, separators=(",", ":")).encode())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def load(cls: type[AnyTable], path: str | Path) -> AnyTable:
    """Read what `save` wrote. Raises MissingFileError, MalformedAutomatonError."""
    path = _checked_path(path)
    if not path.is_file():
        raise MissingFileError(f"there is no file {path}")
    try:
        if path.suffix == ".npz":
            # An open file, because numpy leaves one open that it cannot read.
            with path.open("rb") as file, np.load(file, allow_pickle=False) as content:
                parts = dict(content)
        else:
            listed = json.loads(path.read_bytes())
            parts = {name: np.array(part) for name, part in listed.items()}
        return _restored(cls, parts)
    except MalformedAutomatonError as error:
        raise MalformedAutomatonError(f"{path}: {error}") from None
    except _BROKEN as error:
        said = str(error) or type(error).__name__
        raise MalformedAutomatonError(f"{path}: no file of a token automaton: {said}") from error


def _checked_path(path: str | Path) -> Path:
    path = Path(path)
    if path.suffix not in (".npz", ".json"):
        raise MalformedAutomatonError(f"{path}: an automaton is kept as .npz or .json")
    return path


def _parts(automaton: Table) -> dict[str, Any]:
    """What is written, by name."""
    parts = {name: getattr(automaton, name) for name in _ARRAYS}
    if automaton.spellings is not None:
        parts["spelled"] = np.frombuffer(b"".join(automaton.spellings), dtype=np.uint8)
        parts["ends"] = np.cumsum([len(s) for s in automaton.spellings], dtype=np.int64)
    has_spellings = np.array(automaton.spellings is not None)
    start = np.array(automaton.start)
    return {"format": np.array(_FORMAT), "start": start, "has_spellings": has_spellings, **parts}


def _restored(cls: type[AnyTable], parts: dict[str, Any]) -> AnyTable:
    """Raises MalformedAutomatonError, and what `_BROKEN` names."""
    if str(parts.get("format")) != _FORMAT:
        raise MalformedAutomatonError(
            f"its format is {str(parts.get('format'))!r}, not {_FORMAT!r}: save the automaton anew"
        )
    arrays = [_integers(parts[name]) if len(parts[name]) == 0 else parts[name] for name in _ARRAYS]
    spellings = None
    if parts["has_spellings"].item():
        spelled, ends = (_integers(parts[name]) for name in _SPELLED)
        data, begins = bytes(spelled.tolist()), [0, *ends[:-1].tolist()]
        spellings = tuple(data[a:b] for a, b in zip(begins, ends.tolist(), strict=len(ends) > 0))
    accepting, offsets, symbols, targets, alphabet = arrays
    return cls(parts["start"].item(), accepting, offsets, symbols, targets, alphabet, spellings)


def _integers(array: np.ndarray) -> np.ndarray:
    """JSON does not say of what kind an empty list is."""
    return array.astype(np.int64) if not array.size else array
