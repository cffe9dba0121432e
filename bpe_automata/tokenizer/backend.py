"""The library that runs a tokenizer: its `encode` is the truth, its regex engine says what a class
of characters is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from bpe_automata.tokenizer.description import Description


class CharacterEngine(Protocol):
    """Says which characters a one-character pattern matches.

    `name`: library and version, the key under which answers are kept; `dialect`: "oniguruma" or
    "fancy-regex", which syntax its patterns have."""

    @property
    def name(self) -> str: ...

    @property
    def dialect(self) -> str: ...

    def members(self, kind: str, pattern: str, text: str) -> Iterator[tuple[int, int]]:
        """The spans of `text` that consist of matching characters; neighbours may touch.

        kind: "regex" (pattern is a one-character regex), or the name of a class such as "digits".
        Raises BrokenTokenizerError for a pattern that the engine rejects."""


class Backend(Protocol):
    """What a tokenizer runs on. `name`: library and version; `engine`: its character engine."""

    @property
    def name(self) -> str: ...

    @property
    def engine(self) -> CharacterEngine: ...

    def encode(self, text: str) -> list[int]:
        """The ids of `text`: added tokens are read, nothing is added around them."""

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        """`encode` of many texts."""

    def decode(self, ids: list[int]) -> str:
        """The text of the ids as the library gives it, special tokens included."""


@dataclass(frozen=True)
class Source:
    """What a reader makes of a tokenizer file. `fingerprint`: sha256 (hex) of the tokenizer's own
    bytes and of everything else that its `encode` depends on; `json`: the content of an equal
    `tokenizer.json`, where the source is one, or what reads it; `tried`: has it been held against
    the library before? `extent`: how many bytes at the beginning of the file it is made of, None
    for all."""

    description: Description
    backend: Backend
    name: str
    fingerprint: str
    eos_ids: tuple[int, ...] = ()
    json: str | Callable[[], str] | None = None
    tried: bool = False
    extent: int | None = None
