"""Token automata as JSON and as npz. Nothing is ever unpickled, and a checksum is compared."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np

from bpe_automata.errors import MalformedAutomatonError, MissingFileError
from bpe_automata.token_automata.table import Table, from_edges

_FORMAT = "bpe_automata token automaton 1"
_ARRAYS = ("accepting", "offsets", "symbols", "targets", "alphabet")
_BROKEN = (
    *(OSError, EOFError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError),
    *(MemoryError, RecursionError, zipfile.BadZipFile, zlib.error, NotImplementedError),
)


def save(table: Table, path: str | Path) -> Path:
    """Write .npz or .json, by the suffix. See `TokenAutomaton.save`."""
    path = Path(path)
    write = _write_npz if _suffix(path) == ".npz" else _write_json
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            write(file, table)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def load(path: str | Path) -> Table:
    """Read what `save` wrote. Raises MissingFileError, MalformedAutomatonError."""
    path = Path(path)
    suffix = _suffix(path)
    if not path.is_file():
        raise MissingFileError(f"there is no file {path}")
    try:
        return _read_npz(path) if suffix == ".npz" else from_json(path.read_bytes())
    except MalformedAutomatonError as error:
        raise MalformedAutomatonError(f"{path}: {error}") from None


def _suffix(path: Path) -> str:
    if path.suffix not in (".npz", ".json"):
        raise MalformedAutomatonError(f"{path}: an automaton is kept as .npz or .json")
    return path.suffix


# ---------------------------------------------------------------- JSON


def to_json(table: Table) -> str:
    """An object with, beside the format: n_states, start, accepting (states), transitions (source,
    symbol, target), alphabet (ranges: first, last), spellings (a list, or null; byte b is written
    as the character U+00b), crc32 (of all that)."""
    spellings = table.spellings
    content = {
        "format": _FORMAT,
        "n_states": table.n_states,
        "start": table.start,
        "accepting": np.flatnonzero(table.accepting).tolist(),
        "transitions": list(table.transitions()),
        "alphabet": _ranges(table.alphabet),
        "spellings": None if spellings is None else [s.decode("latin-1") for s in spellings],
        "crc32": _checksum(table),
    }
    return json.dumps(content, separators=(",", ":"))


def from_json(text: str | bytes) -> Table:
    """What `to_json` wrote; one written by hand needs no crc32. Raises MalformedAutomatonError."""
    try:
        content = json.loads(text)
        _check_format(content["format"])
        table = _from_content(content)
        checksum = content.get("crc32")
    except _BROKEN as error:
        raise MalformedAutomatonError(
            f"not the JSON of a token automaton: {_what(error)}"
        ) from error
    if checksum is not None:
        _check_sum(checksum, table)
    return table


def _write_json(file: IO[bytes], table: Table) -> None:
    file.write(to_json(table).encode())


def _from_content(content: dict[str, Any]) -> Table:
    n = int(content["n_states"])
    ends, transitions = _integers(content["accepting"]), _integers(content["transitions"])
    transitions = transitions.reshape(-1, 3)
    largest = max(int(ends.max(initial=-1)), int(transitions[:, (0, 2)].max(initial=-1)))
    if largest >= n:
        raise ValueError(f"it names state {largest}, but has {n} states")
    accepting = np.zeros(n, dtype=np.bool_)
    accepting[ends] = True
    low, high = _integers(content["alphabet"]).reshape(-1, 2).T
    ranges = [np.arange(a, b + 1) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
    alphabet = np.concatenate([*ranges, np.empty(0, dtype=np.int64)])
    listed = content.get("spellings")
    spellings = None if listed is None else tuple(s.encode("latin-1") for s in listed)
    sources, symbols, targets = transitions.T
    return from_edges(content["start"], accepting, sources, symbols, targets, alphabet, spellings)


def _integers(listed: Any) -> np.ndarray:
    """int64, none negative."""
    found = np.array(listed if listed else [], dtype=None if listed else np.int64)
    if found.dtype.kind not in "iu" or (found.size and int(found.min()) < 0):
        raise ValueError(f"{str(listed)[:60]} are not integers from 0 on")
    return found.astype(np.int64)


def _ranges(numbers: np.ndarray) -> list[list[int]]:
    """First and last of each run of consecutive numbers."""
    cuts = np.flatnonzero(np.diff(numbers) != 1)
    first, last = np.append(0, cuts + 1), np.append(cuts, len(numbers) - 1)
    return np.stack([numbers[first], numbers[last]], axis=1).tolist() if len(numbers) else []


# ---------------------------------------------------------------- npz


def _write_npz(file: IO[bytes], table: Table) -> None:
    arrays = {name: getattr(table, name) for name in _ARRAYS}
    if table.spellings is not None:
        arrays["spelled"] = np.frombuffer(b"".join(table.spellings), dtype=np.uint8)
        arrays["ends"] = np.cumsum([len(s) for s in table.spellings], dtype=np.int64)
    np.savez_compressed(
        file,
        allow_pickle=False,
        format=np.array(_FORMAT),
        start=np.int64(table.start),
        crc32=np.int64(_checksum(table)),
        **arrays,
    )


def _read_npz(path: Path) -> Table:
    try:
        # An open file, because numpy leaves one open that it cannot read.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as content:
            _check_format(str(content["format"]))
            accepting, offsets, symbols, targets, alphabet = (content[name] for name in _ARRAYS)
            start, checksum = content["start"].item(), content["crc32"].item()
            spellings = None
            if "ends" in content:
                spelled, ends = content["spelled"].tobytes(), content["ends"].tolist()
                cuts = zip([0, *ends[:-1]], ends, strict=True)
                spellings = tuple(spelled[low:high] for low, high in cuts) if ends else ()
    except _BROKEN as error:
        raise MalformedAutomatonError(
            f"not the npz of a token automaton: {_what(error)}"
        ) from error
    table = Table(start, accepting, offsets, symbols, targets, alphabet, spellings)
    _check_sum(checksum, table)
    return table


# ---------------------------------------------------------------- checks


def _check_format(found: object) -> None:
    if found != _FORMAT:
        raise ValueError(f"its format is {found!r}, not {_FORMAT!r}")


def _checksum(table: Table) -> int:
    """CRC-32 of everything, spellings included."""
    found = zlib.crc32(repr((table.start, table.spellings)).encode())
    for name in _ARRAYS:
        found = zlib.crc32(np.ascontiguousarray(getattr(table, name)).tobytes(), found)
    return found


def _check_sum(given: object, table: Table) -> None:
    if given != _checksum(table):
        raise MalformedAutomatonError(
            "its content is damaged: the checksum is wrong (drop crc32 from a JSON that you edited)"
        )


def _what(error: BaseException) -> str:
    kind = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) and error.args else error
    return f"{kind}" or type(error).__name__
