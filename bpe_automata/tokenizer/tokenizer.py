"""A tokenizer that is understood completely: its description beside its own `encode`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import tokenizers

from bpe_automata.errors import (
    BrokenTokenizerError,
    MissingFileError,
    TokenizerError,
    TokenOutOfRangeError,
)
from bpe_automata.tokenizer.description import Description
from bpe_automata.tokenizer.read_gguf import read_gguf
from bpe_automata.tokenizer.read_json import describe

T = TypeVar("T")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Tokenizer:
    """An immutable tokenizer; make one with `Tokenizer.load`.

    Attributes: `description`; `eos_ids`, what the source calls end of sequence (may be empty);
    `name`, where it came from.
    """

    def __init__(
        self,
        data: dict[str, Any],
        eos_ids: Iterable[int] = (),
        name: str = "tokenizer",
        text: str | None = None,
    ) -> None:
        """`data`: the content of a `tokenizer.json`; `text`: the same, unparsed, if it is at hand.
        Truncation and padding are left out."""
        self.name = name
        self.eos_ids = tuple(eos_ids)
        try:
            self.description: Description = describe(data)
        except (AttributeError, KeyError, TypeError) as error:
            raise BrokenTokenizerError(
                f"{name} does not have the form of a tokenizer.json: "
                f"{type(error).__name__} {error}; write it anew with save_pretrained"
            ) from error
        self._derived: dict[str, object] = {}
        if text is None or data.get("truncation") or data.get("padding"):
            text = json.dumps({**data, "truncation": None, "padding": None}, ensure_ascii=False)
        self._json = text
        try:
            self._backend = tokenizers.Tokenizer.from_str(self._json)
        except Exception as error:  # the binding raises a bare Exception
            raise BrokenTokenizerError(f"{name}: tokenizers cannot load it: {error}") from error
        self._check_added()

    def _check_added(self) -> None:
        """`tokenizers` gives ids to added tokens itself, and is silent where the file disagrees."""
        for token in self.description.added:
            number = self._backend.token_to_id(token.content)
            if number != token.id:
                raise BrokenTokenizerError(
                    f"{self.name}: added token {token.content!r} is listed with id {token.id}, but "
                    f"tokenizers gives it id {number}: ids of added tokens go on from the "
                    "vocabulary in the order of the list, and none may be taken or listed twice"
                )

    @classmethod
    def load(cls, source: object) -> Tokenizer:
        """Read a tokenizer.

        `source`: a path (a `tokenizer.json`, a folder that holds one, a `.gguf` file), a
        `tokenizers.Tokenizer`, or a fast tokenizer of transformers.

        Raises MissingFileError, BrokenTokenizerError, UnsupportedTokenizerError.
        """
        if isinstance(source, Tokenizer):
            return source
        if isinstance(source, str | Path):
            return cls._load_path(Path(source))
        backend = getattr(source, "backend_tokenizer", source)
        if not isinstance(backend, tokenizers.Tokenizer):
            raise TokenizerError(
                f"cannot read a tokenizer from {type(source).__name__}: give a path, a "
                "tokenizers.Tokenizer or a fast tokenizer of transformers"
            )
        if backend.encode_special_tokens:
            raise TokenizerError("a tokenizer with encode_special_tokens=True is not modelled")
        eos = getattr(source, "eos_token_id", None)
        name = str(getattr(source, "name_or_path", "") or "tokenizer")
        text = backend.to_str()
        return cls(json.loads(text), () if eos is None else (eos,), name, text)

    @classmethod
    def _load_path(cls, path: Path) -> Tokenizer:
        if path.is_dir():
            path = path / "tokenizer.json"
        if not path.is_file():
            raise MissingFileError(f"there is no tokenizer at {path}")
        if path.suffix == ".gguf":
            data, eos_ids = read_gguf(path)
            return cls(data, eos_ids, str(path))
        try:
            text = path.read_text(encoding="utf-8")
            data = json.loads(text)
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise BrokenTokenizerError(f"{path} is not valid JSON: {error}") from error
        if not isinstance(data, dict):
            raise BrokenTokenizerError(f"{path} is not a tokenizer.json: no object at the top")
        return cls(data, _eos_beside(path, data), str(path), text)

    @property
    def n_ids(self) -> int:
        """One more than the largest id."""
        return self.description.n_ids

    def encode(self, text: str) -> list[int]:
        """The ids of `text`, by the tokenizer itself; nothing is added around them.

        Raises TokenizerError for a text with a lone surrogate, which has no UTF-8.
        """
        if not text.isascii() and (lone := _SURROGATE.search(text)):
            raise TokenizerError(
                f"the text has a lone surrogate, {lone.group()!r}, at position {lone.start()}: "
                "that is no character, so it cannot be encoded"
            )
        return list(self._backend.encode(text, add_special_tokens=False).ids)

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        """`encode` of many texts."""
        batch = self._backend.encode_batch_fast(texts, add_special_tokens=False)
        return [list(encoding.ids) for encoding in batch]

    def decode(self, ids: Iterable[int]) -> str:
        """The text that the ids spell, added tokens included; broken UTF-8 becomes U+FFFD."""
        return b"".join(map(self.token_bytes, ids)).decode("utf-8", "replace")

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that one id spells. Raises TokenOutOfRangeError."""
        if not 0 <= token_id < self.n_ids:
            raise TokenOutOfRangeError(f"id {token_id} is not in 0 .. {self.n_ids - 1}")
        return self.spellings[token_id]

    @cached_property
    def spellings(self) -> tuple[bytes, ...]:
        """For each id its bytes; an added token spells its content."""
        spelled = [token or b"" for token in self.description.tokens]
        for added in self.description.added:
            spelled[added.id] = added.content.encode("utf-8")
        return tuple(spelled)

    def derived(self, name: str, build: Callable[[Tokenizer], T]) -> T:
        """What `build` makes of this tokenizer, made once and kept under `name`."""
        if name not in self._derived:
            self._derived[name] = build(self)
        return self._derived[name]  # type: ignore[return-value]

    def to_json(self) -> str:
        """The `tokenizer.json` that this tokenizer is."""
        return self._json

    def __repr__(self) -> str:
        return f"Tokenizer({self.name!r}, n_ids={self.n_ids})"


def _eos_beside(path: Path, data: dict[str, Any]) -> tuple[int, ...]:
    """End of sequence as the `tokenizer_config.json` in the same folder names it."""
    config = path.with_name("tokenizer_config.json")
    if not config.is_file():
        return ()
    try:
        token = json.loads(config.read_text(encoding="utf-8")).get("eos_token")
    except (AttributeError, ValueError) as error:
        raise BrokenTokenizerError(f"{config} is not a JSON object: {error}") from error
    content = token.get("content") if isinstance(token, dict) else token
    ids = [entry["id"] for entry in data.get("added_tokens", []) if entry["content"] == content]
    return tuple(ids)
