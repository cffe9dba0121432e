"""The regex engines that tokenizers run on, and the library `tokenizers` as a backend.

`Oniguruma` splits in `tokenizers`, `FancyRegex` in `tiktoken`. For both, the members of a character
class are the characters that remain, or that disappear, when all runs of the class are cut out of a
text. Some pretokenizers of `tokenizers` do not run on Oniguruma (but on Rust's `char`, or the
`regex` crate): each of their classes has a name, and the pretokenizer itself is run.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import tokenizers
from tokenizers import PreTokenizedString, Regex, decoders, pre_tokenizers

from bpe_automata.errors import BrokenTokenizerError, MissingDependencyError

if TYPE_CHECKING:
    import tiktoken
import json
from typing import Any, TypeVar

from bpe_automata._optional import require
from bpe_automata.errors import EncodingError
from bpe_automata.tokenizer.description import AddedToken
from bpe_automata.tokenizer.source import INSTALL_TIKTOKEN

PreTokenizer = pre_tokenizers.PreTokenizer
_LETTER = "a"  # every splitter of words keeps it in one piece with other letters


@dataclass(frozen=True)
class Oniguruma:
    """The engine of `tokenizers`. Kinds: "regex", and those in `NAMED_KINDS`."""

    @property
    def name(self) -> str:
        return f"tokenizers {tokenizers.__version__}"

    @property
    def dialect(self) -> str:
        return "oniguruma"

    def members(self, kind: str, pattern: str, text: str) -> Iterator[tuple[int, int]]:
        """See `CharacterEngine`."""
        if kind in NAMED_KINDS:
            return _spans(text, *NAMED_KINDS[kind](text))
        if kind != "regex":
            raise BrokenTokenizerError(f"{self.name} has no class of characters {kind!r}")
        return _spans(text, _oniguruma(pattern).decode([text]), False)


@dataclass(frozen=True)
class FancyRegex:
    """The engine of `tiktoken`. Kinds: "regex" only. Raises MissingDependencyError where tiktoken
    is not installed."""

    @property
    def name(self) -> str:
        try:
            return f"tiktoken {importlib.metadata.version('tiktoken')}"
        except importlib.metadata.PackageNotFoundError as error:
            raise MissingDependencyError(f"tiktoken is missing: {INSTALL_TIKTOKEN}") from error

    @property
    def dialect(self) -> str:
        return "fancy-regex"

    def members(self, kind: str, pattern: str, text: str) -> Iterator[tuple[int, int]]:
        """See `CharacterEngine`."""
        if kind != "regex":
            raise BrokenTokenizerError(f"{self.name} has no class of characters {kind!r}")
        return _spans(text, _matched(pattern, text), True)


def _spans(text: str, some: str, members: bool) -> Iterator[tuple[int, int]]:
    """The spans of `text` whose characters occur in `some` (if not `members`: do not occur)."""
    inside = np.isin(_code_points(text), _code_points(some), invert=not members)
    steps = np.flatnonzero(np.diff(inside, prepend=False, append=False)).tolist()
    return zip(steps[::2], steps[1::2], strict=True)


def _code_points(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


# ---------------------------------------------------------------- regexes


@lru_cache(maxsize=64)
def _oniguruma(pattern: str) -> decoders.Decoder:
    """Cuts all runs of the class out of a text. The decoder `Replace` runs on the same engine as
    `Split`, and is the fastest access to it: it computes no offsets."""
    try:
        return decoders.Replace(Regex(f"(?:{pattern})+"), "")
    except Exception as error:  # the binding raises a bare Exception
        raise BrokenTokenizerError(f"the regex engine rejects the class {pattern!r}") from error


def _matched(pattern: str, text: str) -> str:
    """The matched characters. `tiktoken` drops all others, and its ids are the matched bytes."""
    ids = _byte_encoding(pattern).encode_ordinary(text)
    return bytes(ids).decode("utf-8")


@lru_cache(maxsize=64)
def _byte_encoding(pattern: str) -> tiktoken.Encoding:
    package = require("tiktoken", INSTALL_TIKTOKEN)
    ranks = {bytes([byte]): byte for byte in range(256)}
    try:
        return package.Encoding(
            "bytes", pat_str=f"(?:{pattern})+", mergeable_ranks=ranks, special_tokens={}
        )
    except ValueError as error:
        raise BrokenTokenizerError(f"the regex engine rejects the class {pattern!r}") from error


# ---------------------------------------------------------------- classes with a name


def _pieces(step: PreTokenizer, text: str) -> list[str]:
    """The pieces that `step` splits `text` into. (Offsets in characters would be slow.)"""
    whole = PreTokenizedString(text)
    step.pre_tokenize(whole)
    return [piece for piece, *_ in whole.get_splits("original", "byte")]


Members = tuple[str, bool]
"""Characters of a text, and whether these are the members of the class (or all others)."""


def _numeric(text: str) -> Members:
    """What `Digits` takes for numeric: every second piece after a leading letter."""
    step = pre_tokenizers.Digits(individual_digits=False)
    return "".join(_pieces(step, _LETTER + text)[1::2]), True


def _removed(step: PreTokenizer) -> Callable[[str], Members]:
    """The characters that `step` removes."""
    return lambda text: ("".join(_pieces(step, text)), False)


def _next_to_letter(step: PreTokenizer, joined: bool) -> Callable[[str], Members]:
    """The characters that `step` keeps in one piece with a letter (if not `joined`: in another
    piece). All characters of a piece behave alike, so only the first of each is tested."""

    def members(text: str) -> Members:
        alike = (p for p in _pieces(step, text) if _is_joined(step, p[0]) == joined)
        return "".join(alike), True

    return members


def _is_joined(step: PreTokenizer, character: str) -> bool:
    return len(_pieces(step, _LETTER + character)) == 1


_BERT = pre_tokenizers.BertPreTokenizer()
_WORDS = pre_tokenizers.Whitespace()

NAMED_KINDS: dict[str, Callable[[str], Members]] = {
    "digits": _numeric,
    "whitespace": _removed(pre_tokenizers.WhitespaceSplit()),
    "punctuation": _removed(pre_tokenizers.Punctuation("removed")),
    "bert_whitespace": _removed(_BERT),
    "bert_punctuation": _next_to_letter(_BERT, joined=False),
    "word_whitespace": _removed(_WORDS),
    "word": _next_to_letter(_WORDS, joined=True),
}
"""The named classes. `digits`: of Digits; `whitespace`: of WhitespaceSplit; `punctuation`: of
Punctuation; `bert_...`: of BertPreTokenizer; `word` and `word_whitespace`: `\\w` and `\\s` of
Whitespace."""


# ---------------------------------------------------------------- the library tokenizers

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
        """(settings, content) from which `tokenizer.stored` makes it again."""
        return {}, self._text.encode()

    def encode(self, text: str) -> list[int]:
        encoding = _without_panic([text], lambda: self._tokenizer.encode(text, **_BARE))
        return list(encoding.ids)

    def around(self, text: str) -> list[int]:
        """The ids of `text` with those of the post-processor."""
        return list(self._tokenizer.encode(text).ids)

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        batch = _without_panic(texts, lambda: self._tokenizer.encode_batch_fast(texts, **_BARE))
        return [list(encoding.ids) for encoding in batch]

    def decode(self, ids: list[int]) -> str:
        return self._tokenizer.decode(ids, skip_special_tokens=False)

    def check_added(self, added: tuple[AddedToken, ...], name: str) -> None:
        """`tokenizers` numbers added tokens itself, and does not report ids that disagree.

        Raises BrokenTokenizerError."""
        for token in added:
            number = self._tokenizer.token_to_id(token.content)
            if number != token.id:
                raise BrokenTokenizerError(
                    f"{name}: added token {token.content!r} is listed with id {token.id}, but "
                    f"tokenizers gives it id {number}: ids of added tokens go on from the "
                    "vocabulary in the order of the list, and none may be taken or listed twice"
                )


def _without_panic(texts: list[str], encode: Callable[[], T]) -> T:
    """`encode()`. Raises EncodingError where the library panics, which is no `Exception`."""
    try:
        return encode()
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
    """The tokenizer.json without truncation and padding. `text`: its unparsed content, or None."""
    if text is None or data.get("truncation") or data.get("padding"):
        return json.dumps({**data, "truncation": None, "padding": None}, ensure_ascii=False)
    return text
