"""Translates ECMA-262 patterns into the syntax of Python's `re`, with assertions as markers.

The grammar is that of `Pattern` in ECMA-262, with annex B. Lookaround and backreferences are
refused, with their position. `^ $ \\b \\B` become surrogates, which are in no string (MARKERS);
`strings.compile_marked` interprets them.
"""

from __future__ import annotations

import re
from functools import lru_cache

from bpe_automata._automata.codepoints import (
    EVERYTHING,
    SURROGATES,
    Inversion,
    complement,
    property_members,
    union,
)
from bpe_automata._budget import Budget, out_of_instructions
from bpe_automata._sharing import cached
from bpe_automata.errors import RegexSyntaxError, UnsupportedRegexError

# Characters and classes of ECMA-262 patterns, as sets of code points.
#
# `\d` and `\w` are ASCII, `\s` is the WhiteSpace and LineTerminator of the standard, `.` all but
# line terminators; `\p{...}` is read as the `regex` package reads it. A string is a sequence of
# code points, as with the flag `u`; the additional escapes of annex B are read as browsers do.


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
    """(the characters that the escape at index `at` matches, the index after it).

    Raises RegexSyntaxError. Word boundaries and backreferences must have been handled before.
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
    """`\\cJ` is a control character; before other characters, `\\c` is a literal backslash."""
    letter = pattern[at + 2 : at + 3]
    if letter.isascii() and (
        letter.isalpha() or (in_class and (letter.isdigit() or letter == "_"))
    ):
        return _one(ord(letter) % 32), at + 3
    return _one(ord("\\")), at + 1


def character_class(pattern: str, at: int) -> tuple[Inversion, int]:
    """(the characters of the class that opens at index `at`, the index after it). Raises
    RegexSyntaxError."""
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
    """The characters of a range. Next to a set (`\\w-z`), the hyphen is a literal."""
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
        return r"[^\s\S]"  # a surrogate is in no string, and alone it may be a marker
    if _is_one(members):
        return _code_point(members[0])
    pairs = zip(members[::2], members[1::2], strict=True)
    return f"[{''.join(f'{_code_point(a)}-{_code_point(b - 1)}' for a, b in pairs)}]"


def _code_point(code_point: int) -> str:
    character = chr(code_point)
    plain = character.isascii() and character.isalnum()
    return character if plain else f"\\U{code_point:08x}"


_SPELLED = r"(?:[^\^$\\.*+?()\[\]{}|]|\\[\^$\\.*+?()\[\]{}/-])*+"
_LISTED = re.compile(rf"\^(?:({_SPELLED})|\((?:\?:)?({_SPELLED}(?:\|{_SPELLED})*+)\))\$")
_ESCAPED = re.compile(r"\\(.)")


def listed(pattern: str) -> frozenset[str] | None:
    """The strings in which a pattern matches that spells them out, as `^a$` and `^(a|b)$` do; None
    for any other pattern."""
    found = _LISTED.fullmatch(pattern)
    if found is None:
        return None
    spelled = [found[1]] if found[2] is None else found[2].split("|")
    return frozenset(_ESCAPED.sub(r"\1", text) for text in spelled)


BEGIN, END, BOUNDARY, NO_BOUNDARY = MARKERS = "\ud800\ud801\ud802\ud803"
_REPEAT = re.compile(r"([*+?]|\{(?P<least>[0-9]+)(?P<comma>,(?P<most>[0-9]*))?\})\??")
_GROUP = re.compile(r"\((?!\?)|\(\?<(?![=!])")
_OPENED = re.compile(r"\((?:\?(?::|<(?P<name>[\w$]+)>))?(?!\?)")
_AHEAD = re.compile(r"\(\?([=!])")
_LOOKAROUND = re.compile(r"\(\?(<?)[=!]")
_NUMBER = re.compile(r"[1-9][0-9]{0,9}(?![0-9])")
_SKIPPED = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]", re.DOTALL)  # where no group can open


Alternatives = tuple[tuple[str, ...], ...]
"""The terms of each alternative, in the syntax of `re`, with MARKERS for assertions."""
Condition = tuple[bool, Alternatives]
"""Whether the string must begin with any of some alternatives, or must not."""
Conditional = tuple[tuple[str, ...], list[Condition]]
"""The terms of an alternative, and what they are subject to."""


def grouped(alternatives: Alternatives) -> str:
    """All of them as one group."""
    return f"(?:{'|'.join(''.join(terms) for terms in alternatives)})"


def translate(pattern: str, budget: Budget) -> list[Conditional]:
    """The alternatives of a pattern, each with its conditions. Raises RegexSyntaxError,
    UnsupportedRegexError, and BudgetExceededError for a repetition that no automaton within the
    budget can count."""
    if len(pattern) > budget.max_instructions:
        raise out_of_instructions(budget)
    reader, found = _Reader(pattern, budget), list[Conditional]()
    while not found or pattern[reader.at : reader.at + 1] == "|":
        reader.at += bool(found)
        conditions = reader.conditions()
        begin = (BEGIN,) if conditions else ()
        found.append(((*begin, *reader.terms()), conditions))
    if reader.at < len(pattern):
        raise RegexSyntaxError(pattern, reader.at, "a closing bracket that was not opened")
    return found


class _Reader:
    """A parser by recursive descent; `at` is the index of the next character."""

    def __init__(self, pattern: str, budget: Budget) -> None:
        self.pattern, self.at, self._budget = pattern, 0, budget

    @cached
    def _bare(self) -> str:
        return _SKIPPED.sub("", self.pattern)

    @cached
    def _groups(self) -> int:
        return len(_GROUP.findall(self._bare))

    @cached
    def _named(self) -> bool:
        return "(?<" in re.sub(r"\(\?<[=!]", "", self._bare)

    def alternatives(self) -> Alternatives:
        """The alternatives up to the end or to a closing bracket."""
        found = [self.terms()]
        while self.pattern[self.at : self.at + 1] == "|":
            self.at += 1
            found.append(self.terms())
        return tuple(found)

    def terms(self) -> tuple[str, ...]:
        """Those of one alternative."""
        found = []
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            found.append(self._term())
        return tuple(found)

    def conditions(self) -> list[Condition]:
        """Those behind a `^` that comes next, if there are any."""
        found, at = list[Condition](), self.at + 1
        if self.pattern[self.at : at] == "^":
            while ahead := _AHEAD.match(self.pattern, at):
                found.append((ahead[1] == "=", self._inside(at, ahead.end())))
                at = self.at
        return found

    def _term(self) -> str:
        start = self.at
        atom = self._atom()
        repeat = _REPEAT.match(self.pattern, self.at)
        if repeat is None:
            return atom
        if atom in MARKERS:
            raise RegexSyntaxError(self.pattern, start, "an assertion cannot be repeated")
        self.at = repeat.end()
        return atom + self._bounds(repeat)

    def _bounds(self, repeat: re.Match[str]) -> str:
        if repeat["least"] is None:
            return repeat.group(1)[0]
        least, most = self._count(repeat["least"]), repeat["most"]
        if most and self._count(most) < least:
            raise RegexSyntaxError(self.pattern, repeat.start(), "a count that is out of order")
        comma, last = ("," if repeat["comma"] else ""), (most or "")
        return f"{{{least}{comma}{last}}}"

    def _count(self, digits: str) -> int:
        limit = self._budget.max_instructions
        if len(digits.lstrip("0")) > len(str(limit)) or int(digits) > limit:
            raise out_of_instructions(self._budget)
        return int(digits)

    def _atom(self) -> str:
        character = self.pattern[self.at]
        if character == "(":
            return self._group()
        if character == "[":
            members, self.at = character_class(self.pattern, self.at)
            return spelled(members)
        if character == "\\":
            return self._escape()
        if character in "*+?" or _REPEAT.match(self.pattern, self.at):
            raise RegexSyntaxError(self.pattern, self.at, "nothing to repeat")
        self.at += 1
        if character in "^$":
            return BEGIN if character == "^" else END
        if character == ".":
            return spelled(ANY_BUT_LINE_ENDS)
        return spelled((ord(character), ord(character) + 1))

    def _group(self) -> str:
        start = self.at
        if refused := _LOOKAROUND.match(self.pattern, start):
            name = "lookbehind" if refused[1] else "lookahead"
            raise UnsupportedRegexError(self.pattern, start, f"{name} is not supported")
        opened = _OPENED.match(self.pattern, start)
        if opened is None:
            reason = f"{self.pattern[start : start + 3]!r} is no group of ECMA-262"
            raise RegexSyntaxError(self.pattern, start, reason)
        return grouped(self._inside(start, opened.end()))

    def _inside(self, start: int, begin: int) -> Alternatives:
        """The alternatives of a group, from its bracket at `start` to the closing one."""
        self.at = begin
        inside = self.alternatives()
        if self.at >= len(self.pattern):
            raise RegexSyntaxError(self.pattern, start, "a group that is not closed")
        self.at += 1
        return inside

    def _escape(self) -> str:
        letter = self.pattern[self.at + 1 : self.at + 2]
        if letter and letter in "bB":
            self.at += 2
            return BOUNDARY if letter == "b" else NO_BOUNDARY
        number = _NUMBER.match(self.pattern, self.at + 1)
        within = number is not None and int(number.group()) <= self._groups
        if within or (letter == "k" and self._named):
            raise UnsupportedRegexError(self.pattern, self.at, "a backreference is not regular")
        members, self.at = escaped(self.pattern, self.at, in_class=False)
        return spelled(members)
