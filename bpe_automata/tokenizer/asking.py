"""Asking a normalizer what it does, many questions in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from bpe_automata.budget import check
from bpe_automata.errors import BrokenTokenizerError
from bpe_automata.tokenizer.ranges import LAST_CODE_POINT

Apply = Callable[[str], str]

SEPARATOR = "\ue000"
"""A private-use character: Unicode promises that no normalization form changes it, composes it or
makes it, and that it is no letter, mark, control or white space."""

_BLOCK = 2048  # the surrogates, which are not text, are exactly one block
_SURROGATES = 0xD800


def ask(apply: Apply, texts: Sequence[str]) -> list[str]:
    """`apply` of each text. Raises BrokenTokenizerError if the answers cannot be told apart."""
    if not texts:
        return []
    answers = apply(SEPARATOR.join(texts)).split(SEPARATOR)
    if len(answers) != len(texts):
        raise BrokenTokenizerError(
            f"a normalizer made {len(answers)} texts of {len(texts)}, which a private-use "
            f"character (U+{ord(SEPARATOR):04X}) kept apart; it does not leave that one as it is"
        )
    return answers


def blocks() -> list[np.ndarray]:
    """All code points but the surrogates and the separator, in blocks (int32)."""
    starts = [first for first in range(0, LAST_CODE_POINT + 1, _BLOCK) if first != _SURROGATES]
    whole = [np.arange(first, first + _BLOCK, dtype=np.int32) for first in starts]
    return [codes[codes != ord(SEPARATOR)] for codes in whole]


def text_of(codes: np.ndarray) -> str:
    """The text of an array of code points, of any shape."""
    return codes.astype("<u4").tobytes().decode("utf-32-le")


@lru_cache(maxsize=16)
def images(apply: Apply, whole_blocks: bool = False) -> dict[str, str]:
    """{c: apply(c)} for every character c that `apply` changes (not to be written to).
    `whole_blocks`: a text that it leaves as it is holds only characters that it leaves as they
    are, so unchanged blocks need no separators."""
    found: dict[str, str] = {}
    for codes in blocks():
        check()
        parts = codes if whole_blocks else np.insert(codes, slice(1, None), ord(SEPARATOR))
        joined = text_of(parts)
        if apply(joined) != joined:
            characters = list(text_of(codes))
            answers = zip(characters, ask(apply, characters), strict=True)
            found.update((c, answer) for c, answer in answers if c != answer)
    return found
