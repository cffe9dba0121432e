"""The entry point for tokenizers with a path. The kind of a file is determined by its content."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from bpe_automata.errors import (
    ONLY_BPE,
    BpeAutomataError,
    BrokenTokenizerError,
    MissingFileError,
    TokenizerError,
)
from bpe_automata.tokenizer.source import (
    CONFIG,
    GENERATION,
    Origin,
    Source,
    field_of,
    fingerprint,
)

_IN_FOLDERS = (
    "tokenizer.json",
    "tokenizer.model",
    "tekken.json",
    "tokenizer.model.*",
    "tekken*.json",
    "*.model",
    "*.tiktoken",
    "*.gguf",
)
_RANK_LINE = re.compile(rb"\s*[A-Za-z0-9+/]*={0,2}[ \t]+[0-9]+[ \t]*(\r?\n|$)")
_RANK_OPTIONS = ("pattern", "special_tokens", "normalize", "eos")
_GGUF_OPTIONS = ("pretokenizer",)

_START = 4096  # bytes that determine the kind of a file

_PROTO_FIELDS = (b"\n", b"\x12", b"\x1a")
"""How a SentencePiece model can begin: the pieces, the trainer's or the normalizer's settings."""

_GARBLED = (
    *(ValueError, TypeError, LookupError, ArithmeticError, AttributeError, struct.error),
    *(RecursionError, MemoryError),
)
"""What readers raise on a file that was damaged, or crafted to break them."""


def path_origin(
    path: Path, name: str | None = None, names: Iterable[str] = (), **options: Any
) -> Origin:
    """The origin of the tokenizer at `path`: a file, or a folder that holds one (a `tokenizer.json`
    first, then `tokenizer.model`, `tekken.json`, then others by their suffixes).

    `name`: the tokenizer's name, by default its path; `names`: for the error message, names that
    could be given; `options`: for a tiktoken rank file, see `read_tiktoken`; for a GGUF file, see
    `read_gguf`. A GGUF file holds gigabytes of tensors after the metadata, so its key is made of
    its first bytes, size, times and inode, not of its whole content.

    Raises MissingFileError; TokenizerError for options that are missing or superfluous. Reading
    raises MissingDependencyError, BrokenTokenizerError, UnsupportedTokenizerError."""
    file = _inside(path) if path.is_dir() else path
    if not file.is_file():
        raise MissingFileError(
            f"there is no tokenizer at {path}: give a file, a folder that holds one of "
            f"{', '.join(_IN_FOLDERS)}, or one of the names {', '.join(names) or '(none)'}, or "
            "(with tiktoken installed) the name of an encoding of tiktoken or of its model. For a "
            "model of the Hugging Face Hub, give what transformers.AutoTokenizer.from_pretrained "
            "makes of its name"
        )
    with file.open("rb") as stream:
        start = stream.read(_START)
        kind = _kind(file, start, options)
        whose = os.fstat(stream.fileno())
        content = b"" if kind == "gguf" else start + stream.read()
    read = partial(_read, file, kind, content, name or str(file), options)
    if kind == "gguf":
        times = whose.st_mtime_ns, whose.st_ctime_ns
        identity = repr((whose.st_dev, whose.st_ino, whose.st_size, *times))
        key = fingerprint(kind, start, identity, _written(options))
        return Origin(key, name or str(file), read)
    config = _sibling(file, CONFIG) if kind == "json" else None
    generation = _sibling(file, GENERATION)
    siblings = ("" if each is None else b"+" + each for each in (config, generation))
    key = fingerprint(kind, content, _written(options), *siblings)
    read = partial(read, config=config, generation=generation)
    return Origin(key, name or str(file), read)


def _sibling(file: Path, name: str) -> bytes | None:
    """The content of the file with this name in the same folder, None if there is none."""
    found = file.with_name(name)
    return found.read_bytes() if found.is_file() else None


def _with_ends(source: Source, path: Path, generation: bytes) -> Source:
    """The source with the end-of-sequence ids of the `generation_config.json` at `path` as well;
    ids that the tokenizer does not have are dropped, as no mask has a bit for them."""
    named = field_of(path, generation, "eos_token_id")
    ids = named if isinstance(named, list) else [] if named is None else [named]
    if not all(type(token) is int for token in ids):
        raise BrokenTokenizerError(
            f"eos_token_id of {path} is {named!r}: it must be an id, a list of ids, or null"
        )
    valid = (token for token in ids if 0 <= token < source.description.n_ids)
    return replace(source, eos_ids=tuple(dict.fromkeys([*source.eos_ids, *valid])))


def _read(
    file: Path,
    kind: str,
    content: bytes,
    name: str,
    options: dict[str, Any],
    config: bytes | None = None,
    generation: bytes | None = None,
) -> Source:
    """`config`: the content of the `tokenizer_config.json` next to a `tokenizer.json`;
    `generation`: that of the `generation_config.json` next to any file but a GGUF file."""
    source = _read_kind(file, kind, content, name, options, config)
    if generation is None:
        return source
    return _with_ends(source, file.with_name(GENERATION), generation)


def _read_kind(
    file: Path,
    kind: str,
    content: bytes,
    name: str,
    options: dict[str, Any],
    config: bytes | None,
) -> Source:
    try:
        match kind:
            case "ranks":
                from bpe_automata.tokenizer.sources.tiktoken import read_tiktoken

                return read_tiktoken(content, name, **_rank_options(file, options))
            case "gguf":
                from bpe_automata.tokenizer.sources.gguf import read_gguf

                return read_gguf(file, name, **options)
            case "json":
                from bpe_automata.tokenizer.sources.tokenizer_json import read_json_file

                return read_json_file(file, content, name, config)
            case _:
                from bpe_automata.tokenizer.sources.sentencepiece import read_sentencepiece

                return read_sentencepiece(content, name)
    except BpeAutomataError:
        raise
    except _GARBLED as error:
        raise BrokenTokenizerError(
            f"{file} is damaged, or no tokenizer: {type(error).__name__} {error}"
        ) from error


def _kind(file: Path, start: bytes, options: dict[str, Any]) -> str:
    """The kind of file. Raises TokenizerError for options that its kind does not take."""
    if _RANK_LINE.match(start) and file.suffix != ".json":
        return "ranks"
    is_gguf = start.startswith(b"GGUF") or file.suffix == ".gguf"
    if unknown := set(options).difference(_GGUF_OPTIONS if is_gguf else ()):
        raise TokenizerError(
            f"{file} is no tiktoken rank file, so it takes no options: {', '.join(sorted(unknown))}"
        )
    if is_gguf:
        return "gguf"
    if _is_json(start) or file.suffix == ".json":
        return "json"
    if start[:1] in _PROTO_FIELDS:
        return "sentencepiece"
    raise BrokenTokenizerError(
        f"{file} is not a tokenizer of a kind that is read: not JSON, GGUF, a SentencePiece model "
        f"or tiktoken ranks; it begins with {start[:20]!r}. CLIP's and RWKV's vocabularies are "
        f"not read: {ONLY_BPE}"
    )


def _written(options: dict[str, Any]) -> str:
    """The options as part of a key."""
    items = sorted(options.items())
    return repr([(k, dict(v) if isinstance(v, Mapping) else v) for k, v in items])


# ---------------------------------------------------------------- folders, options


def _inside(folder: Path) -> Path:
    """The tokenizer file of a folder."""
    for pattern in _IN_FOLDERS:
        found = sorted(file for file in folder.glob(pattern) if file.is_file())
        if len(found) > 1:
            raise MissingFileError(
                f"{folder} holds several tokenizers, "
                f"{', '.join(file.name for file in found)}: give the path of one"
            )
        if found:
            return found[0]
    return folder


def _is_json(start: bytes) -> bool:
    """Does a JSON object begin here? A SentencePiece model may begin alike, but has zero bytes."""
    return start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{" and b"\0" not in start


def _rank_options(file: Path, options: dict[str, Any]) -> dict[str, Any]:
    unknown = sorted(set(options).difference(_RANK_OPTIONS))
    missing = sorted({"pattern", "special_tokens"}.difference(options))
    if unknown:
        raise TokenizerError(
            f"{file} is a tiktoken rank file; its options are {', '.join(_RANK_OPTIONS)}, "
            f"not {', '.join(unknown)}"
        )
    if missing:
        raise TokenizerError(
            f"{file} is a tiktoken rank file, which does not say how the text is split, nor the "
            f"special tokens. Give both: Tokenizer.load({str(file)!r}, pattern=r'...', "
            "special_tokens={'<|endoftext|>': 50256}). Tokenizer.load('llama-3') and the other "
            "names in bpe_automata.tokenizer.sources.names() bring their own"
        )
    return options
