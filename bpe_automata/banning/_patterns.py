"""Banned words as regexes.

With `ignore_case` a text reads as the word w if either of these holds:

    re.fullmatch(re.escape(w), text, re.IGNORECASE)      simple folding, one character for one
    text.casefold() == w.casefold()                      full folding, `ß` as `ss`, `ﬁ` as `fi`

Neither contains the other: the first takes `ı` (dotless) for `i`, the second does not. Both compare
whole characters: `ßa` folds to `ssa`, but no part of it reads as `sa`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache

from bpe_automata._budget import check
from bpe_automata.automata.compile import Budget, compile_regex
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.errors import EmptyLanguageError, UnsupportedRegexError

_FLAGS = re.compile(r"\(\?([aiLmsux]+)\)")
_LONGEST = 3  # characters that one character can fold to
_EDGE = r"[\s\S]"


def word_pattern(word: str, ignore_case: bool) -> str:
    """A regex of the texts that read as the word."""
    check()
    escaped = re.escape(word)
    if not ignore_case:
        return escaped
    return f"(?i:{escaped})|{_folded(word.casefold())}"


def checked_regex(regex: str, ignore_case: bool, budget: Budget) -> str:
    """The regex as a group that may stand inside others.

    Raises RegexError (also for an anchor, as a ban holds anywhere in a text), EmptyLanguageError
    if the regex matches the empty text, BudgetExceededError.
    """
    if compile_regex(regex, budget).accepts(b""):
        raise EmptyLanguageError(
            f"the regex {regex!r} matches the empty text, which every text holds: banning it would "
            "forbid everything"
        )
    grouped, shift = _grouped(regex)
    around = f"{_EDGE}{grouped}{_EDGE}"
    try:
        compile_regex(around, budget)
    except UnsupportedRegexError as error:
        position = error.position - len(_EDGE) - shift
        raise UnsupportedRegexError(regex, max(0, position), error.reason) from None
    return f"(?i:{grouped})" if ignore_case else grouped


def _grouped(regex: str) -> tuple[str, int]:
    """(the regex as a group with its leading flags, how far that shifts its positions)."""
    flags, start = "", 0
    while found := _FLAGS.match(regex, start):
        flags += found[1]
        start = found.end()
    opened = f"(?{''.join(dict.fromkeys(flags))}:"
    end = "\n)" if "x" in flags else ")"  # a comment would go on to the end of its line
    return f"{opened}{regex[start:]}{end}", len(opened) - start


# ---------------------------------------------------------------- full case folding


@lru_cache(maxsize=1)
def _unfolded() -> Mapping[str, str]:
    """folding -> the characters that fold to it."""
    found: dict[str, str] = defaultdict(str)
    for code in range(0x110000):
        if (folded := chr(code).casefold()) != chr(code):
            found[folded] += chr(code)
    return found


def _characters(folded: str) -> str:
    """The characters c with c.casefold() == folded."""
    itself = folded if folded.casefold() == folded and len(folded) == 1 else ""
    return itself + _unfolded().get(folded, "")


def _folded(text: str) -> str:
    """A regex of { s : s.casefold() == text }. Either no character of s folds to a part of `text`
    that spans its middle, or one of the few that can does."""
    if not text:
        return ""
    if len(text) == 1:
        found = _characters(text)
        return f"[{re.escape(found)}]" if found else r"[^\s\S]"
    middle = len(text) // 2
    ways = [_folded(text[:middle]) + _folded(text[middle:])]
    for low, high in _over(middle, len(text)):
        if found := _characters(text[low:high]):
            inner = f"[{re.escape(found)}]"
            ways.append(_folded(text[:low]) + inner + _folded(text[high:]))
    return ways[0] if len(ways) == 1 else f"(?:{'|'.join(ways)})"


def _over(middle: int, length: int) -> Iterator[tuple[int, int]]:
    """The spans of 2 or 3 positions that `middle` is inside of."""
    for low in range(max(0, middle - _LONGEST + 1), middle):
        for high in range(middle + 1, min(length, low + _LONGEST) + 1):
            yield low, high


# ---------------------------------------------------------------- whole words


@lru_cache(maxsize=1)
def not_of_word() -> ByteDFA:
    """One character that is no word character."""
    return compile_regex(r"\W")


@lru_cache(maxsize=1)
def word_may_begin() -> ByteDFA:
    """The texts after which a word may begin."""
    return compile_regex(r"(?:[\s\S]*\W)?")


@lru_cache(maxsize=1)
def word_has_ended() -> ByteDFA:
    """The texts that may follow a whole word: those that do not begin with a word character."""
    return compile_regex(r"(?:\W[\s\S]*)?")
