"""Sets of code points, as inversion lists.

    (t0, t1, t2, t3, ...)  means  [t0, t1) + [t2, t3) + ...,   t0 < t1 < t2 < ... <= 0x110000

What a class of a regex engine holds is never described here: the engine itself is asked, by
running the class over a string of all code points.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np

from bpe_automata.errors import RegexSyntaxError, UnsupportedRegexError

N_CODE_POINTS = 0x110000
Inversion = tuple[int, ...]
EVERYTHING: Inversion = (0, N_CODE_POINTS)
SURROGATES = (0xD800, 0xE000)
_BELOW, _ABOVE = slice(0, SURROGATES[0]), slice(SURROGATES[1], N_CODE_POINTS)


@lru_cache(maxsize=1)
def all_code_points() -> str:
    """The string whose character number c is chr(c), surrogates included (4 MB)."""
    units = np.arange(N_CODE_POINTS, dtype="<u4")
    low, high = (units[part].tobytes().decode("utf-32-le") for part in (_BELOW, _ABOVE))
    return low + "".join(map(chr, range(*SURROGATES))) + high


def runs(engine_pattern: Any) -> Inversion:
    """The code points of the runs that a compiled pattern of `re` or `regex` matches."""
    return tuple(chain.from_iterable(m.span() for m in engine_pattern.finditer(all_code_points())))


def union(sets: Iterable[Inversion]) -> Inversion:
    """The code points that are in one of the sets."""
    ranges = sorted(pair for s in sets for pair in zip(s[::2], s[1::2], strict=True))
    merged: list[int] = []
    for start, end in ranges:
        if merged and start <= merged[-1]:
            merged[-1] = max(merged[-1], end)
        else:
            merged += (start, end)
    return tuple(merged)


def complement(members: Inversion) -> Inversion:
    """The code points that are not in the set."""
    flipped = members[1:] if members and members[0] == 0 else (0, *members)
    if flipped and flipped[-1] == N_CODE_POINTS:
        return flipped[:-1]
    return (*flipped, N_CODE_POINTS)


def without(members: Inversion, removed: Inversion) -> Inversion:
    """The code points of the first set that are not in the second."""
    return complement(union((complement(members), removed)))


# `\p{...}`, which the standard library's parser does not know. Each property is replaced by one
# surrogate code point, which no well-formed string holds, so that the parser sees a literal. A
# surrogate that the pattern itself spells, raw or in hexadecimal, is not used. Offsets in the
# shorter pattern are mapped back to the original one.

_ESCAPE = re.compile(r"\\(?:[pP]\{[^{}]*\}|.)", re.DOTALL)
_SENTINELS = range(0xDC00, 0xE000)


@dataclass(frozen=True)
class Substituted:
    """`text` is `pattern` with each property of `names` (by its sentinel) made one character."""

    pattern: str
    text: str
    names: dict[int, str] = field(default_factory=dict)
    shifts: tuple[tuple[int, int], ...] = ((0, 0),)  # offset in text past a sentinel, in pattern

    def position(self, offset: int) -> int:
        """The offset in `pattern` of an offset in `text`."""
        in_text, in_pattern = max(pair for pair in self.shifts if pair[0] <= offset)
        return offset - in_text + in_pattern


def substitute(pattern: str) -> Substituted:
    """Replace the properties of a pattern. Raises RegexSyntaxError for one that is unknown."""
    if "\\p{" not in pattern and "\\P{" not in pattern:
        return Substituted(pattern, pattern)
    lowered, names, shifts = pattern.lower(), dict[str, int](), [(0, 0)]
    free = [s for s in _SENTINELS if f"{s:x}" not in lowered and chr(s) not in pattern]

    def sentinel(match: re.Match[str]) -> str:
        name, (in_text, in_pattern) = match.group(), shifts[-1]
        if len(name) == 2:
            return name
        _check_property(pattern, match.start(), name)
        if name not in names:
            if not free:
                raise UnsupportedRegexError(pattern, match.start(), "too many properties")
            names[name] = free.pop()
        shifts.append((in_text + match.start() - in_pattern + 1, match.end()))
        return chr(names[name])

    text = _ESCAPE.sub(sentinel, pattern)
    return Substituted(pattern, text, {s: n for n, s in names.items()}, tuple(shifts))


def _check_property(pattern: str, position: int, name: str) -> None:
    import regex  # when a property asks for it: that takes a tenth of a second

    try:
        regex.compile(name)
    except regex.error as error:
        raise RegexSyntaxError(pattern, position, f"{name}: {error.msg}") from None


@lru_cache(maxsize=256)
def property_members(name: str, ignore_case: bool) -> Inversion:
    """What the `regex` package matches by a property, for instance `\\p{Lu}`."""
    import regex

    return runs(regex.compile(f"{name}+", regex.IGNORECASE if ignore_case else 0))
