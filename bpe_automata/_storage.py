"""Files kept between runs: written atomically, checked when read, never pickled.

What is kept here can always be made again. A file that is there but not whole is an error that says
what is wrong with it. The folder and what is in it must belong to the user (or to root), and nobody
else may write there: others could give the kernels any arrays. Folders that are made here are made
private; one that is not the user's, or that $BPE_AUTOMATA_CACHE names and others may write to, is
not used, with a warning.

The folder is `$BPE_AUTOMATA_CACHE`, or the one that `platformdirs` names for this user. With
`BPE_AUTOMATA_CACHE=off` nothing is read or written.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import mmap
import os
import stat
import tempfile
import warnings
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from platformdirs import user_cache_path

T = TypeVar("T")

_MAGIC = b"bpe_aut1"
_HEAD = 24  # magic, CRC-32 of all that follows, length of the header: 8 bytes each
_SUMMED = 16  # where what the CRC is about begins
_ALIGNMENT = 64
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_DTYPES = {
    np.dtype(kind).str for kind in ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")
}


class CorruptCacheWarning(UserWarning):
    """A file of the cache was damaged; what was in it has been made again and stored anew."""


class UntrustedCacheWarning(UserWarning):
    """Others may write to the cache folder, or to a file in it; it is not used."""


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
    return Path(user_cache_path("bpe_automata", appauthor=False), *parts)


def _write(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Atomically: other processes see the old file or the new one. A cache that cannot be written
    is no error, only slower next time."""
    with contextlib.suppress(OSError):
        if not _made_private(path.parent):
            return
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                write(file)
            os.replace(temporary, path)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


# ---------------------------------------------------------------- whose files they are


def _owned(entry: os.stat_result) -> bool:
    """By this user or by root, who can do anything anyway."""
    return not hasattr(os, "geteuid") or entry.st_uid in (os.geteuid(), 0)


def _private(folder: Path) -> bool:
    """Is what is in there this user's alone to write? Raises OSError where there is no folder."""
    for path in (folder.parent, folder):
        for entry in (path.lstat(), path.stat()):  # a link, and where it leads
            if not _owned(entry):
                _distrust(str(path), "belongs to another user")
                return False
        mode = path.stat().st_mode
        if not hasattr(os, "geteuid") or not mode & _OTHERS_WRITE or mode & stat.S_ISVTX:
            continue
        if path == cache_folder() and os.environ.get("BPE_AUTOMATA_CACHE"):  # shared on purpose?
            _distrust(str(path), "can be written to by others")
            return False
        path.chmod(0o700)
    return True


@cache
def _distrust(path: str, why: str) -> None:
    """Said once."""
    warnings.warn(
        f"{path} {why}, so nothing is kept there or read from there: set BPE_AUTOMATA_CACHE to a "
        "folder of your own",
        UntrustedCacheWarning,
        stacklevel=2,
    )


def _made_private(folder: Path) -> bool:
    for path in (folder.parent, folder):
        if not path.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir(mode=0o700, exist_ok=True)
    return _private(folder)


# ---------------------------------------------------------------- arrays in a file


def arrays_path(kind: str, key: str) -> Path:
    """Where the arrays of (`kind`, `key`) are."""
    return cache_folder(kind) / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.arrays"


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
        offset = offsets[id(array)]
        entries.append([name, array.dtype.str, array.shape, offset, bool(array.flags.writeable)])
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
    if raw is None:
        return None
    length = _checked(raw)
    try:
        header = json.loads(raw[_HEAD : _HEAD + length].tobytes())
        if header["key"] != key:
            raise CorruptFileError(f"it is about {header['key']!r}, not {key!r}")
        if header["stamp"] != stamp:
            return None
        body = raw[_HEAD + length :]
        return {name: _view(body, *entry) for name, *entry in header["arrays"]}
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise CorruptFileError(f"its header is wrong: {error}") from error


def checked_load(
    kind: str, key: str, stamp: str, restore: Callable[[dict[str, np.ndarray]], T]
) -> T | None:
    """What `restore` makes of the arrays of (`kind`, `key`), to which it writes nothing; None, with
    a CorruptCacheWarning, where the file is damaged or `restore` finds that it holds something
    else: it may raise CorruptFileError, KeyError, TypeError, ValueError, IndexError,
    AttributeError."""
    try:
        arrays = load_arrays(kind, key, stamp)
        if arrays is None:
            return None
        restored = restore(arrays)
        _let_go(arrays)
        return restored
    except (CorruptFileError, LookupError, TypeError, ValueError, AttributeError) as error:
        said = f"it holds nothing called {error}" if isinstance(error, KeyError) else str(error)
        message = f"the cache file {arrays_path(kind, key)} is of no use: {said}. It is rebuilt"
        warnings.warn(message, CorruptCacheWarning, stacklevel=3)
        return None


def _mapped(path: Path) -> np.ndarray | None:
    if not _private(path.parent):
        return None
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        if not _owned(status):
            _distrust(str(path), "belongs to another user")
            return None
        if not status.st_size or not stat.S_ISREG(status.st_mode):  # cannot be mapped
            return np.empty(0, dtype=np.uint8)
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY), dtype=np.uint8)


def _let_go(arrays: dict[str, np.ndarray]) -> None:
    """Forget the pages of the file that were read to check it: those that are needed come again.
    Of Llama-3's automaton that is less than half. (Had one been written to, that would be lost.)"""
    base: Any = next(iter(arrays.values()), None)
    while isinstance(base, np.ndarray):
        base = base.base
    base = base.obj if isinstance(base, memoryview) else base
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
        base.madvise(mmap.MADV_DONTNEED)


def _checked(raw: np.ndarray) -> int:
    """The length of the header. Raises CorruptFileError."""
    if len(raw) < _HEAD or raw[: len(_MAGIC)].tobytes() != _MAGIC:
        raise CorruptFileError("it does not begin as such a file does")
    checksum, length = raw[len(_MAGIC) : _HEAD].view("<i8").tolist()
    if zlib.crc32(raw.data[_SUMMED:]) != checksum:
        raise CorruptFileError("its content is damaged or cut short: the checksum is wrong")
    if not 0 <= length <= len(raw) - _HEAD:
        raise CorruptFileError("its header is longer than the file")
    return int(length)


def _view(
    body: np.ndarray, dtype: str, shape: list[int], offset: int, writeable: bool
) -> np.ndarray:
    if dtype not in _DTYPES or not all(type(n) is int and n >= 0 for n in (*shape, offset)):
        raise CorruptFileError(f"no array is {dtype!r} {shape!r} at {offset!r}")
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    if offset % _ALIGNMENT or offset + size > len(body):
        raise CorruptFileError(f"an array of {size} bytes at {offset} is not in the file")
    array = body[offset : offset + size].view(kind).reshape(shape)
    if kind.kind == "b" and size and array.view(np.uint8).max() > 1:
        raise CorruptFileError("a truth value is neither 0 nor 1")
    array.flags.writeable = bool(writeable)
    return array
