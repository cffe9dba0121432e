"""What a reader makes of a tokenizer file: a description, and the library that runs the tokenizer.

The library's `encode` defines which ids are canonical, and its regex engine defines the classes of
characters. An `Origin` says where a tokenizer would be read from, without reading it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bpe_automata.errors import BrokenTokenizerError
from bpe_automata.tokenizer.description import Description

INSTALL_TIKTOKEN = "pip install 'bpe-automata[tiktoken]'"
CONFIG = "tokenizer_config.json"  # next to a `tokenizer.json`; it names the end of sequence
GENERATION = "generation_config.json"  # next to a tokenizer; it lists all ids that end a sequence


class CharacterEngine(Protocol):
    """Says which characters a one-character pattern matches.

    `name`: library and version, the key under which its classes are stored; `dialect`: the syntax
    of its patterns, "oniguruma" or "fancy-regex"."""

    @property
    def name(self) -> str: ...

    @property
    def dialect(self) -> str: ...

    def members(self, kind: str, pattern: str, text: str) -> Iterator[tuple[int, int]]:
        """The spans (start, end) of `text` that consist of matching characters; they may touch.

        kind: "regex" (`pattern` is a one-character regex), or the name of a class such as "digits".
        Raises BrokenTokenizerError for a pattern that the engine rejects."""


class Backend(Protocol):
    """The library that runs a tokenizer. `name`: library and version; `engine`: its regexes."""

    @property
    def name(self) -> str: ...

    @property
    def engine(self) -> CharacterEngine: ...

    def encode(self, text: str) -> list[int]:
        """The ids of `text`, added tokens recognized, without ids put before or after."""

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        """`encode` of many texts."""

    def decode(self, ids: list[int]) -> str:
        """The text of the ids as the library gives it, special tokens included."""


@dataclass(frozen=True)
class Source:
    """What a reader makes of a tokenizer file. `fingerprint`: sha256 (hex) of the tokenizer's own
    bytes and of everything else that its `encode` depends on; `json`: the content of an equal
    `tokenizer.json`, or a function that reads it, None where there is none; `checked`: has it been
    compared with the library before?"""

    description: Description
    backend: Backend
    name: str
    fingerprint: str
    eos_ids: tuple[int, ...] = ()
    json: str | Callable[[], str] | None = None
    checked: bool = False


@dataclass(frozen=True)
class Origin:
    """Where a tokenizer is read from. key: digest of all that is read; read: reads it."""

    key: str
    name: str
    read: Callable[[], Source]


def fingerprint(*parts: bytes | str) -> str:
    """sha256 (hex) of the parts, each with its length, so that `ab, c` differs from `a, bc`."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def field_of(path: Path, content: bytes, field: str) -> Any:
    """A field of a JSON object, the content of the file at `path`; None if it has no such field.
    Raises BrokenTokenizerError."""
    try:
        return json.loads(content.decode("utf-8")).get(field)
    except (AttributeError, ValueError, RecursionError) as error:
        raise BrokenTokenizerError(f"{path} is not a JSON object: {error}") from error
