"""Files kept between runs: written atomically, read defensively, never pickled.

What is kept here can always be made again. A small array that cannot be read is treated as absent;
a file of arrays that is there but not whole is an error that says what is wrong with it.

The folder is `$BPE_AUTOMATA_CACHE`, or `bpe_automata` in the user's cache. With
`BPE_AUTOMATA_CACHE=off` nothing is read or written.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
import tempfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

import numpy as np

_MAGIC = b"bpe_aut1"
_HEAD = 24  # magic, CRC-32 of all that follows, length of the header: 8 bytes each
_SUMMED = 16  # where what the CRC is about begins
_ALIGNMENT = 64


class CorruptFileError(Exception):
    """A file of arrays is not whole, or not the one that was asked for. Never reaches a user: what
    was in the file is made again."""


def cache_is_off() -> bool:
    """Has the user asked that nothing be kept?"""
    return os.environ.get("BPE_AUTOMATA_CACHE") == "off"


def cache_folder(*parts: str) -> Path:
    """The cache's folder for `parts` (not created)."""
    base = os.environ.get("BPE_AUTOMATA_CACHE")
    if base and not cache_is_off():
        return Path(base, *parts)
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home, "bpe_automata", *parts)


def _path(kind: str, key: str, suffix: str) -> Path:
    return cache_folder(kind) / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}{suffix}"


def _write(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Atomically: other processes see the old file or the new one. A cache that cannot be written
    is no error, only slower next time."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                write(file)
            os.replace(temporary, path)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


# ---------------------------------------------------------------- one array


def load_array(kind: str, key: str) -> np.ndarray | None:
    """The array stored under (`kind`, `key`), or None when there is none that can be read."""
    if cache_is_off():
        return None
    try:
        return np.load(_path(kind, key, ".npy"), allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None


def store_array(kind: str, key: str, array: np.ndarray) -> None:
    """Store atomically; a cache that cannot be written is no error, only slower next time."""
    if not cache_is_off():
        path = _path(kind, key, ".npy")
        _write(path, lambda file: np.save(file, array, allow_pickle=False))


# ---------------------------------------------------------------- many arrays in one file


def arrays_path(kind: str, key: str) -> Path:
    """Where the arrays of (`kind`, `key`) are."""
    return _path(kind, key, ".arrays")


def store_arrays(kind: str, key: str, stamp: str, arrays: Mapping[str, np.ndarray]) -> None:
    """Store atomically what `load_arrays` gives back to the same `kind`, `key` and `stamp`.

    The file: magic, CRC-32 of all that follows (int64), length of the header (int64), the header
    (JSON: key, stamp, and of each array its name, dtype, shape, offset and whether it may be
    written to), the arrays in C order. An array that stands under two names is stored once.
    """
    if cache_is_off():
        return
    entries, chunks, offsets = [], [], dict[int, int]()
    end = 0
    for name, array in arrays.items():
        if id(array) not in offsets:
            offsets[id(array)] = end
            chunks.append(np.ascontiguousarray(array).tobytes())
            chunks.append(bytes(-array.nbytes % _ALIGNMENT))
            end += array.nbytes + len(chunks[-1])
        place = offsets[id(array)]
        entries.append([name, array.dtype.str, array.shape, place, bool(array.flags.writeable)])
    header = json.dumps({"key": key, "stamp": stamp, "arrays": entries}).encode()
    header += b" " * (-(_HEAD + len(header)) % _ALIGNMENT)
    summed = b"".join([len(header).to_bytes(8, "little"), header, *chunks])
    checksum = zlib.crc32(summed).to_bytes(8, "little")
    _write(arrays_path(kind, key), lambda file: file.writelines((_MAGIC, checksum, summed)))


def load_arrays(kind: str, key: str, stamp: str) -> dict[str, np.ndarray] | None:
    """The arrays stored under (`kind`, `key`); None if there are none, or only ones of another
    `stamp`, or the file cannot be opened.

    The file is mapped, not read: processes share its pages, and what is written to an array stays
    in this process. Files are only ever replaced as a whole, never changed in place.

    Raises CorruptFileError for a file that is cut short, damaged, or about another key.
    """
    if cache_is_off():
        return None
    try:
        raw = _mapped(arrays_path(kind, key))
    except OSError:
        return None
    length = _checked(raw)
    header = json.loads(raw[_HEAD : _HEAD + length].tobytes())
    if header["key"] != key:
        raise CorruptFileError(f"it is about {header['key']!r}, not {key!r}")
    if header["stamp"] != stamp:
        return None
    body = raw[_HEAD + length :]
    return {name: _view(body, *entry) for name, *entry in header["arrays"]}


def _mapped(path: Path) -> np.ndarray:
    with path.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:  # cannot be mapped
            return np.empty(0, dtype=np.uint8)
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY), dtype=np.uint8)


def _checked(raw: np.ndarray) -> int:
    """The length of the header. Raises CorruptFileError."""
    if len(raw) < _HEAD or raw[: len(_MAGIC)].tobytes() != _MAGIC:
        raise CorruptFileError("it does not begin as such a file does")
    checksum, length = raw[len(_MAGIC) : _HEAD].view("<i8").tolist()
    if zlib.crc32(raw.data[_SUMMED:]) != checksum:
        raise CorruptFileError("its content is damaged or cut short: the checksum is wrong")
    return int(length)


def _view(
    body: np.ndarray, dtype: str, shape: list[int], offset: int, writeable: bool
) -> np.ndarray:
    kind = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    array = body[offset : offset + size].view(kind).reshape(shape)
    array.flags.writeable = writeable
    return array
