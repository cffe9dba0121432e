"""What a file is, by its content: the one way in for everything that has a path."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

from bpe_automata.errors import (
    ONLY_BPE,
    BpeAutomataError,
    BrokenTokenizerError,
    MissingFileError,
    TokenizerError,
)
from bpe_automata.tokenizer.backend import Source
from bpe_automata.tokenizer.sources.gguf_file import read_gguf
from bpe_automata.tokenizer.sources.json_file import read_json_file
from bpe_automata.tokenizer.sources.sentencepiece_model import read_sentencepiece
from bpe_automata.tokenizer.sources.tiktoken_ranks import read_tiktoken

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

_PROTO_FIELDS = (b"\n", b"\x12", b"\x1a")
"""How a SentencePiece model can begin: the pieces, the trainer's or the normalizer's settings."""

_GARBLED = (
    *(ValueError, TypeError, LookupError, ArithmeticError, AttributeError, struct.error),
    *(RecursionError, MemoryError),
)
"""What readers stumble over in a file that has been damaged, or made to break them."""


def read_path(path: Path, name: str | None = None, **options: Any) -> Source:
    """The tokenizer at `path`: a file, or a folder that holds one (a `tokenizer.json` first, then
    `tokenizer.model`, `tekken.json`, others by their endings).

    `name`: what the tokenizer is called instead of its path; `options`: for a tiktoken rank file,
    see `read_tiktoken`.

    Raises MissingFileError, MissingDependencyError, BrokenTokenizerError,
    UnsupportedTokenizerError; TokenizerError for options that are missing or not wanted."""
    file = _inside(path) if path.is_dir() else path
    if not file.is_file():
        raise MissingFileError(
            f"there is no tokenizer at {path}: give a file, a folder that holds one of "
            f"{', '.join(_IN_FOLDERS)}, a name out of bpe_automata.tokenizer.sources.names(), or "
            "(with tiktoken installed) the name of an encoding of tiktoken or of its model"
        )
    try:
        return _read(file, name or str(file), options)
    except BpeAutomataError:
        raise
    except _GARBLED as error:
        raise BrokenTokenizerError(
            f"{file} is damaged, or no tokenizer: {type(error).__name__} {error}"
        ) from error


def _read(file: Path, name: str, options: dict[str, Any]) -> Source:
    with file.open("rb") as stream:
        start = stream.read(4096)
    if _RANK_LINE.match(start) and file.suffix != ".json":
        return read_tiktoken(file.read_bytes(), name, **_rank_options(file, options))
    is_gguf = start.startswith(b"GGUF") or file.suffix == ".gguf"
    if unknown := set(options).difference(_GGUF_OPTIONS if is_gguf else ()):
        raise TokenizerError(
            f"{file} is no tiktoken rank file, so it takes no options: {', '.join(sorted(unknown))}"
        )
    if is_gguf:
        return read_gguf(file, name, **options)
    if _is_json(start) or file.suffix == ".json":
        return read_json_file(file, file.read_bytes(), name)
    if start[:1] in _PROTO_FIELDS:
        return read_sentencepiece(file.read_bytes(), name)
    raise BrokenTokenizerError(
        f"{file} is not a tokenizer of a kind that is read: not JSON, GGUF, a SentencePiece model "
        f"or tiktoken ranks; it begins with {start[:20]!r}. CLIP's and RWKV's vocabularies are "
        f"not read: {ONLY_BPE}"
    )


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
    """Text that begins an object. A SentencePiece model can begin alike, but holds zero bytes."""
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
