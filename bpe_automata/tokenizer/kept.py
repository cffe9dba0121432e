"""Tokenizers that were read before, out of the disk cache: their files are not parsed again.

An entry is kept under a digest of all that the tokenizer is read from, content and options, once it
has been tried; versions of the libraries, and the sources of this package, are part of what it is.
Of its two files one has what constraints ask for: plain facts, and the bytes of each id. The other
is looked at when something is encoded, or the automaton is built: merges, and what the library
makes the tokenizer from.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from bpe_automata.errors import BrokenTokenizerError
from bpe_automata.sharing import cached
from bpe_automata.storage import CorruptFileError, cache_is_off, checked_load, store_arrays
from bpe_automata.tokenizer.backend import Backend, CharacterEngine, Source
from bpe_automata.tokenizer.description import (
    AddedToken,
    Description,
    Normalization,
    Prefix,
    SplitRule,
)

FEWEST_IDS = 4096
"""Smaller tokenizers are read as fast as they are loaded."""

_FACTS, _SOURCE = "tokenizer", "source"  # the two files
_HEAVY = ("merges", "tied", "base")  # fields of a description that are in the second file
_Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Origin:
    """What a tokenizer is read from. key: digest of all of it, None where that is not known yet;
    read: reads it; again: the same later on, without holding what was read; key_of: the key, once
    it has been read (None: it has changed meanwhile)."""

    key: str | None
    name: str
    read: Callable[[], Source]
    again: Callable[[], Source]
    key_of: Callable[[Source], str | None] = lambda _: None


def load(origin: Origin) -> Source | None:
    """The tokenizer, if it was kept, as it is now. Warns of a damaged file."""
    if origin.key is None or cache_is_off():
        return None
    return checked_load(_FACTS, origin.key, _stamp(), lambda arrays: _restored(origin, arrays))


def store(origin: Origin, source: Source) -> None:
    """Keep a tokenizer that was read and tried, where its library says what it is made from."""
    key = origin.key or origin.key_of(source)
    made_from = getattr(source.backend, "made_from", None)
    if key is None or cache_is_off() or len(source.description.tokens) < FEWEST_IDS:
        return
    if made_from is None or source.backend.engine.name != source.backend.name:
        return
    settings, content = made_from()
    store_arrays(_SOURCE, key, _stamp(), _source_arrays(source.description, content))
    store_arrays(_FACTS, key, _stamp(), _fact_arrays(source, settings))


@cache
def digest_of_sources(folder: str) -> str:
    """Digest of the sources of a part of this package (of no bytes, where they are not shipped)."""
    digest = hashlib.sha256()
    for file in sorted((Path(__file__).parents[1] / folder).rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _stamp() -> str:
    return f"{digest_of_sources('tokenizer')} {digest_of_sources('kernels')}"


# ---------------------------------------------------------------- the first file


def _fact_arrays(source: Source, settings: dict[str, Any]) -> _Arrays:
    description = source.description
    steps = description.normalizers
    facts = {
        "libraries": sorted({source.backend.name, *(step.library for step in steps)}),
        "backend": source.backend.name,
        "settings": settings,
        "fingerprint": source.fingerprint,
        "eos_ids": source.eos_ids,
        "has_json": source.json is not None,
        "byte_level": description.byte_level,
        "ignore_merges": description.ignore_merges,
        "unreadable": description.unreadable,
        "prefix": description.prefix.name,
        "controls": sorted(description.controls),
        "byte_tokens": list(description.byte_tokens.items()),
        "splitters": _rows(description.splitters),
        "added": _rows(description.added),
        "lost": _rows(description.lost),
        "normalizers": [{**vars(step), "apply": None} for step in steps],
    }
    data, starts = _joined(token or b"" for token in description.tokens)
    missing = np.array([token is None for token in description.tokens])
    text = np.frombuffer(json.dumps(facts).encode(), np.uint8)
    return {"facts": text, "tokens": data, "starts": starts, "missing": missing}


def _rows(values: Iterable[Any]) -> list[list[Any]]:
    return [[getattr(value, field.name) for field in fields(value)] for value in values]


def _joined(parts: Iterable[bytes]) -> tuple[np.ndarray, np.ndarray]:
    parts = list(parts)
    starts = np.zeros(len(parts) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=starts[1:])
    return np.frombuffer(b"".join(parts), np.uint8), starts


def _parted(data: np.ndarray, starts: np.ndarray) -> Iterator[bytes]:
    """Raises CorruptFileError."""
    if (np.diff(starts) < 0).any() or starts[0] != 0 or starts[-1] != len(data):
        raise CorruptFileError("its parts are not those of its bytes")
    whole, ends = data.tobytes(), starts.tolist()
    return (whole[start:end] for start, end in pairwise(ends))


def _restored(origin: Origin, arrays: _Arrays) -> Source | None:
    """Raises CorruptFileError and others for arrays that are none of a tokenizer."""
    facts = json.loads(arrays["facts"].tobytes())
    if not all(map(_is_installed, facts["libraries"])):
        return None
    source = _SourceFile(origin, facts["fingerprint"])
    description = object.__new__(_Kept)
    description.__dict__.update(
        _arrays=arrays,
        _source=source,
        byte_level=facts["byte_level"],
        ignore_merges=facts["ignore_merges"],
        unreadable=facts["unreadable"],
        prefix=Prefix[facts["prefix"]],
        controls=frozenset(facts["controls"]),
        byte_tokens=dict(facts["byte_tokens"]),
        splitters=tuple(SplitRule(*row) for row in facts["splitters"]),
        added=tuple(AddedToken(*row) for row in facts["added"]),
        lost=tuple(AddedToken(*row) for row in facts["lost"]),
        normalizers=tuple(map(_normalization, facts["normalizers"])),
    )
    backend = _KeptBackend(facts["backend"], facts["settings"], description, source)
    text = source.text if facts["has_json"] else None
    eos = tuple(facts["eos_ids"])
    return Source(description, backend, origin.name, facts["fingerprint"], eos, text, tried=True)


@cache
def _is_installed(library: str) -> bool:
    """Is it there, in the very version?"""
    name, _, version = library.partition(" ")
    if name == "unicodedata":
        return version == unicodedata.unidata_version
    try:
        return importlib.metadata.version(name) == version
    except importlib.metadata.PackageNotFoundError:
        return False


def _normalization(step: dict[str, Any]) -> Normalization:
    from bpe_automata.tokenizer.read_normalizer import made_again

    return made_again(Normalization(**{**step, "pattern": tuple(step["pattern"])}))


class _Kept(Description):
    """A description whose parts are made when they are asked for."""

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        if name == "tokens" and "_arrays" in own:
            arrays = own["_arrays"]
            parts = _parted(arrays["tokens"], arrays["starts"])
            pairs = zip(parts, arrays["missing"].tolist(), strict=True)
            found: Any = tuple(None if missing else part for part, missing in pairs)
        elif name in _HEAVY and "_source" in own:
            found = own["_source"].of_description(name)
        else:
            raise AttributeError(name)
        return own.setdefault(name, found)

    @property
    def n_ids(self) -> int:
        arrays = self.__dict__.get("_arrays")
        return len(self.tokens) if arrays is None else len(arrays["missing"])

    def __reduce__(self) -> tuple[object, ...]:
        return Description, tuple(getattr(self, field.name) for field in fields(Description))


# ---------------------------------------------------------------- the second


def _source_arrays(description: Description, content: bytes) -> _Arrays:
    data, starts = _joined(description.base)
    return {
        "merges": description.merges,
        "tied": description.tied,
        "base": data,
        "base_starts": starts,
        "base_ids": np.fromiter(description.base.values(), np.int64, len(description.base)),
        "content": np.frombuffer(content, np.uint8),
    }


class _SourceFile:
    """The second file. Where it is gone or damaged, the tokenizer is read again."""

    def __init__(self, origin: Origin, fingerprint: str) -> None:
        self._origin, self._fingerprint = origin, fingerprint

    @cached
    def _arrays(self) -> _Arrays:
        key = str(self._origin.key)
        found = checked_load(_SOURCE, key, _stamp(), lambda arrays: arrays)
        return self._read_again() if found is None else found

    def _read_again(self) -> _Arrays:
        """Raises BrokenTokenizerError where it is another one by now."""
        read = self._origin.again()
        if read.fingerprint != self._fingerprint:
            raise BrokenTokenizerError(
                f"{self._origin.name} is another tokenizer by now than the one that was loaded, "
                "and the rest of that one is not in the cache any more: load it again"
            )
        _, content = read.backend.made_from()  # type: ignore[attr-defined]
        arrays = _source_arrays(read.description, content)
        store_arrays(_SOURCE, str(self._origin.key), _stamp(), arrays)
        return arrays

    def of_description(self, field: str) -> Any:
        arrays = self._arrays
        if field != "base":
            return arrays[field]
        parts = _parted(arrays["base"], arrays["base_starts"])
        return dict(zip(parts, arrays["base_ids"].tolist(), strict=True))

    def content(self) -> bytes:
        return self._arrays["content"].tobytes()

    def text(self) -> str:
        return self.content().decode()


class _KeptBackend:
    """A `Backend`, and its own engine, that makes the library's tokenizer when it is asked for."""

    def __init__(
        self, name: str, settings: dict[str, Any], description: Description, source: _SourceFile
    ) -> None:
        self.name = name
        self._settings, self._description, self._source = settings, description, source

    @cached
    def _real(self) -> Backend:
        library = self.name.partition(" ")[0]
        if library == "tokenizers":
            from bpe_automata.tokenizer.huggingface import HuggingFace

            return HuggingFace(self._source.text(), self.name)
        if library == "sentencepiece":
            from bpe_automata.tokenizer.sources.sentencepiece_model import SentencePiece

            return SentencePiece(self._source.content(), self.name)
        from bpe_automata.tokenizer.sources.tiktoken_ranks import Tiktoken

        return Tiktoken.made_again(self._description, **self._settings)

    @property
    def engine(self) -> CharacterEngine:
        return self

    @property
    def dialect(self) -> str:
        return self._real.engine.dialect

    def members(self, kind: str, pattern: str, text: str) -> Iterator[tuple[int, int]]:
        return self._real.engine.members(kind, pattern, text)

    def encode(self, text: str) -> list[int]:
        return self._real.encode(text)

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        return self._real.encode_batch(texts)

    def decode(self, ids: list[int]) -> str:
        return self._real.decode(ids)

    def __reduce__(self) -> tuple[object, ...]:
        return _itself, (self._real,)


def _itself(backend: Backend) -> Backend:
    return backend
