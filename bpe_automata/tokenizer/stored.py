"""The disk cache of tokenizers: a tokenizer that was read and checked once is not parsed again.

An entry is stored under a digest of all that the tokenizer is read from, content and options, and
is valid for the same versions of the libraries and of this package. It holds the description, and
the content from which the library makes the tokenizer, on the first `encode`.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import fields
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from bpe_automata._sharing import cached
from bpe_automata._storage import cache_is_off, checked_load, store_arrays
from bpe_automata.tokenizer.description import (
    AddedToken,
    Description,
    Normalization,
    Prefix,
    SplitRule,
)
from bpe_automata.tokenizer.source import Backend, CharacterEngine, Origin, Source

FEWEST_IDS = 4096
"""Smaller tokenizers are read as fast as they are loaded from the cache."""

_FOLDER = "tokenizer"
_Arrays = dict[str, np.ndarray]


def load(origin: Origin) -> Source | None:
    """The stored tokenizer; None if there is none, or it is not valid. Warns of a damaged file."""
    if cache_is_off():
        return None
    return checked_load(_FOLDER, origin.key, _stamp(), lambda arrays: _loaded(origin, arrays))


def store(origin: Origin, source: Source) -> None:
    """Store a checked tokenizer whose backend can be made again from its `made_from`."""
    made_from = getattr(source.backend, "made_from", None)
    if cache_is_off() or len(source.description.tokens) < FEWEST_IDS or made_from is None:
        return
    if source.backend.engine.name == source.backend.name:
        store_arrays(_FOLDER, origin.key, _stamp(), _arrays_of(source, *made_from()))


@cache
def digest_of_sources(folder: str) -> str:
    """Digest of the sources of a subpackage (of no bytes, where sources are not shipped). Raises
    FileNotFoundError if there is no such subpackage."""
    digest, root = hashlib.sha256(), Path(__file__).parents[1] / folder
    for file in sorted([*root.iterdir(), *root.glob("*/**/*")]):
        if file.suffix in (".py", ".pyx", ".pxd"):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def _stamp() -> str:
    return f"{digest_of_sources('tokenizer')} {digest_of_sources('_kernels')}"


# ---------------------------------------------------------------- a source as arrays, and back


def _arrays_of(source: Source, settings: dict[str, Any], content: bytes) -> _Arrays:
    description = source.description
    facts = {
        "libraries": sorted(
            {source.backend.name, *(step.library for step in description.normalizers)}
        ),
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
        "base": list(description.base.values()),
        "splitters": _values(description.splitters),
        "added": _values(description.added),
        "lost": _values(description.lost),
        "normalizers": [{**vars(step), "apply": None} for step in description.normalizers],
    }
    spelled = [*description.base, *(token or b"" for token in description.tokens)]
    return {
        "facts": np.frombuffer(json.dumps(facts).encode(), np.uint8),
        "spelled": np.frombuffer(b"".join(spelled), np.uint8),
        "ends": np.cumsum(list(map(len, spelled)), dtype=np.int64),
        "missing": np.array([token is None for token in description.tokens]),
        "merges": description.merges,
        "tied": description.tied,
        "content": np.frombuffer(content, np.uint8),
    }


def _values(values: Iterable[Any]) -> list[list[Any]]:
    return [[getattr(value, field.name) for field in fields(value)] for value in values]


def _loaded(origin: Origin, arrays: _Arrays) -> Source | None:
    """The source of stored arrays; None if a library has another version by now."""
    facts = json.loads(arrays["facts"].tobytes())
    if not all(map(_is_installed, facts["libraries"])):
        return None
    whole, ends = arrays["spelled"].tobytes(), arrays["ends"].tolist()
    spelled = [whole[start:end] for start, end in pairwise([0, *ends])]
    pairs = zip(spelled[len(facts["base"]) :], arrays["missing"].tolist(), strict=True)
    description = Description(
        tokens=tuple(None if missing else token for token, missing in pairs),
        merges=arrays["merges"],
        base=dict(zip(spelled, facts["base"], strict=False)),
        byte_level=facts["byte_level"],
        splitters=tuple(SplitRule(*row) for row in facts["splitters"]),
        added=tuple(AddedToken(*row) for row in facts["added"]),
        ignore_merges=facts["ignore_merges"],
        byte_tokens=dict(facts["byte_tokens"]),
        normalizers=tuple(map(_normalization, facts["normalizers"])),
        prefix=Prefix[facts["prefix"]],
        unreadable=facts["unreadable"],
        controls=frozenset(facts["controls"]),
        lost=tuple(AddedToken(*row) for row in facts["lost"]),
        tied=arrays["tied"],
    )
    content = arrays["content"]
    backend = _StoredBackend(facts["backend"], facts["settings"], description, content)
    text = (lambda: content.tobytes().decode()) if facts["has_json"] else None
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
    from bpe_automata.tokenizer.sources.json_normalizer import with_apply

    return with_apply(Normalization(**{**step, "pattern": tuple(step["pattern"])}))


class _StoredBackend:
    """A `Backend`, and its own engine, that makes the library's tokenizer on first use."""

    def __init__(
        self, name: str, settings: dict[str, Any], description: Description, content: np.ndarray
    ) -> None:
        self.name = name
        self._settings, self._description, self._content = settings, description, content

    @cached
    def _backend(self) -> Backend:
        library, content = self.name.partition(" ")[0], self._content.tobytes()
        if library == "tokenizers":
            from bpe_automata.tokenizer.engines import HuggingFace

            return HuggingFace(content.decode(), self.name)
        if library == "sentencepiece":
            from bpe_automata.tokenizer.sources.sentencepiece import SentencePiece

            return SentencePiece(content, self.name)
        from bpe_automata.tokenizer.sources.tiktoken import Tiktoken

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
