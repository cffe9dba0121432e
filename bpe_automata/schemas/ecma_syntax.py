"""ECMA-262 patterns -> the syntax of `re`, with assertions as marker characters.

The grammar is that of the standard's `Pattern`, with annex B. Lookaround and backreferences are
refused, with their position. `^ $ \\b \\B` become characters that no text holds (MARKERS);
`schemas.assertions` gives them their meaning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bpe_automata.budget import Budget, out_of_places
from bpe_automata.errors import RegexSyntaxError, UnsupportedRegexError
from bpe_automata.schemas.ecma_classes import (
    ANY_BUT_LINE_ENDS,
    character_class,
    escaped,
    spelled,
)

BEGIN, END, BOUNDARY, NO_BOUNDARY = MARKERS = "\ud800\ud801\ud802\ud803"
_REPEAT = re.compile(r"([*+?]|\{(?P<least>[0-9]+)(?P<comma>,(?P<most>[0-9]*))?\})\??")
_GROUP = re.compile(r"\((?!\?)|\(\?<(?![=!])")
_OPENED = re.compile(r"\((?:\?(?::|<(?P<name>[\w$]+)>))?(?!\?)")
_REFUSED = {
    "(?=": "lookahead",
    "(?!": "lookahead",
    "(?<=": "lookbehind",
    "(?<!": "lookbehind",
}
_NUMBER = re.compile(r"[1-9][0-9]{0,9}(?![0-9])")
_SKIPPED = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]", re.DOTALL)  # no group opens in these


@dataclass(frozen=True)
class Translated:
    """alternatives: the terms of each, in the syntax of `re`, with MARKERS for assertions."""

    alternatives: tuple[tuple[str, ...], ...]

    @property
    def text(self) -> str:
        """The whole, as one group."""
        return _grouped(self.alternatives)


def _grouped(alternatives: tuple[tuple[str, ...], ...]) -> str:
    return f"(?:{'|'.join(''.join(terms) for terms in alternatives)})"


def translate(pattern: str, budget: Budget) -> Translated:
    """Raises RegexSyntaxError, UnsupportedRegexError, and BudgetExceededError for a count that is
    larger than any automaton of the budget."""
    if len(pattern) > budget.max_places:
        raise out_of_places(budget)
    reader = _Reader(pattern, budget)
    alternatives = reader.alternatives()
    if reader.at < len(pattern):
        raise RegexSyntaxError(pattern, reader.at, "a closing bracket that was not opened")
    return Translated(alternatives)


class _Reader:
    """Recursive descent; `at` is the place that is read next."""

    def __init__(self, pattern: str, budget: Budget) -> None:
        self.pattern, self.at, self._budget = pattern, 0, budget
        bare = _SKIPPED.sub("", pattern)
        self._groups = len(_GROUP.findall(bare))
        self._named = "(?<" in re.sub(r"\(\?<[=!]", "", bare)

    def alternatives(self) -> tuple[tuple[str, ...], ...]:
        """Up to the end, or to a bracket that closes."""
        found, terms = [], list[str]()
        while self.at < len(self.pattern) and self.pattern[self.at] != ")":
            if self.pattern[self.at] == "|":
                found.append(tuple(terms))
                terms = []
                self.at += 1
            else:
                terms.append(self._term())
        return (*found, tuple(terms))

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
        limit = self._budget.max_places
        if len(digits.lstrip("0")) > len(str(limit)) or int(digits) > limit:
            raise out_of_places(self._budget)
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
        for opening, name in _REFUSED.items():
            if self.pattern.startswith(opening, start):
                raise UnsupportedRegexError(self.pattern, start, f"{name} is not supported")
        opened = _OPENED.match(self.pattern, start)
        if opened is None:
            reason = f"{self.pattern[start : start + 3]!r} is no group of ECMA-262"
            raise RegexSyntaxError(self.pattern, start, reason)
        self.at = opened.end()
        inside = self.alternatives()
        if self.at >= len(self.pattern):
            raise RegexSyntaxError(self.pattern, start, "a group that is not closed")
        self.at += 1
        return _grouped(inside)

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
