"""Token automata as JSON and as npz. Nothing is ever unpickled, and a checksum is compared."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np

from bpe_automata._token_automata.table import LARGEST, Table, checked_spellings, from_edges
from bpe_automata.errors import MalformedAutomatonError, MissingFileError

_FORMAT = "bpe_automata token automaton 1"
_ARRAYS = ("accepting", "offsets", "symbols", "targets", "alphabet")
_MANY = 1 << 24  # states or symbols of the alphabet that a JSON may have without naming each
_BROKEN = (
    *(OSError, EOFError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError),
    # RuntimeError: what zipfile raises of a member that says it is encrypted.
    *(MemoryError, RuntimeError, zipfile.BadZipFile, zlib.error),
)


def save(table: Table, path: str | Path) -> Path:
    """Write .npz or .json, by the suffix. See `TokenAutomaton.save`."""
    path = Path(path)
    write = _write_npz if _suffix(path) == ".npz" else _write_json
    if not path.parent.is_dir():
        raise MissingFileError(f"there is no folder {path.parent} to write {path.name} to")
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
    content = {
        "format": _FORMAT,
        "n_states": table.n_states,
        "start": table.start,
        "accepting": np.flatnonzero(table.accepting).tolist(),
        "transitions": list(table.transitions()),
        "alphabet": ranges(table.alphabet),
        "spellings": as_texts(table.spellings),
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
    except MalformedAutomatonError:
        raise
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
    n = _number(content["n_states"], "n_states")
    start = _number(content["start"], "start")
    ends = _integers(content["accepting"], "accepting")
    transitions = _rows(content["transitions"], "transitions", 3)
    if n > _MANY + len(ends) + 2 * len(transitions):
        raise ValueError(f"n_states is {n:,}, but its transitions name far fewer")
    largest = max(int(ends.max(initial=-1)), int(transitions[:, (0, 2)].max(initial=-1)))
    if largest >= n:
        raise ValueError(f"it names state {largest}, but has {n} states")
    accepting = np.zeros(n, dtype=np.bool_)
    accepting[ends] = True
    alphabet = from_ranges(content["alphabet"])
    spellings = from_texts(content.get("spellings"))
    sources, symbols, targets = transitions.T
    return from_edges(start, accepting, sources, symbols, targets, alphabet, spellings)


def _number(given: Any, name: str) -> int:
    """Raises ValueError unless it is an integer from 0 to the largest int32."""
    if type(given) is not int or not 0 <= given <= LARGEST:
        raise ValueError(f"{name} is {given!r}, not an integer from 0 to {LARGEST}")
    return given


def _integers(listed: Any, name: str) -> np.ndarray:
    """int64 [n], from 0 to the largest int32."""
    if not isinstance(listed, list):
        raise ValueError(f"{name} is {str(listed)[:60]}, not a list")
    for at, value in enumerate(listed):
        _number(value, f"{name} at {at}")
    return np.array(listed, dtype=np.int64)


def _rows(listed: Any, name: str, width: int) -> np.ndarray:
    """int64 [n, width], the same."""
    if not isinstance(listed, list):
        raise ValueError(f"{name} is {str(listed)[:60]}, not a list")
    for at, row in enumerate(listed):
        if not isinstance(row, list) or len(row) != width:
            raise ValueError(f"{name} at {at} is {str(row)[:60]}, not {width} integers")
    return _integers([value for row in listed for value in row], name).reshape(-1, width)


def as_texts(spellings: tuple[bytes, ...] | None) -> list[str] | None:
    """Byte b as the character U+00b, so that JSON can hold it."""
    return None if spellings is None else [s.decode("latin-1") for s in spellings]


def from_texts(listed: Any) -> tuple[bytes, ...] | None:
    """What `as_texts` made. Raises ValueError, MalformedAutomatonError."""
    if listed is None:
        return None
    if not isinstance(listed, list):
        raise ValueError(f"spellings is {str(listed)[:60]}, not a list")
    found = [s.encode("latin-1") if isinstance(s, str) else s for s in listed]
    return checked_spellings(found)


def from_ranges(listed: Any) -> np.ndarray:
    """int64: what `ranges` made. Raises ValueError."""
    low, high = _rows(listed, "alphabet", 2).T
    sizes = high - low + 1
    if len(sizes) and (int(sizes.min()) < 1 or int(sizes.sum()) > _MANY):
        raise ValueError(
            f"alphabet is {str(listed)[:60]}, not ascending ranges of at most {_MANY:,} symbols"
        )
    parts = [np.arange(a, b + 1) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
    return np.concatenate([*parts, np.empty(0, dtype=np.int64)])


def ranges(numbers: np.ndarray) -> list[list[int]]:
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
    if not zipfile.is_zipfile(path):
        raise MalformedAutomatonError("not the npz of a token automaton: it is no npz (zip) file")
    try:
        # An open file, because numpy leaves one open that it cannot read.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as content:
            needed = ("format", *_ARRAYS, "start", "crc32")
            missing = [name for name in needed if name not in content]
            if missing:
                raise ValueError(f"it holds no array {missing[0]!r}")
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
