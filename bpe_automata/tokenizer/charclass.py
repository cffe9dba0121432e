"""Character classes as the tokenizer's own engine sees them.

A class is { c : the engine's one-character pattern matches c }. It is found by running the
pattern as a `Split` over every code point once, so `\\s`, `\\p{L}`, the Unicode version and case
folding agree with `encode` by construction. The ranges are kept on disk, keyed by the engine's
version, because asking takes about half a second a class.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import tokenizers
from tokenizers import Regex, pre_tokenizers

from bpe_automata.errors import BrokenTokenizerError, UnsupportedTokenizerError
from bpe_automata.storage import load_array, store_array
from bpe_automata.tokenizer.folding import joined_foldings

LAST_CODE_POINT = 0x10FFFF
_LITERAL = re.compile(r"\\x\{([0-9A-F]+)\}")
_SURROGATES = 0xD800
# The engine's cost grows faster than the text. Blocks of 2,048 keep it linear, and the surrogates
# (which are not text) are exactly one of them.
_BLOCK = 2048

Ranges = np.ndarray
"""int32 [n, 2]: half-open ranges of code points, sorted, disjoint, not touching."""


def from_pairs(pairs: list[tuple[int, int]]) -> Ranges:
    """Ranges from half-open pairs that may overlap or touch."""
    merged: list[list[int]] = []
    for low, high in sorted(pairs):
        if merged and low <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], high)
        else:
            merged.append([low, high])
    return np.array(merged, dtype=np.int32).reshape(-1, 2)


@cache
def engine_class(pattern: str) -> Ranges:
    """{ c : the one-character regex `pattern` matches c }, by the engine of `tokenizers`."""
    if literal := _LITERAL.fullmatch(pattern):
        code_point = int(literal[1], 16)
        return from_pairs([(code_point, code_point + 1)])
    try:
        splitter = pre_tokenizers.Split(Regex(pattern), "removed")
    except Exception as error:  # the binding raises a bare Exception
        raise BrokenTokenizerError(f"the regex engine rejects the class {pattern!r}") from error
    if pattern.startswith("(?i:"):
        _refuse_joined(pattern)

    def members(text: str) -> Iterator[tuple[int, int]]:
        position = 0
        for _, (low, high) in splitter.pre_tokenize_str(text):
            if position < low:
                yield position, low
            position = high
        if position < len(text):
            yield position, len(text)

    return _stored(f"class {pattern}", members)


def _refuse_joined(pattern: str) -> None:
    """A class that holds `ß`, read without regard to case, matches `ss`: two characters."""
    whole = pre_tokenizers.Split(Regex(f"\\A{pattern}\\z"), "removed")
    for folded in sorted(joined_foldings()):
        if not whole.pre_tokenize_str(folded):
            raise UnsupportedTokenizerError(
                "split pattern", pattern, f"by case folding this class also matches {folded!r}"
            )


@cache
def engine_digits() -> Ranges:
    """{ c : the `Digits` pretokenizer calls c numeric }."""
    splitter = pre_tokenizers.Digits(individual_digits=False)

    def members(text: str) -> Iterator[tuple[int, int]]:
        # A leading letter makes the runs alternate: other, numeric, other, ...
        pieces = splitter.pre_tokenize_str("a" + text)
        for _, (low, high) in pieces[1::2]:
            yield low - 1, high - 1

    return _stored("digits", members)


def _stored(name: str, members: Callable[[str], Iterator[tuple[int, int]]]) -> Ranges:
    key = f"tokenizers {tokenizers.__version__} {name}"
    stored = load_array("charclass", key)
    if stored is not None and stored.dtype == np.int32 and stored.shape[1:] == (2,):
        return stored
    ranges = _ask(members)
    store_array("charclass", key, ranges)
    return ranges


def _ask(members: Callable[[str], Iterator[tuple[int, int]]]) -> Ranges:
    pairs: list[tuple[int, int]] = []
    for first in range(0, LAST_CODE_POINT + 1, _BLOCK):
        if first == _SURROGATES:  # exactly one block
            continue
        text = "".join(map(chr, range(first, first + _BLOCK)))
        pairs.extend((first + low, first + high) for low, high in members(text))
    return from_pairs(pairs)
