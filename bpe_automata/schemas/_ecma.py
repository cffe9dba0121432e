"""Compiles patterns of ECMA-262 to the automata of the strings in which they match somewhere.

    L(ecma_pattern(p)) = { w in UTF-8 : new RegExp(p, "u").test(w) }

A pattern is written anew in the syntax of Python's `re`, token by token (`_Translation`); anchors
and conditions are taken out of the tree that its parser gives (`_Ways`); the rest is compiled.

Of annex B of ECMA-262 this reads what other dialects read alike: brackets and braces as literals,
escaped punctuation, hyphens next to `\\w`. What they read otherwise (`\\A`, `\\a`, `{,3}`,
`[[:alpha:]]`, `[a&&b]`) is refused, as are lookaround (but that behind a `^` at the beginning),
backreferences, word boundaries, and a `^` or `$` that is neither first nor last.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import lru_cache
from re import _parser  # type: ignore[attr-defined]
from typing import Any, cast

from bpe_automata._budget import Budget, out_of_instructions, spending
from bpe_automata.automata.algebra import any_of, difference, intersection
from bpe_automata.automata.codepoints import (
    Inversion,
    Substituted,
    complement,
    property_members,
    runs,
    substitute,
    union,
)
from bpe_automata.automata.compile import compile_tree
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.syntax import Parsed, parse_all
from bpe_automata.errors import BudgetExceededError, RegexSyntaxError, UnsupportedRegexError

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
    """(what all of ECMA-262, Python's `re` and Rust's `regex` match, what any of them does). Rust
    may know more letters and digits than the `regex` package."""
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


class _Translation:
    """A pattern in the syntax of `re`, as `source`. agreed: classes are those of all dialects, so
    that each of them finds a match where one is found, and `\\A \\Z \\z` are known. places: where
    the last anchor is, and the last condition."""

    def __init__(self, pattern: str, budget: Budget, agreed: bool) -> None:
        self._pattern, self._at, self._agreed, self._budget = pattern, 0, agreed, budget
        self._classes = _of_all_dialects() if agreed else _ECMA  # by whether they are denied
        self._denied = [False]  # of each open group: is it in an odd number of negations?
        self._open = 0  # [ in classes so far; where classes nest, as many ] must still come
        self.places = {"anchor": 0, "lookahead": 0}
        parts, length, shifts = list[str](), 0, list[tuple[int, int]]()
        while self._at < len(pattern):
            shifts.append((length, self._at))
            parts.append(self._token())
            length += len(parts[-1])
        shifts.append((length, self._at))
        found = substitute("".join(parts))
        self.source = Substituted(pattern, found.text, found.names, tuple(shifts))

    def _token(self) -> str:
        """What the next token becomes; `_at` moves behind it."""
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
            self.places["lookahead"] = at if kind == "lookahead" else self.places["lookahead"]
            self._denied.append(self._denied[-1] ^ (text == "(?!"))
            return text if kind == "lookahead" else "(?:"
        self.places["anchor"] = at
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
        """What one character becomes, or an escape or a class that it begins."""
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
        """(what an escape becomes, is it one character?). negated: is the class around it?"""
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
        """The class behind whose first bracket `_at` is."""
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


# Anchors are taken out of the tree: it is divided into the ways to match.

_MOST_WAYS = 256
_ANYTHING = tuple(_parser.parse("(?s:.*)"))


@dataclass(frozen=True)
class _Way:
    """A way to match: nodes of the tree, without anchors, and whether what they read must begin the
    string, or end it. conditions: (must it match?, tree) at the beginning of the string."""

    items: tuple[Any, ...] = ()
    begins: bool = False
    ends: bool = False
    conditions: tuple[tuple[bool, Any], ...] = ()

    @property
    def is_plain(self) -> bool:
        """Has it no anchors?"""
        return not (self.begins or self.ends or self.conditions)


class _Ways:
    """The ways to match what a pattern says. Raises UnsupportedRegexError."""

    def __init__(self, translated: _Translation, budget: Budget) -> None:
        self._source, self._budget = translated.source, budget
        self._places = translated.places
        tree = parse_all(self._source)
        self._flags, self.all = tree.state.flags, self._of(tree)

    def _of(self, items: Any) -> list[_Way]:
        found = [_Way()]
        for op, av in items:
            more = [_Way(((op, av),))]
            if op is _parser.AT:
                begins = av is _parser.AT_BEGINNING
                more = [_Way(begins=begins, ends=not begins)]
            elif op in (_parser.ASSERT, _parser.ASSERT_NOT):
                more = [_Way(conditions=((op is _parser.ASSERT, av[1]),))]
            elif inside := self._inside(op, av):
                more = inside
            if len(found) * len(more) > _MOST_WAYS:
                raise out_of_instructions(self._budget)
            found = [self._joined(one, other) for one in found for other in more]
        return found

    def _inside(self, op: Any, av: Any) -> list[_Way]:
        """Those of a group with anchors in it; none for any other node."""
        if op is _parser.SUBPATTERN:
            found = self._of(av[3])
        elif op is _parser.BRANCH:
            found = [way for body in av[1] for way in self._of(body)]
        elif op in (_parser.MAX_REPEAT, _parser.MIN_REPEAT):
            ways = self._of(av[2])
            if all(way.is_plain for way in ways):
                return []
            kind = "lookahead" if any(way.conditions for way in ways) else "anchor"
            raise self._refused(kind, f"{kind} is not supported in a repeated group")
        else:
            return []
        return [] if all(way.is_plain for way in found) else found

    def _joined(self, one: _Way, other: _Way) -> _Way:
        if (other.begins and (one.items or one.ends)) or (one.ends and other.items):
            why = "an anchor that is neither first nor last is not supported"
            raise self._refused("anchor", why)
        if one.items and other.conditions:
            raise self._refused("lookahead", "lookahead is not supported")
        return _Way(
            one.items + other.items,
            one.begins or other.begins,
            one.ends or other.ends,
            one.conditions + other.conditions,
        )

    def _refused(self, kind: str, why: str) -> UnsupportedRegexError:
        at = self._places.get(kind, 0)
        return UnsupportedRegexError(self._source.pattern, at, why)

    def strings(self, ways: list[_Way], begins: bool = False) -> ByteDFA:
        """The strings that have a match in one of some ways. begins: at their beginning.

        A condition is a language of its own, as the beginning of the string is the only place to
        look from: ^(?=A)(?!B)C has a match in the strings of ^C & ^(?:A) - ^(?:B)."""
        plain = [way for way in ways if not way.conditions]
        found = [self._language(plain, begins)] if plain else []
        for way in ways:
            if not way.conditions:
                continue
            if not (begins or way.begins):
                raise self._refused("lookahead", "lookahead is not supported")
            some = self._language([way], begins)
            for is_there, tree in way.conditions:
                there = self.strings(self._of(tree), begins=True)
                some = (intersection if is_there else difference)(some, there, self._budget)
            found.append(some)
        return found[0] if len(found) == 1 else any_of(found, self._budget)

    def _language(self, ways: list[_Way], begins: bool) -> ByteDFA:
        """The same, without a look at conditions."""
        # `.*` is written once for all ways: with a copy for each, the determinized automaton
        # would remember which of them have matched.
        bodies: dict[bool, dict[bool, list[Any]]] = {}  # by whether they end, and begin, the string
        for way in ways:
            bodies.setdefault(way.ends, {}).setdefault(begins or way.begins, []).append(way.items)
        found = []
        for ends, some in bodies.items():
            inner = [
                [*(() if at_begin else _ANYTHING), (_parser.BRANCH, (None, items))]
                for at_begin, items in some.items()
            ]
            found.append([(_parser.BRANCH, (None, inner)), *(() if ends else _ANYTHING)])
        tree = [(_parser.BRANCH, (None, found))]
        return compile_tree(Parsed(self._source, tree, self._flags), self._budget)


@lru_cache(maxsize=1024)
def ecma_pattern(pattern: str, budget: Budget = Budget(), agreed: bool = False) -> ByteDFA:  # noqa: B008 - frozen
    """The strings in which the ECMA-262 pattern matches somewhere, by code points.

    agreed: those in which it matches by Python's `re` and Rust's `regex` too. `\\A \\Z \\z` are
    then known. Raises RegexSyntaxError for what is no pattern, and for what other dialects read
    otherwise, UnsupportedRegexError for what the module names (both with a position), and
    BudgetExceededError.
    """
    if len(pattern) > budget.max_instructions:
        raise out_of_instructions(budget)
    try:
        with spending(budget):
            ways = _Ways(_Translation(pattern, budget, agreed), budget)
            return ways.strings(ways.all)
    except RecursionError:
        advice = "groups of the pattern are nested too deeply"
        raise BudgetExceededError("stack frames", sys.getrecursionlimit(), advice) from None
