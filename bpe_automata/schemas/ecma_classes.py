"""Characters and classes of ECMA-262 patterns, as sets of code points.

`\\d` and `\\w` are ASCII, `\\s` is the WhiteSpace and LineTerminator of the standard, `.` all but
line terminators; `\\p{...}` is read as the `regex` package reads it. A text is code points (as with
the flag `u`); the escapes that only browsers must accept (annex B) are read as they read them.
"""

from __future__ import annotations

import re
from functools import lru_cache

from bpe_automata.automata.codepoints import (
    EVERYTHING,
    SURROGATES,
    Inversion,
    complement,
    property_members,
    union,
)
from bpe_automata.errors import RegexSyntaxError


def _ranges(*pairs: str) -> Inversion:
    return union((ord(pair[0]), ord(pair[-1]) + 1) for pair in pairs)


DIGITS = _ranges("09")
WORD = _ranges("09", "AZ", "_", "az")
SPACE = _ranges("\t\r", " ", "\xa0", "\u1680", "\u2000\u200a", "\u2028\u2029", "\u202f", "\u205f")
SPACE = union((SPACE, _ranges("\u3000", "\ufeff")))
ANY_BUT_LINE_ENDS = complement(_ranges("\n", "\r", "\u2028\u2029"))
_SETS = {
    "d": DIGITS,
    "D": complement(DIGITS),
    "w": WORD,
    "W": complement(WORD),
    "s": SPACE,
    "S": complement(SPACE),
}
_CONTROLS = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_HEX = re.compile(
    r"u\{(?P<long>[0-9A-Fa-f]+)\}"
    r"|u(?P<high>[Dd][89ABab][0-9A-Fa-f]{2})\\u(?P<low>[Dd][C-Fc-f][0-9A-Fa-f]{2})"
    r"|u(?P<short>[0-9A-Fa-f]{4})|x(?P<byte>[0-9A-Fa-f]{2})"
)
_PROPERTY = re.compile(r"[pP]\{[^{}]*\}")
_OCTAL = re.compile(r"[0-3][0-7]{0,2}|[4-7][0-7]?")


def escaped(pattern: str, at: int, in_class: bool) -> tuple[Inversion, int]:
    """(what the escape whose backslash stands at `at` matches, the place after it).

    Raises RegexSyntaxError. Word boundaries and backreferences are not for this function.
    """
    if at + 1 >= len(pattern):
        raise RegexSyntaxError(pattern, at, "a backslash at the end")
    letter = pattern[at + 1]
    if letter in _SETS:
        return _SETS[letter], at + 2
    if found := _PROPERTY.match(pattern, at + 1):
        return _property(pattern, at, found.group()), found.end()
    if found := _HEX.match(pattern, at + 1):
        return _one(_hexadecimal(pattern, at, found)), found.end()
    if found := _OCTAL.match(pattern, at + 1):
        return _one(int(found.group(), 8)), found.end()
    if letter == "c":
        return _control_letter(pattern, at, in_class)
    if in_class and letter == "b":
        return _one(8), at + 2
    return _one(_CONTROLS.get(letter, ord(letter))), at + 2


def _one(code_point: int) -> Inversion:
    return (code_point, code_point + 1)


def _property(pattern: str, at: int, name: str) -> Inversion:
    import regex

    try:
        return property_members(f"\\{name}", False)
    except regex.error as error:
        raise RegexSyntaxError(pattern, at, f"\\{name}: {error.msg}") from None


def _hexadecimal(pattern: str, at: int, found: re.Match[str]) -> int:
    if found["high"]:
        high, low = int(found["high"], 16), int(found["low"], 16)
        return 0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF)
    code_point = int(found["long"] or found["short"] or found["byte"], 16)
    if code_point > 0x10FFFF:
        raise RegexSyntaxError(pattern, at, "a code point above 10FFFF")
    return code_point


def _control_letter(pattern: str, at: int, in_class: bool) -> tuple[Inversion, int]:
    """`\\cJ` is a control character; before anything else the backslash stands for itself."""
    letter = pattern[at + 2 : at + 3]
    if letter.isascii() and (
        letter.isalpha() or (in_class and (letter.isdigit() or letter == "_"))
    ):
        return _one(ord(letter) % 32), at + 3
    return _one(ord("\\")), at + 1


def character_class(pattern: str, at: int) -> tuple[Inversion, int]:
    """(what the class that opens at `at` matches, the place after it). Raises RegexSyntaxError."""
    opened, at = at, at + 1
    negated = pattern[at : at + 1] == "^"
    at += negated
    parts: list[Inversion] = []
    while pattern[at : at + 1] != "]":
        if at >= len(pattern):
            raise RegexSyntaxError(pattern, opened, "a class that is not closed")
        first, after = _member(pattern, at)
        if pattern[after : after + 1] == "-" and pattern[after + 1 : after + 2] not in ("]", ""):
            last, end = _member(pattern, after + 1)
            parts.append(_range(pattern, at, first, last))
            at = end
        else:
            parts.append(first)
            at = after
    members = union(parts)
    return (complement(members) if negated else members), at + 1


def _member(pattern: str, at: int) -> tuple[Inversion, int]:
    if pattern[at] == "\\":
        return escaped(pattern, at, in_class=True)
    return _one(ord(pattern[at])), at + 1


def _range(pattern: str, at: int, first: Inversion, last: Inversion) -> Inversion:
    """From one character to another. Beside a set (`\\w-z`) the hyphen stands for itself."""
    if not (_is_one(first) and _is_one(last)):
        return union((first, _one(ord("-")), last))
    if first[0] > last[0]:
        raise RegexSyntaxError(pattern, at, "a range that is out of order")
    return (first[0], last[1])


def _is_one(members: Inversion) -> bool:
    return len(members) == 2 and members[1] == members[0] + 1


@lru_cache(maxsize=4096)
def spelled(members: Inversion) -> str:
    """The class as Python's `re` spells it."""
    if members == EVERYTHING:
        return "(?s:.)"
    if not members or (_is_one(members) and SURROGATES[0] <= members[0] < SURROGATES[1]):
        return r"[^\s\S]"  # a surrogate is in no text, and alone it may be a marker
    if _is_one(members):
        return _code_point(members[0])
    pairs = zip(members[::2], members[1::2], strict=True)
    return f"[{''.join(f'{_code_point(a)}-{_code_point(b - 1)}' for a, b in pairs)}]"


def _code_point(code_point: int) -> str:
    character = chr(code_point)
    plain = character.isascii() and character.isalnum()
    return character if plain else f"\\U{code_point:08x}"
