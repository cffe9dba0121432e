"""What a tokenizer is made of, as plain values: the whole of what `encode` depends on.

    encode = cut out added tokens, normalize, put a prefix before, split by the splitters in turn,
             BPE on each piece

Everything is said in terms of the text that ids spell: a token that the file writes `▁the` spells
` the`, and a byte token `<0xE6>` spells that byte. `byte_level` says that pieces are UTF-8 bytes
(each byte one base symbol); otherwise a base symbol is one character.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

import numpy as np


@dataclass(frozen=True)
class SplitRule:
    """One pretokenizer step. `kind`: "regex" or "literal" (then `pattern` is its source), or the
    name of a class of characters that the engine knows, such as "digits"; `behavior`: as
    `tokenizers` names it, lower case; `invert`: matches are kept."""

    kind: str
    pattern: str
    behavior: str
    invert: bool = False


@dataclass(frozen=True)
class Normalization:
    """One normalizer step. `kind`: "nfc", "nfd", "nfkc", "nfkd", "characters" (each character by
    itself), "strip" or "replace"; `apply`: the normalizer itself, of the library that runs it, and
    `library` its name and version; `left`, `right`: for "strip"; `pattern` ("regex" or "literal"
    and its source) and `content`: for "replace"; `name`: what the library calls it, for
    "characters"."""

    kind: str
    apply: Callable[[str], str]
    library: str
    left: bool = False
    right: bool = False
    pattern: tuple[str, str] = ("", "")
    content: str = ""
    name: str = ""


class Prefix(Enum):
    """The space that is put before a text, and that decoding takes away again (but for
    SPACE_FIRST). A piece is what lies between added tokens."""

    NONE = "none"
    TEXT = "once, before all of a text that is not empty, even before an added token"
    PIECE = "before each piece that is not empty"
    FIRST_UNLESS_SPACE = "before a piece that begins the text, unless a space is there"
    PIECE_UNLESS_SPACE = "before each piece, unless a space is there"
    SPACE_FIRST = "before each piece, unless a space is there; decoding does not take it away"


@dataclass(frozen=True)
class AddedToken:
    """A token that is cut out of the text before anything else happens. `special`: it means
    something to the model (the beginning of a turn, say), beside the text that it spells;
    `lstrip`, `rstrip`: white space beside it is lost; `single_word`: not where a word character is
    beside it."""

    id: int
    content: str
    special: bool
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False
    normalized: bool = False


@dataclass(frozen=True)
class Description:
    """tokens: for each id the bytes that it spells in ordinary text, or None when BPE cannot make
    it (it is only an added token, or is not spelled in the alphabet); merges: int32 [m, 3], (left,
    right, made) in order of rank; tied: bool [m], those of the same rank as the one before them, of
    which encoders take the leftmost (empty: none); base: base symbol (one byte, or the UTF-8 of one
    character) -> id; byte_tokens: byte -> id of the token that stands for it in characters that are
    no base symbols (byte fallback), empty without; unreadable: characters that no ids spell, since
    they stand for something else (`▁`); controls: ids that are never text, but stand between texts;
    lost: added tokens that are cut out of the text like the others, but whose ids are decoded to
    something else than their text, so that no ids spell a text that holds one."""

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
        """All added tokens, those that are lost last."""
        return (*self.added, *self.lost)

    @property
    def n_ids(self) -> int:
        return len(self.tokens)
