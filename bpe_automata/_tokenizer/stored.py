"""The disk cache of tokenizers: a tokenizer that was read and checked once is not parsed again.

An entry is stored under a digest of all that the tokenizer is read from, content and options, and
is valid for the same versions of the libraries and of this package. It has two files. The first
holds what constraints need: the facts of the description, and the bytes of each id. The second is
loaded on the first `encode`, or to build the automaton: the merges, and the content from which the
library makes the tokenizer.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from bpe_automata._sharing import cached
from bpe_automata._storage import CorruptFileError, cache_is_off, checked_load, store_arrays
from bpe_automata._tokenizer.description import (
    AddedToken,
    Description,
    Normalization,
    Prefix,
    SplitRule,
)
from bpe_automata._tokenizer.source import Backend, CharacterEngine, Origin, Source
from bpe_automata.errors import BrokenTokenizerError

FEWEST_IDS = 4096
"""Smaller tokenizers are read as fast as they are loaded from the cache."""

_FACTS, _SOURCE = "tokenizer", "source"  # the two files
_IN_SECOND = ("merges", "tied", "base")  # fields of a description that the second file holds
_Arrays = dict[str, np.ndarray]


def load(origin: Origin) -> Source | None:
    """The stored tokenizer, None if there is none that is valid. Warns of a damaged file."""
    if origin.key is None or cache_is_off():
        return None
    return checked_load(_FACTS, origin.key, _stamp(), lambda arrays: _loaded(origin, arrays))


def store(origin: Origin, source: Source) -> None:
    """Store a checked tokenizer whose backend can be made again from its `made_from`."""
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
    """Digest of the sources of a subpackage (of no bytes, where sources are not shipped)."""
    digest = hashlib.sha256()
    for file in sorted((Path(__file__).parents[1] / folder).rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _stamp() -> str:
    return f"{digest_of_sources('_tokenizer')} {digest_of_sources('_kernels')}"


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
        "splitters": _values(description.splitters),
        "added": _values(description.added),
        "lost": _values(description.lost),
        "normalizers": [{**vars(step), "apply": None} for step in steps],
    }
    data, starts = _concatenated(token or b"" for token in description.tokens)
    missing = np.array([token is None for token in description.tokens])
    text = np.frombuffer(json.dumps(facts).encode(), np.uint8)
    return {"facts": text, "tokens": data, "starts": starts, "missing": missing}


def _values(values: Iterable[Any]) -> list[list[Any]]:
    return [[getattr(value, field.name) for field in fields(value)] for value in values]


def _concatenated(parts: Iterable[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """(uint8, int64 [n + 1]): the bytes of all parts, and where each begins."""
    parts = list(parts)
    starts = np.zeros(len(parts) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=starts[1:])
    return np.frombuffer(b"".join(parts), np.uint8), starts


def _split(data: np.ndarray, starts: np.ndarray) -> Iterator[bytes]:
    """The parts of `_concatenated`. Raises CorruptFileError."""
    if (np.diff(starts) < 0).any() or starts[0] != 0 or starts[-1] != len(data):
        raise CorruptFileError("its parts are not those of its bytes")
    whole, ends = data.tobytes(), starts.tolist()
    return (whole[start:end] for start, end in pairwise(ends))


def _loaded(origin: Origin, arrays: _Arrays) -> Source | None:
    """None where a library has another version by now. Raises CorruptFileError and others for
    arrays that are not those of a tokenizer."""
    facts = json.loads(arrays["facts"].tobytes())
    if not all(map(_is_installed, facts["libraries"])):
        return None
    source = _SourceFile(origin, facts["fingerprint"])
    description = object.__new__(_StoredDescription)
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
    backend = _StoredBackend(facts["backend"], facts["settings"], description, source)
    text = source.text if facts["has_json"] else None
    eos = tuple(facts["eos_ids"])
    return Source(description, backend, origin.name, facts["fingerprint"], eos, text, checked=True)


@cache
def _is_installed(library: str) -> bool:
    """Is the library installed in exactly this version?"""
    name, _, version = library.partition(" ")
    if name == "unicodedata":
        return version == unicodedata.unidata_version
    try:
        return importlib.metadata.version(name) == version
    except importlib.metadata.PackageNotFoundError:
        return False


def _normalization(step: dict[str, Any]) -> Normalization:
    from bpe_automata._tokenizer.sources.json_normalizer import with_apply

    return with_apply(Normalization(**step))


class _StoredDescription(Description):
    """A description whose larger fields are decoded on first use."""

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        if name == "tokens" and "_arrays" in own:
            arrays = own["_arrays"]
            parts = _split(arrays["tokens"], arrays["starts"])
            pairs = zip(parts, arrays["missing"].tolist(), strict=True)
            found: Any = tuple(None if missing else part for part, missing in pairs)
        elif name in _IN_SECOND and "_source" in own:
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


# ---------------------------------------------------------------- the second file


def _source_arrays(description: Description, content: bytes) -> _Arrays:
    data, starts = _concatenated(description.base)
    return {
        "merges": description.merges,
        "tied": description.tied,
        "base": data,
        "base_starts": starts,
        "base_ids": np.fromiter(description.base.values(), np.int64, len(description.base)),
        "content": np.frombuffer(content, np.uint8),
    }


class _SourceFile:
    """The second file, loaded on first use, or made anew if it is gone or damaged."""

    def __init__(self, origin: Origin, fingerprint: str) -> None:
        self._origin = replace(origin, read=origin.read_again)  # which holds no content
        self._fingerprint = fingerprint

    @cached
    def _arrays(self) -> _Arrays:
        key = str(self._origin.key)
        found = checked_load(_SOURCE, key, _stamp(), lambda arrays: arrays)
        return self._read_again() if found is None else found

    def _read_again(self) -> _Arrays:
        """Raises BrokenTokenizerError where the origin holds another tokenizer by now."""
        source = self._origin.read_again()
        if source.fingerprint != self._fingerprint:
            raise BrokenTokenizerError(
                f"{self._origin.name} holds another tokenizer than the one that was loaded, and "
                "the rest of that one is no longer in the cache: load it again"
            )
        _, content = source.backend.made_from()  # type: ignore[attr-defined]
        arrays = _source_arrays(source.description, content)
        store_arrays(_SOURCE, str(self._origin.key), _stamp(), arrays)
        return arrays

    def of_description(self, field: str) -> Any:
        arrays = self._arrays
        if field != "base":
            return arrays[field]
        parts = _split(arrays["base"], arrays["base_starts"])
        return dict(zip(parts, arrays["base_ids"].tolist(), strict=True))

    def content(self) -> bytes:
        return self._arrays["content"].tobytes()

    def text(self) -> str:
        return self.content().decode()


class _StoredBackend:
    """A `Backend`, and its own engine, that makes the library's tokenizer on first use."""

    def __init__(
        self, name: str, settings: dict[str, Any], description: Description, source: _SourceFile
    ) -> None:
        self.name = name
        self._settings, self._description, self._source = settings, description, source

    @cached
    def _backend(self) -> Backend:
        library = self.name.partition(" ")[0]
        if library == "tokenizers":
            from bpe_automata._tokenizer.engines import HuggingFace

            return HuggingFace(self._source.text(), self.name)
        if library == "sentencepiece":
            from bpe_automata._tokenizer.sources.sentencepiece import SentencePiece

            return SentencePiece(self._source.content(), self.name)
        from bpe_automata._tokenizer.sources.tiktoken import Tiktoken

        return Tiktoken.made_again(self._description, **self._settings)

    @property
    def engine(self) -> CharacterEngine:
        return self

    @property
    def dialect(self) -> str:
        return self._backend.engine.dialect

    def members(self, kind: str, pattern: str, text: str) -> Iterator[tuple[int, int]]:
        return self._backend.engine.members(kind, pattern, text)

    def encode(self, text: str) -> list[int]:
        return self._backend.encode(text)

    def around(self, text: str) -> list[int]:
        found: list[int] = getattr(self._backend, "around", self._backend.encode)(text)
        return found

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        return self._backend.encode_batch(texts)

    def decode(self, ids: list[int]) -> str:
        return self._backend.decode(ids)

    def __reduce__(self) -> tuple[object, ...]:
        return _unchanged, (self._backend,)


def _unchanged(backend: Backend) -> Backend:
    return backend
