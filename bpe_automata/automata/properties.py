"""`\\p{...}` in front of a parser that does not know it.

Each property is replaced by one surrogate code point, which no well-formed text holds, so the
parser sees a literal. A surrogate that the pattern itself spells, raw or in hexadecimal, is not
used. Offsets in the shorter pattern are mapped back to the original one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from bpe_automata.automata.codepoints import Inversion, runs
from bpe_automata.errors import RegexSyntaxError, UnsupportedRegexError

_ESCAPE = re.compile(r"\\(?:[pP]\{[^{}]*\}|.)", re.DOTALL)
_SENTINELS = range(0xDC00, 0xE000)


def _regex() -> Any:
    """The package `regex`, imported when a property asks for it: that takes a tenth of a second."""
    import regex

    return regex


@dataclass(frozen=True)
class Substituted:
    """`text` is `pattern` with each property of `names` (by its sentinel) made one character."""

    pattern: str
    text: str
    names: dict[int, str] = field(default_factory=dict)
    shifts: tuple[tuple[int, int], ...] = ()  # (offset in text past a sentinel, in pattern)

    def position(self, offset: int) -> int:
        """The offset in `pattern` of an offset in `text`."""
        known = [pair for pair in self.shifts if pair[0] <= offset]
        return offset if not known else offset - known[-1][0] + known[-1][1]


def substitute(pattern: str) -> Substituted:
    """Replace the properties of a pattern. Raises RegexSyntaxError for one that is unknown."""
    if "\\p{" not in pattern and "\\P{" not in pattern:
        return Substituted(pattern, pattern)
    free = _free_sentinels(pattern)
    names: dict[str, int] = {}
    parts: list[str] = []
    shifts: list[tuple[int, int]] = []
    end = length = 0
    for match in _ESCAPE.finditer(pattern):
        name = match.group()
        if len(name) == 2:
            continue
        _check_property(pattern, match.start(), name)
        if name not in names:
            if not free:
                raise UnsupportedRegexError(pattern, match.start(), "too many properties")
            names[name] = free.pop()
        parts += (pattern[end : match.start()], chr(names[name]))
        length += match.start() - end + 1
        end = match.end()
        shifts.append((length, end))
    text = "".join((*parts, pattern[end:]))
    return Substituted(pattern, text, {s: n for n, s in names.items()}, tuple(shifts))


def _free_sentinels(pattern: str) -> list[int]:
    lowered = pattern.lower()
    return [s for s in _SENTINELS if f"{s:x}" not in lowered and chr(s) not in pattern]


def _check_property(pattern: str, position: int, name: str) -> None:
    try:
        _regex().compile(name)
    except _regex().error as error:
        raise RegexSyntaxError(pattern, position, f"{name}: {error.msg}") from None


@lru_cache(maxsize=256)
def property_members(name: str, ignore_case: bool) -> Inversion:
    """What the `regex` package matches by a property, for instance `\\p{Lu}`."""
    flags = _regex().IGNORECASE if ignore_case else 0
    return runs(_regex().compile(f"{name}+", flags))
