"""The library `tokenizers` as a backend."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import tokenizers

from bpe_automata.errors import BrokenTokenizerError, EncodingError
from bpe_automata.tokenizer.description import AddedToken
from bpe_automata.tokenizer.engines import Oniguruma

T = TypeVar("T")
_BARE = {"add_special_tokens": False}


class HuggingFace:
    """A tokenizer of `tokenizers`, made from its `tokenizer.json`; a `Backend`."""

    name = f"tokenizers {tokenizers.__version__}"

    def __init__(self, text: str, name: str) -> None:
        """`text`: a `tokenizer.json`. Raises BrokenTokenizerError, naming the tokenizer `name`."""
        try:
            self._tokenizer = tokenizers.Tokenizer.from_str(text)
        except Exception as error:  # the binding raises a bare Exception
            raise BrokenTokenizerError(f"{name}: tokenizers cannot load it: {error}") from error
        self.engine = Oniguruma()
        self._text = text

    def made_from(self) -> tuple[dict[str, Any], bytes]:
        """What `tokenizer.kept` keeps of it."""
        return {}, self._text.encode()

    def encode(self, text: str) -> list[int]:
        encoding = _or_gives_up([text], lambda: self._tokenizer.encode(text, **_BARE))
        return list(encoding.ids)

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        batch = _or_gives_up(texts, lambda: self._tokenizer.encode_batch_fast(texts, **_BARE))
        return [list(encoding.ids) for encoding in batch]

    def decode(self, ids: list[int]) -> str:
        return self._tokenizer.decode(ids, skip_special_tokens=False)

    def check_added(self, added: tuple[AddedToken, ...], name: str) -> None:
        """`tokenizers` gives ids to added tokens itself, and is silent where the file disagrees.

        Raises BrokenTokenizerError."""
        for token in added:
            number = self._tokenizer.token_to_id(token.content)
            if number != token.id:
                raise BrokenTokenizerError(
                    f"{name}: added token {token.content!r} is listed with id {token.id}, but "
                    f"tokenizers gives it id {number}: ids of added tokens go on from the "
                    "vocabulary in the order of the list, and none may be taken or listed twice"
                )


def _or_gives_up(texts: list[str], ask: Callable[[], T]) -> T:
    """What `ask` gives. Raises EncodingError where the library panics, which is no `Exception`."""
    try:
        return ask()
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        longest = max(texts, key=len)
        raise EncodingError(
            f"tokenizers gives up on a text of {len(longest):,} characters, {longest[:40]!r}...: "
            f"{error}. The tokenizer's own pattern backtracks without end there, so that text has "
            "no ids; shorten the text, or use a tokenizer with another split pattern"
        ) from error


def plain_json(data: dict[str, Any], text: str | None) -> str:
    """The tokenizer.json without truncation and padding; `text`: the same, unparsed, if at hand."""
    if text is None or data.get("truncation") or data.get("padding"):
        return json.dumps({**data, "truncation": None, "padding": None}, ensure_ascii=False)
    return text
