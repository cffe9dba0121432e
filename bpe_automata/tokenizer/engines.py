"""The regex engines that tokenizers run on, asked which characters a pattern matches.

`Oniguruma` is what `tokenizers` splits by; `FancyRegex` is what `tiktoken` splits by. Both see a
class of characters as what is left, or lost, of a text when all runs of the class are cut out of
it. Some pretokenizers of `tokenizers` run on other code than Oniguruma (Rust's `char`, the `regex`
crate): each of their classes has a name, and the pretokenizer itself is asked.
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

PreTokenizer = pre_tokenizers.PreTokenizer
_LETTER = "a"  # a letter of the kind that every splitter of words keeps in one piece with others


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
            raise _missing() from error

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
    """What cuts all runs of the class out of a text. The decoder `Replace` runs on the same engine
    as `Split`, and is the quickest way to it: no offsets are kept."""
    try:
        return decoders.Replace(Regex(f"(?:{pattern})+"), "")
    except Exception as error:  # the binding raises a bare Exception
        raise BrokenTokenizerError(f"the regex engine rejects the class {pattern!r}") from error


def _matched(pattern: str, text: str) -> str:
    """`tiktoken` drops what its pattern does not match, and writes the rest in bytes."""
    ids = _byte_encoding(pattern).encode_ordinary(text)
    return bytes(ids).decode("utf-8")


@lru_cache(maxsize=64)
def _byte_encoding(pattern: str) -> tiktoken.Encoding:
    try:
        import tiktoken
    except ImportError as error:
        raise _missing() from error
    ranks = {bytes([byte]): byte for byte in range(256)}
    try:
        return tiktoken.Encoding(
            "bytes", pat_str=f"(?:{pattern})+", mergeable_ranks=ranks, special_tokens={}
        )
    except ValueError as error:
        raise BrokenTokenizerError(f"the regex engine rejects the class {pattern!r}") from error


def _missing() -> MissingDependencyError:
    return MissingDependencyError(
        "this tokenizer runs on tiktoken, which is not installed; install it with: "
        "pip install tiktoken"
    )


# ---------------------------------------------------------------- classes with a name


def _pieces(step: PreTokenizer, text: str) -> list[str]:
    """What `step` makes of `text`, without the offsets in characters, which are slow."""
    whole = PreTokenizedString(text)
    step.pre_tokenize(whole)
    return [piece for piece, *_ in whole.get_splits("original", "byte")]


Answer = tuple[str, bool]
"""Characters of a text, and whether they are the members of the class, or all the others."""


def _numeric(text: str) -> Answer:
    """`Digits`: after a leading letter, the pieces are other, numeric, other, ... in turn."""
    step = pre_tokenizers.Digits(individual_digits=False)
    return "".join(_pieces(step, _LETTER + text)[1::2]), True


def _removed(step: PreTokenizer) -> Callable[[str], Answer]:
    """The characters that `step` removes."""
    return lambda text: ("".join(_pieces(step, text)), False)


def _beside_letter(step: PreTokenizer, joined: bool) -> Callable[[str], Answer]:
    """The characters that `step` keeps, and keeps together with a letter (if not `joined`: apart
    from it). All characters of one piece are alike, so the first of each is tried."""

    def answer(text: str) -> Answer:
        alike = (p for p in _pieces(step, text) if _is_joined(step, p[0]) == joined)
        return "".join(alike), True

    return answer


def _is_joined(step: PreTokenizer, character: str) -> bool:
    return len(_pieces(step, _LETTER + character)) == 1


_BERT = pre_tokenizers.BertPreTokenizer()
_WORDS = pre_tokenizers.Whitespace()

NAMED_KINDS: dict[str, Callable[[str], Answer]] = {
    "digits": _numeric,
    "whitespace": _removed(pre_tokenizers.WhitespaceSplit()),
    "punctuation": _removed(pre_tokenizers.Punctuation("removed")),
    "bert_whitespace": _removed(_BERT),
    "bert_punctuation": _beside_letter(_BERT, joined=False),
    "word_whitespace": _removed(_WORDS),
    "word": _beside_letter(_WORDS, joined=True),
}
"""The classes that have a name. `digits`: of Digits; `whitespace`: of WhitespaceSplit;
`punctuation`: of Punctuation; `bert_...`: of BertPreTokenizer; `word` and `word_whitespace`: `\\w`
and `\\s` of Whitespace."""
