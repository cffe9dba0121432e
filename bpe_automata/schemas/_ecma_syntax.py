"""Patterns of ECMA-262, written anew in the syntax of Python's `re`, token by token.

Of annex B of ECMA-262, syntax that other dialects read in the same way is supported: brackets and
braces as literals, escaped punctuation, hyphens next to `\\w`. Syntax that they read differently
(`\\A`, `\\a`, `{,3}`, `[[:alpha:]]`, `[a&&b]`) is refused, as are lookbehind, backreferences and
word boundaries.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import cast

from bpe_automata._budget import Budget, out_of_instructions
from bpe_automata.automata.codepoints import Inversion, complement, property_members, runs, union
from bpe_automata.automata.syntax import Substituted, substitute
from bpe_automata.errors import RegexSyntaxError, UnsupportedRegexError

# The classes of ECMA-262 as sets of code points. A string is a sequence of code points, as with the
# flag `u`; `\d` and `\w` are ASCII; `\p{...}` is read as the `regex` package reads it.


def _ranges(*pairs: str) -> Inversion:
    return union((ord(pair[0]), ord(pair[-1]) + 1) for pair in pairs)


_SPACE = ("\t\r", " ", "\xa0", "\u1680", "\u2000\u200a", "\u2028\u2029", "\u202f", "\u205f")
_OF_ECMA = (
    _ranges("09"),
    _ranges("09", "AZ", "_", "az"),
    _ranges(*_SPACE, "\u3000", "\ufeff"),
    complement(_ranges("\n", "\r", "\u2028\u2029")),
)
Classes = dict[str, str]
"""The members of `\\d \\D \\w \\W \\s \\S` and `.`, as ranges in a class of `re`."""


def _classes(positive: tuple[Inversion, ...], negated: tuple[Inversion, ...]) -> Classes:
    """positive: of `\\d \\w \\s` and `.`; negated: what `\\D \\W \\S` do not match."""
    found = dict(zip("dws.", positive, strict=True))
    found |= {name: complement(members) for name, members in zip("DWS", negated, strict=False)}
    return {name: _spelled(members) for name, members in found.items()}


def _spelled(members: Inversion) -> str:
    pairs = zip(members[::2], members[1::2], strict=True)
    return "".join(f"{_code_point(a)}-{_code_point(b - 1)}" for a, b in pairs)


def _code_point(code_point: int) -> str:
    character = chr(code_point)
    return character if character.isascii() and character.isalnum() else f"\\U{code_point:08x}"


_ECMA = (_classes(_OF_ECMA, _OF_ECMA),) * 2


@lru_cache(maxsize=1)
def _of_all_dialects() -> tuple[Classes, Classes]:
    """(what all of ECMA-262, Python's `re` and Rust's `regex` match, what at least one of them
    matches). Rust may have more letters and digits than the `regex` package."""
    word = ("Alphabetic", "M", "Nd", "Pc", "Join_Control")
    digits, letters, space, unassigned = (
        union(property_members(rf"\p{{{name}}}", False) for name in names)
        for names in (("Nd",), word, ("White_Space",), ("Cn",))
    )
    of_re, dot = (runs(re.compile(rf"\{name}+")) for name in "dws"), complement(_ranges("\n"))
    of_rust = (digits, letters, space, dot)
    of_later = (union((digits, unassigned)), union((letters, unassigned)), space, dot)
    columns = list(zip(_OF_ECMA, (*of_re, dot), of_rust, of_later, strict=True))
    all_ = tuple(complement(union(map(complement, column))) for column in columns)
    any_ = tuple(map(union, columns))
    return _classes(all_, any_), _classes(any_, all_)


_TOKEN = re.compile(
    r"""
      (?P<repeat> ([*+?] | \{(?P<least>[0-9]+)(,(?P<most>[0-9]*))?\}) \?? )
    | (?P<count> \{\ *([0-9]+\ *,?|,)\ *[0-9]*\ *\} )  # of another dialect
    | (?P<lookahead> \(\?[=!] )
    | (?P<lookbehind> \(\?<[=!] )
    | (?P<group> \((\?(:|<[\w$]+>))?(?!\?) )
    | (?P<anchor> [\^$] )
    | (?P<dialect> \\[AZz] )
    | (?P<boundary> \\[bB] )
    | (?P<backreference> \\([1-9]|k<) )
    | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_REFUSED = {
    "lookbehind": "lookbehind is not supported",
    "boundary": "a word boundary is not supported",
    "backreference": "a backreference is not regular",
}
_ESCAPE = re.compile(
    r"""\\( (?P<set>[dDwWsS]) | (?P<property>[pP]\{[^{}^]*\}) | (?P<control>[tnvfr])
        | u(?P<high>[Dd][89ABab][0-9A-Fa-f]{2})\\u(?P<low>[Dd][C-Fc-f][0-9A-Fa-f]{2})
        | (u\{(?P<long>[0-9A-Fa-f]+)\} | u(?P<short>[0-9A-Fa-f]{4}) | x(?P<byte>[0-9A-Fa-f]{2}))
        | c(?P<letter>[A-Za-z]) | (?P<zero>0(?![0-9])) | (?P<itself>[^A-Za-z0-9]) )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r"\\(.)")
_OPERATOR = re.compile("&&|--|~~")  # of sets, in Rust


class Translation:
    """A pattern in the syntax of `re`, as `source`. agreed: classes have what all dialects agree
    on, so that each of them finds a match where one is found, and `\\A \\Z \\z` are supported.
    positions: of the last anchor and of the last lookahead."""

    def __init__(self, pattern: str, budget: Budget, agreed: bool) -> None:
        self._pattern, self._at, self._agreed, self._budget = pattern, 0, agreed, budget
        self._classes = _of_all_dialects() if agreed else _ECMA  # by whether they are denied
        self._denied = [False]  # of each open group: is it in an odd number of negations?
        self._open = 0  # [ in classes so far; where classes nest, as many ] must still come
        self.positions = {"anchor": 0, "lookahead": 0}
        parts, length, shifts = list[str](), 0, list[tuple[int, int]]()
        while self._at < len(pattern):
            shifts.append((length, self._at))
            parts.append(self._token())
            length += len(parts[-1])
        shifts.append((length, self._at))
        found = substitute("".join(parts))
        self.source = Substituted(pattern, found.text, found.names, tuple(shifts))

    def _token(self) -> str:
        """The translation of the next token; `_at` moves behind it."""
        at, found = self._at, cast(re.Match[str], _TOKEN.match(self._pattern, self._at))
        kind, text = found.lastgroup, found[0]  # "other" is any character
        if kind in _REFUSED:
            raise UnsupportedRegexError(self._pattern, at, _REFUSED[kind])
        if kind == "count":
            raise self._differs(at, text, "the least count, or \\{")
        if kind == "other" or (kind == "dialect" and not self._agreed):
            return self._other(text[0])
        self._at = found.end()
        if kind == "repeat":
            return self._repeat(found)
        if kind in ("group", "lookahead"):
            self.positions["lookahead"] = at if kind == "lookahead" else self.positions["lookahead"]
            self._denied.append(self._denied[-1] ^ (text == "(?!"))
            return text if kind == "lookahead" else "(?:"
        self.positions["anchor"] = at
        if text in ("^", r"\A"):
            return "^"
        return r"\n?$" if self._agreed and self._denied[-1] else "$"  # as `re` reads it

    def _differs(self, at: int, what: str, write: str) -> RegexSyntaxError:
        why = f"dialects of regexes differ about {what}: write {write}"
        return RegexSyntaxError(self._pattern, at, why)

    def _repeat(self, found: re.Match[str]) -> str:
        most = self._budget.max_instructions
        for count in filter(None, (found["least"], found["most"])):
            if len(count.lstrip("0")) > len(str(most)) or int(count) > most:
                raise out_of_instructions(self._budget)
        after = _TOKEN.match(self._pattern, self._at)
        if after and after["repeat"]:
            raise RegexSyntaxError(self._pattern, self._at, "nothing to repeat")
        return found["repeat"].removesuffix("?") or "?"

    def _other(self, character: str) -> str:
        """The translation of a character, or of the escape or the class that it begins."""
        at = self._at
        if character == "\\":
            text, is_one = self._escape(in_class=False)
            return text if is_one or text[:2] in (r"\p", r"\P") else f"[{text}]"
        self._at += 1
        if character == "[":
            return self._class()
        if character == "(":
            why = f"{self._pattern[at : at + 3]!r} is no group of ECMA-262"
            raise RegexSyntaxError(self._pattern, at, why)
        if character == ")" and len(self._denied) > 1:
            self._denied.pop()
        if character == "]" and self._open:
            self._open -= 1
            if not self._open:
                raise self._differs(at, "a class in a class", "\\[ or \\]")
        if character == ".":
            return f"[{self._classes[self._denied[-1]]['.']}]"
        return character if character in "|)" else _code_point(ord(character))

    def _escape(self, in_class: bool, negated: bool = False) -> tuple[str, bool]:
        """(translation of an escape, is it one character?). negated: is the class around it?"""
        at, found = self._at, _ESCAPE.match(self._pattern, self._at)
        letter = self._pattern[at + 1 : at + 2]
        if in_class and letter == "b":
            self._at += 2
            return _code_point(8), True
        if not letter:
            raise RegexSyntaxError(self._pattern, at, "a backslash at the end")
        if found is None or (letter in "<>" and not in_class):
            write = {"A": "^", "Z": "$", "z": "$"}.get(letter, "the characters that are meant")
            raise self._differs(at, f"\\{letter}", write)
        self._at = found.end()
        if found["set"]:
            return self._classes[self._denied[-1] ^ negated][letter], False
        if found["property"]:
            return found[0], False
        code_point = ord(letter)
        if found["high"]:
            high, low = int(found["high"], 16), int(found["low"], 16)
            code_point = 0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF)
        elif digits := found["long"] or found["short"] or found["byte"]:
            code_point = int(digits, 16)
        elif found["control"] or found["zero"]:
            code_point = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13, "0": 0}[letter]
        elif found["letter"]:
            code_point = ord(found["letter"]) % 32
        if code_point > 0x10FFFF:
            raise RegexSyntaxError(self._pattern, at, "a code point above 10FFFF")
        return _code_point(code_point), True

    def _class(self) -> str:
        """The translation of a class; `_at` is behind its first bracket."""
        start, parts = self._at, list[str]()
        negated = self._pattern[start : start + 1] == "^"
        self._at += negated
        if self._pattern[self._at : self._at + 1] == "]":
            if "]" in _ESCAPED.sub("", self._pattern[self._at + 1 :]):
                raise self._differs(self._at, "a ] that comes first in a class", "\\]")
            self._at += 1
            return "(?s:.)" if negated else r"[^\s\S]"
        while self._pattern[self._at : self._at + 1] != "]":
            text, is_one = self._member(start, negated)
            if re.compile("-[^]]", re.DOTALL).match(self._pattern, self._at):
                self._check_operator()
                self._at += 1
                last, both = self._member(start, negated)
                text += ("-" if is_one and both else r"\-") + last  # next to a set it is a literal
            self._check_operator()
            parts.append(text)
        self._at += 1
        escapes = _ESCAPED.findall(self._pattern[start : self._at])
        if any(letter in escapes and letter.upper() in escapes for letter in "dws"):
            parts = [r"\s\S"]
        inside = _ESCAPED.sub("x", self._pattern[start : self._at])
        self._open += inside.count("[") + inside.endswith(("[]", "[^]"))  # there, ] is a member
        return f"[{'^' * negated}{''.join(parts)}]"

    def _member(self, start: int, negated: bool) -> tuple[str, bool]:
        if self._at >= len(self._pattern):
            raise RegexSyntaxError(self._pattern, start - 1, "a class that is not closed")
        self._check_operator()
        if self._pattern[self._at] == "\\":
            return self._escape(in_class=True, negated=negated)
        self._at += 1
        return _code_point(ord(self._pattern[self._at - 1])), True

    def _check_operator(self) -> None:
        if found := _OPERATOR.match(self._pattern, self._at):
            raise self._differs(self._at, found[0], f"\\{found[0][0]}")
