"""Character classes as the tokenizer's own engine sees them.

A class is { c : the engine's one-character pattern matches c }. The engine is asked over every code
point but the surrogates (which are not text) once, so `\\s`, `\\p{L}`, the Unicode version and case
folding agree with `encode` by construction. The ranges are kept on disk, keyed by the engine's
version, because asking takes 0.03 to 0.1 s a class.
"""

from __future__ import annotations

import re

import numpy as np

from bpe_automata.errors import UnsupportedTokenizerError
from bpe_automata.storage import CorruptFileError, checked_load, store_arrays
from bpe_automata.tokenizer.backend import CharacterEngine
from bpe_automata.tokenizer.folding import joined_foldings
from bpe_automata.tokenizer.ranges import LAST_CODE_POINT, Ranges, from_pairs

_LITERAL = re.compile(r"\\x\{([0-9A-F]+)\}")
_SURROGATES = (0xD800, 0xE000)
_FORM = "ranges"  # of what is kept
_BLOCK = 1 << 14  # both engines are slower on a few long texts than on many short ones

known: dict[tuple[str, str, str], Ranges] = {}
"""What this process has asked: (name of the engine, kind, pattern) -> ranges."""


def engine_class(engine: CharacterEngine, kind: str, pattern: str) -> Ranges:
    """{ c : c is in the class `kind`, `pattern` of `engine` }; see `CharacterEngine.members`.

    Raises BrokenTokenizerError for a pattern that the engine rejects, UnsupportedTokenizerError
    for a class that also matches two characters (by case folding, as `(?i:ß)` matches `ss`).
    """
    if kind == "regex" and (literal := _LITERAL.fullmatch(pattern)):
        code_point = int(literal[1], 16)
        return from_pairs([(code_point, code_point + 1)])
    key = (engine.name, kind, pattern)
    if key not in known:
        known[key] = _stored(engine, kind, pattern)
    return known[key]


def _stored(engine: CharacterEngine, kind: str, pattern: str) -> Ranges:
    if kind == "regex" and pattern.startswith("(?i"):
        _refuse_joined(engine, pattern)
    key = f"{engine.name} {kind} {pattern}"
    kept = checked_load("charclass", key, _FORM, lambda arrays: sound_ranges(arrays["ranges"]))
    if kept is not None:
        return kept
    ranges = _ask(engine, kind, pattern)
    store_arrays("charclass", key, _FORM, {"ranges": ranges})
    return ranges


def sound_ranges(ranges: np.ndarray) -> Ranges:
    """A copy of them. Raises CorruptFileError unless they are ascending ranges of code points."""
    if ranges.dtype != np.int32 or ranges.ndim != 2 or ranges.shape[1] != 2:
        raise CorruptFileError("it holds no ranges")
    bounds = np.concatenate([[0], ranges.ravel(), [LAST_CODE_POINT + 1]])
    if (np.diff(bounds) < 0).any() or (ranges[:, 0] >= ranges[:, 1]).any():
        raise CorruptFileError("its ranges are not in order")
    return ranges.copy()


def _refuse_joined(engine: CharacterEngine, pattern: str) -> None:
    """Only Oniguruma folds several characters into one; the `regex` crate under fancy-regex has
    simple foldings, of one character to one."""
    if engine.dialect != "oniguruma":
        return
    for folded in sorted(joined_foldings()):
        if any(engine.members("regex", rf"\A{pattern}\z", folded)):
            raise UnsupportedTokenizerError(
                "split pattern", pattern, f"by case folding this class also matches {folded!r}"
            )


def _ask(engine: CharacterEngine, kind: str, pattern: str) -> Ranges:
    pairs: list[tuple[int, int]] = []
    for low, high in ((0, _SURROGATES[0]), (_SURROGATES[1], LAST_CODE_POINT + 1)):
        for first in range(low, high, _BLOCK):
            points = np.arange(first, min(first + _BLOCK, high), dtype="<u4")
            text = points.tobytes().decode("utf-32-le")
            spans = engine.members(kind, pattern, text)
            pairs.extend((first + start, first + end) for start, end in spans)
    return from_pairs(pairs)
