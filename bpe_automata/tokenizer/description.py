"""The parts of a tokenizer as plain values: all that `encode` depends on.

    encode = cut out the added tokens, normalize, prepend the prefix, split into pretokens,
             BPE on each pretoken

Tokens are given by the text that they spell: a token that the file writes `▁the` spells ` the`, and
a byte token `<0xE6>` spells that byte. With `byte_level` a base symbol is one byte of the UTF-8 of
a pretoken, otherwise one character.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

import numpy as np


@dataclass(frozen=True)
class SplitRule:
    """One pretokenizer step. `kind`: "regex" or "literal" (then `pattern` is its source), or the
    name of a character class of the engine, such as "digits"; `behavior`: what becomes of the
    matches, named as in `tokenizers` in lower case; `invert`: matches and the text between them
    change places."""

    kind: str
    pattern: str
    behavior: str
    invert: bool = False


@dataclass(frozen=True)
class Normalization:
    """One normalizer step. `kind`: "nfc", "nfd", "nfkc", "nfkd", "characters" (a map of single
    characters), "strip" or "replace"; `apply`: the normalizer of the library that runs it;
    `library`: that library's name and version; `left`, `right`: the sides of a "strip"; `pattern`
    ("regex" or "literal", and its source) and `content`: of a "replace"; `name`: the library's
    name of a "characters" step."""

    kind: str
    apply: Callable[[str], str]
    library: str
    left: bool = False
    right: bool = False
    pattern: tuple[str, str] = ("", "")
    content: str = ""
    name: str = ""


class Prefix(Enum):
    """Where `encode` prepends a space. Decoding removes it, unless a value says otherwise. A piece
    is the text between two added tokens."""

    NONE = "none"
    TEXT = "once, before all of a text that is not empty, even before an added token"
    PIECE = "before each piece that is not empty"
    FIRST_UNLESS_SPACE = "before a piece that begins the text, unless a space is there"
    PIECE_UNLESS_SPACE = "the same of each piece; decoding removes only that of the beginning"
    SPACE_FIRST = "before each piece, unless a space is there; decoding does not remove it"


@dataclass(frozen=True)
class AddedToken:
    """A token that is cut out of the text before anything else happens. `special`: it means
    something to the model besides its text (the beginning of a turn, say); `lstrip`, `rstrip`: it
    also removes the white space before or after it; `single_word`: not cut out next to a word
    character; `normalized`: cut out of the normalized text."""

    id: int
    content: str
    special: bool
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False
    normalized: bool = False


@dataclass(frozen=True)
class Description:
    """All that `encode` depends on.

    tokens: the bytes that each id spells in ordinary text, None if BPE cannot produce it (it is
    only an added token, or outside of the alphabet); merges: int32 [m, 3], (left, right, made) in
    order of rank; tied: bool [m], merges of the same rank as the one before, of which encoders
    apply the leftmost (empty: none); base: base symbol (one byte, or the UTF-8 of one character) ->
    id; splitters: the pretokenizer, in order; added: the added tokens; ignore_merges: a pretoken
    that is a token is that token; byte_tokens: byte -> id of the token that spells it in characters
    that are no base symbols (byte fallback), empty without; unreadable: characters that no ids
    spell, because they stand for something else (`▁`); controls: ids that are never text, and
    separate two texts; lost: added tokens that are cut out like the others, but decoded to other
    text, so no ids spell a text that contains one."""

    tokens: tuple[bytes | None, ...]
    merges: np.ndarray
    base: dict[bytes, int]
    byte_level: bool
    splitters: tuple[SplitRule, ...]
    added: tuple[AddedToken, ...]
    ignore_merges: bool
    byte_tokens: dict[int, int] = field(default_factory=dict)
    normalizers: tuple[Normalization, ...] = ()
    prefix: Prefix = Prefix.NONE
    unreadable: str = ""
    controls: frozenset[int] = frozenset()
    lost: tuple[AddedToken, ...] = ()
    tied: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=bool))

    @property
    def ranks(self) -> np.ndarray:
        """int32 [m]: the rank of each merge."""
        new = np.ones(len(self.merges), dtype=bool)
        new[: len(self.tied)] &= ~self.tied
        return np.cumsum(new, dtype=np.int32) - np.int32(1)

    @property
    def cut_out(self) -> tuple[AddedToken, ...]:
        """All added tokens, `lost` ones last."""
        return (*self.added, *self.lost)

    @property
    def n_ids(self) -> int:
        return len(self.tokens)
