"""Translates ECMA-262 patterns into the syntax of Python's `re`, with assertions as markers.

The grammar is that of `Pattern` in ECMA-262. Of annex B it has what other dialects read alike:
brackets and braces as literals, escaped punctuation, hyphens next to `\\w`. What they read
otherwise (`\\A`, `\\a`, `{,3}`, `[[:alpha:]]`, `[a&&b]`) is refused, as are lookaround and
backreferences, word boundaries, and a `^` or `$` that is neither first nor last, with the position.
Those that are become surrogates, which are in no string (MARKERS).
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
    runs,
    union,
)
from bpe_automata._budget import Budget, out_of_instructions
from bpe_automata._sharing import cached
from bpe_automata.errors import RegexSyntaxError, UnsupportedRegexError

# Characters and classes of ECMA-262 patterns, as sets of code points.
#
# `\d` and `\w` are ASCII, `\s` is the WhiteSpace and LineTerminator of the standard, `.` all but
# line terminators; `\p{...}` is read as the `regex` package reads it. A string is a sequence of
# code points, as with the flag `u`.


def _ranges(*pairs: str) -> Inversion:
    return union((ord(pair[0]), ord(pair[-1]) + 1) for pair in pairs)


DIGITS = _ranges("09")
WORD = _ranges("09", "AZ", "_", "az")
SPACE = _ranges("\t\r", " ", "\xa0", "\u1680", "\u2000\u200a", "\u2028\u2029", "\u202f", "\u205f")
SPACE = union((SPACE, _ranges("\u3000", "\ufeff")))
ANY_BUT_LINE_ENDS = complement(_ranges("\n", "\r", "\u2028\u2029"))
Sets = dict[str, Inversion]
"""What `\\d \\D \\w \\W \\s \\S` and `.` match."""


def _sets(digits: Inversion, word: Inversion, space: Inversion, dot: Inversion) -> Sets:
    found = {"d": digits, "w": word, "s": space}
    return found | {name.upper(): complement(found[name]) for name in found} | {".": dot}


ECMA = (_sets(DIGITS, WORD, SPACE, ANY_BUT_LINE_ENDS),)


@lru_cache(maxsize=1)
def all_dialects() -> tuple[Sets, ...]:
    """Those of ECMA-262, of Python's `re`, of Rust's `regex`, and of the last as it would be if all
    characters were digits that its Unicode does not know yet."""
    word = ("Alphabetic", "M", "Nd", "Pc", "Join_Control")
    names = (("Nd",), word, ("White_Space",))
    digits, letters, space = (union(_members(name) for name in each) for each in names)
    of_re = [runs(re.compile(rf"\{name}+")) for name in "dws"]
    later, dot = _members("Cn"), complement(_ranges("\n"))
    return (
        *ECMA,
        _sets(of_re[0], of_re[1], of_re[2], dot),
        _sets(digits, letters, space, dot),
        _sets(union((digits, later)), union((letters, later)), space, dot),
    )


def _members(name: str) -> Inversion:
    return property_members(rf"\p{{{name}}}", False)


_CONTROLS = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_HEX = re.compile(
    r"u\{(?P<long>[0-9A-Fa-f]+)\}"
    r"|u(?P<high>[Dd][89ABab][0-9A-Fa-f]{2})\\u(?P<low>[Dd][C-Fc-f][0-9A-Fa-f]{2})"
    r"|u(?P<short>[0-9A-Fa-f]{4})|x(?P<byte>[0-9A-Fa-f]{2})"
)
_PROPERTY = re.compile(r"[pP]\{[^{}^]*\}")
_KNOWN = re.compile(r"c[A-Za-z]|0(?![0-9])|[^A-Za-z0-9]", re.DOTALL)


def escaped(pattern: str, at: int, in_class: bool, sets: Sets) -> tuple[Inversion, int]:
    """(the characters that the escape at index `at` matches, the index after it).

    Raises RegexSyntaxError. Word boundaries and backreferences must have been handled before.
    """
    if at + 1 >= len(pattern):
        raise RegexSyntaxError(pattern, at, "a backslash at the end")
    letter = pattern[at + 1]
    if letter in sets and letter != ".":
        return sets[letter], at + 2
    if letter in _CONTROLS:
        return _one(_CONTROLS[letter]), at + 2
    if in_class and letter == "b":
        return _one(8), at + 2
    if found := _PROPERTY.match(pattern, at + 1):
        return _property(pattern, at, found.group()), found.end()
    if found := _HEX.match(pattern, at + 1):
        return _one(_hexadecimal(pattern, at, found)), found.end()
    found = _KNOWN.match(pattern, at + 1)
    if found is None or (letter in "<>" and not in_class):
        write = {"A": "^", "Z": "$", "z": "$"}.get(letter, "the characters that are meant")
        raise _differs(pattern, at, f"\\{letter}", write)
    code_point = {"c": ord(found.group()[-1]) % 32, "0": 0}.get(letter, ord(letter))
    return _one(code_point), found.end()


def _differs(pattern: str, at: int, what: str, write: str) -> RegexSyntaxError:
    return RegexSyntaxError(pattern, at, f"dialects of regexes differ about {what}: write {write}")


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


_OPERATOR = re.compile("&&|--|~~")  # of sets, in Rust


def character_class(pattern: str, at: int, sets: Sets) -> tuple[Inversion, int]:
    """(the characters of the class that opens at index `at`, the index after it). Raises
    RegexSyntaxError."""
    opened, at = at, at + 1
    negated = pattern[at : at + 1] == "^"
    at += negated
    parts: list[Inversion] = []
    if pattern[at : at + 1] == "]" and "]" in _ESCAPED.sub("", pattern[at + 1 :]):
        raise _differs(pattern, at, "a ] that comes first in a class", "\\]")
    while pattern[at : at + 1] != "]":
        if at >= len(pattern):
            raise RegexSyntaxError(pattern, opened, "a class that is not closed")
        first, after = _member(pattern, at, sets)
        if found := _OPERATOR.match(pattern, at) or _OPERATOR.match(pattern, after):
            raise _differs(pattern, found.start(), found[0], f"\\{found[0][0]}")
        if pattern[after : after + 1] == "-" and pattern[after + 1 : after + 2] not in ("]", ""):
            last, end = _member(pattern, after + 1, sets)
            parts.append(_range(pattern, at, first, last))
            at = end
        else:
            parts.append(first)
            at = after
    members = union(parts)
    return (complement(members) if negated else members), at + 1


def _member(pattern: str, at: int, sets: Sets) -> tuple[Inversion, int]:
    if pattern[at] == "\\":
        return escaped(pattern, at, True, sets)
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


BEGIN, END = MARKERS = "\ud800\ud801"
_MOST_WAYS = 256
_COUNT = re.compile(r"\{ *([0-9]+ *,?|,) *[0-9]* *\}")  # of any dialect
_REPEAT = re.compile(r"([*+?]|\{(?P<least>[0-9]+)(?P<comma>,(?P<most>[0-9]*))?\})\??")
_GROUP = re.compile(r"\((?!\?)|\(\?<(?![=!])")
_OPENED = re.compile(r"\((?:\?(?::|<(?P<name>[\w$]+)>))?(?!\?)")
_BEGIN = re.compile(r"\^|\\A")
_AHEAD = re.compile(r"\(\?([=!])")
_LOOKAROUND = re.compile(r"\(\?(<?)[=!]")
_NUMBER = re.compile(r"[1-9][0-9]{0,9}(?![0-9])")
_SKIPPED = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]", re.DOTALL)  # where no group can open


Alternatives = tuple[tuple[str, ...], ...]
"""The terms of each alternative, in the syntax of `re`; with BEGIN where it must begin the string,
with END where it must end it. Groups with these in them are written out."""
Condition = tuple[bool, Alternatives]
"""Whether the string must begin with any of some alternatives, or must not."""
Conditional = tuple[tuple[str, ...], list[Condition]]
"""The terms of an alternative, and what they are subject to."""


def grouped(alternatives: Alternatives) -> str:
    """All of them as one group."""
    return f"(?:{'|'.join(''.join(terms) for terms in alternatives)})"


def translate(pattern: str, budget: Budget, agreed: bool = False) -> list[Conditional]:
    """The alternatives of a pattern, each with its conditions. agreed: classes are those of all
    dialects, so that each of them finds a match where one is found; `\\A \\Z \\z` are known.

    Raises RegexSyntaxError, UnsupportedRegexError, and BudgetExceededError for a repetition that no
    automaton within the budget can count.
    """
    if len(pattern) > budget.max_instructions:
        raise out_of_instructions(budget)
    reader, found = _Reader(pattern, budget, agreed), list[Conditional]()
    while not found or pattern[reader.at : reader.at + 1] == "|":
        reader.at += bool(found)
        conditions = reader.conditions()
        begin = (BEGIN,) if conditions else ()
        found += [((*begin, *terms), conditions) for terms in reader.terms()]
    if reader.at < len(pattern):
        raise RegexSyntaxError(pattern, reader.at, "a closing bracket that was not opened")
    for terms, conditions in found:
        for one in (terms, *(inside for _, every in conditions for inside in every)):
            body = "".join(one).lstrip(BEGIN).rstrip(END)
            if BEGIN in body or END in body:
                why = "an anchor that is neither first nor last is not supported"
                raise UnsupportedRegexError(pattern, reader.anchor, why)
    return found


class _Reader:
    """A parser by recursive descent; `at` is the index of the next character."""

    def __init__(self, pattern: str, budget: Budget, agreed: bool) -> None:
        self.pattern, self.at, self._budget = pattern, 0, budget
        self._dialects = all_dialects() if agreed else ECMA
        self._anchors = {"A": BEGIN, "Z": END, "z": END} if agreed else {}
        self.anchor = 0  # where the last one is
        self._denied = False  # what is read now must not match
        self._open = 0  # brackets in classes: that many more ] would close classes in a class

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
        found = [*self.terms()]
        while self.pattern[self.at : self.at + 1] == "|":
            self.at += 1
            found += self.terms()
        return tuple(found)

    def terms(self) -> Alternatives:
        """Those of one alternative, of which groups with anchors make several."""
        found = [list[str]()]
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            ways = self._term()
            if len(ways) * len(found) > _MOST_WAYS:
                raise out_of_instructions(self._budget)
            if len(ways) > 1:
                found = [[*terms, *way] for terms in found for way in ways]
            else:
                for terms in found:
                    terms += ways[0]
        return tuple(map(tuple, found))

    def conditions(self) -> list[Condition]:
        """Those behind a `^` that comes next, if there are any."""
        found, begin = list[Condition](), _BEGIN.match(self.pattern, self.at)
        if begin and (begin[0] == "^" or self._anchors):
            at = begin.end()
            while ahead := _AHEAD.match(self.pattern, at):
                self._denied = ahead[1] == "!"
                found.append((not self._denied, self._inside(at, ahead.end())))
                at, self._denied = self.at, False
        return found

    def _term(self) -> Alternatives:
        start = self.at
        is_group = self.pattern[start] == "("
        ways = self._group() if is_group else ((self._atom(),),)
        anchored = any(one in MARKERS for way in ways for one in way)
        repeat = _REPEAT.match(self.pattern, self.at)
        if repeat is None:
            return ways if anchored or not is_group else ((grouped(ways),),)
        if anchored and not is_group:
            raise RegexSyntaxError(self.pattern, start, "an assertion cannot be repeated")
        if anchored:
            why = "a repeated group with an anchor in it is not supported"
            raise UnsupportedRegexError(self.pattern, start, why)
        self.at = repeat.end()
        body = grouped(ways) if is_group else ways[0][0]
        return ((body + self._bounds(repeat),),)

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
        if character == "[":
            return self._class()
        if character == "\\":
            return self._escape()
        if character in "*+?" or _REPEAT.match(self.pattern, self.at):
            raise RegexSyntaxError(self.pattern, self.at, "nothing to repeat")
        if found := _COUNT.match(self.pattern, self.at):
            raise _differs(self.pattern, self.at, found[0], "the least count, or \\{")
        if character == "]" and self._open:
            self._open -= 1
            if not self._open:
                raise _differs(self.pattern, self.at, "a class in a class", "\\[ or \\]")
        self.at += 1
        if character in "^$":
            self.anchor = self.at - 1
            return BEGIN if character == "^" else END
        if character == ".":
            return self._characters([sets["."] for sets in self._dialects])
        return spelled((ord(character), ord(character) + 1))

    def _class(self) -> str:
        start = self.at
        found = [character_class(self.pattern, start, sets) for sets in self._dialects]
        self.at = found[0][1]
        inside = _ESCAPED.sub("x", self.pattern[start + 1 : self.at])
        self._open += inside.count("[") + inside.endswith(("[]", "[^]"))  # there, ] is a member
        return self._characters([members for members, _ in found])

    def _characters(self, found: list[Inversion]) -> str:
        """Those that are in the sets of all dialects, or of any where a match is denied."""
        if self._denied or len(found) == 1:
            return spelled(union(found))
        return spelled(complement(union(map(complement, found))))

    def _group(self) -> Alternatives:
        start = self.at
        if refused := _LOOKAROUND.match(self.pattern, start):
            name = "lookbehind" if refused[1] else "lookahead"
            raise UnsupportedRegexError(self.pattern, start, f"{name} is not supported")
        opened = _OPENED.match(self.pattern, start)
        if opened is None:
            reason = f"{self.pattern[start : start + 3]!r} is no group of ECMA-262"
            raise RegexSyntaxError(self.pattern, start, reason)
        return self._inside(start, opened.end())

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
            raise UnsupportedRegexError(self.pattern, self.at, "a word boundary is not supported")
        if letter in self._anchors:
            self.anchor, self.at = self.at, self.at + 2
            return self._anchors[letter]
        number = _NUMBER.match(self.pattern, self.at + 1)
        within = number is not None and int(number.group()) <= self._groups
        if within or (letter == "k" and self._named):
            raise UnsupportedRegexError(self.pattern, self.at, "a backreference is not regular")
        found = [escaped(self.pattern, self.at, False, sets) for sets in self._dialects]
        self.at = found[0][1]
        return self._characters([members for members, _ in found])
