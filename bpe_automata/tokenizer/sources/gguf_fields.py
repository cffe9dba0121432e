"""The metadata of a GGUF file, read by the package `gguf`, without its tensors.

`gguf.GGUFReader` makes a NumPy view of a memory map for each number of each array, which takes ten
seconds for a vocabulary of 262,144 tokens; here an array is read in one go, and so are the strings.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bpe_automata.errors import BrokenTokenizerError
from bpe_automata.tokenizer.sources.optional import optional

_REQUIRED = object()

Fields = Callable[..., Any]
"""name -> value; a second argument is what a field that is not there is."""


def read_fields(path: Path) -> Fields:
    """The metadata fields by name. The function raises BrokenTokenizerError for a field that is not
    there, unless it is given a value for that case.

    Raises MissingDependencyError, BrokenTokenizerError."""
    return read_metadata(path)[0]


def read_metadata(path: Path) -> tuple[Fields, int]:
    """The same, and how many bytes at the beginning of the file they take."""
    reader_class = _metadata_reader()
    try:
        reader = reader_class(path)
    except (ValueError, IndexError, KeyError, OverflowError, struct.error) as error:
        raise BrokenTokenizerError(f"{path} is not a readable GGUF file: {error}") from error

    def field(name: str, absent: Any = _REQUIRED) -> Any:
        found = reader.get_field(name)
        if found is not None:
            return found.contents()
        if absent is _REQUIRED:
            raise BrokenTokenizerError(f"{path} has no field {name!r}")
        return absent

    return field, reader.extent


@cache
def _metadata_reader() -> type:
    gguf: Any = optional("gguf", "gguf", "reading a GGUF file")
    kinds, base = gguf.GGUFValueType, gguf.GGUFReader

    class MetadataReader(base):  # type: ignore[valid-type, misc]
        """Reads no tensors, and arrays of one dimension quickly. extent: bytes that come before
        what is said of the tensors."""

        extent = 0

        @property
        def data(self) -> np.ndarray:
            return self._plain

        @data.setter
        def data(self, value: np.ndarray) -> None:
            self._plain = np.asarray(value)  # slicing a memmap itself is several times slower

        def _build_tensor_info(self, offs: int, count: int) -> tuple[int, list[Any]]:
            self.extent = int(offs)
            return offs, []

        def _get_field_parts(self, orig_offs: int, raw_type: int) -> Any:
            if raw_type != kinds.ARRAY or self.byte_order == "S":
                return super()._get_field_parts(orig_offs, raw_type)
            item = kinds(struct.unpack_from("<I", self._plain.data, orig_offs)[0])
            start = orig_offs + 12
            (count,) = struct.unpack_from("<Q", self._plain.data, orig_offs + 4)
            if item == kinds.STRING:
                end, parts = _strings(self._plain, start, count)
            elif item == kinds.ARRAY:
                return super()._get_field_parts(orig_offs, raw_type)
            else:
                parts = [self._get(start, self.gguf_scalar_to_np[item], count)]
                end = start + parts[0].nbytes
                if len(parts[0]) != count:
                    raise ValueError("it ends inside an array")
            return end - orig_offs, parts, list(range(len(parts))), [kinds(raw_type), item]

    return MetadataReader


def _strings(data: np.ndarray, start: int, count: int) -> tuple[int, list[np.ndarray]]:
    """`count` strings, each after its length: (where they end, the bytes of each)."""
    length_of = struct.Struct("<Q").unpack_from
    buffer, at, found = data.data, start, []
    for _ in range(count):
        begin = at + 8
        at = begin + length_of(buffer, at)[0]
        if at > len(data):
            raise ValueError("it ends inside a string")
        found.append(data[begin:at])
    return at, found
