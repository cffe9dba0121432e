"""What a tokenizer is made of, as plain values: the whole of what `encode` depends on.

    encode = cut out added tokens, split by the splitters in turn, BPE on each piece

`byte_level` says that pieces are UTF-8 bytes (each byte one base symbol); otherwise a base symbol
is one character.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class SplitRule:
    """One pretokenizer step. `kind`: "regex" or "literal" (then `pattern` is its source), or
    "digits"; `behavior`: as `tokenizers` names it, lower case; `invert`: matches are kept."""

    kind: str
    pattern: str
    behavior: str
    invert: bool = False


@dataclass(frozen=True)
class AddedToken:
    """A token that is cut out of the text before anything else happens."""

    id: int
    content: str
    special: bool


@dataclass(frozen=True)
class Description:
    """tokens: for each id its bytes, or None when BPE cannot make it (it is only an added token,
    or is not spelled in the alphabet); merges: int32 [m, 3], (left, right, made) in order of rank;
    base: base symbol (one byte, or the UTF-8 of one character) -> id."""

    tokens: tuple[bytes | None, ...]
    merges: np.ndarray
    base: dict[bytes, int]
    byte_level: bool
    splitters: tuple[SplitRule, ...]
    added: tuple[AddedToken, ...]
    ignore_merges: bool

    @property
    def n_ids(self) -> int:
        return len(self.tokens)
