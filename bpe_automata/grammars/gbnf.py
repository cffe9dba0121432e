"""Reads GBNF, the format of grammars of llama.cpp (github.com/ggml-org/llama.cpp, `grammars`).

Its symbols are literals, classes of characters and rules, so a terminal is one of the first two, or
a repeat of one. Other repeats and groups become rules of their own. Texts are read character by
character: nothing is ignored between symbols. Unlike in llama.cpp, a rule that is defined twice and
a count above 2,000 are refused.
"""

from __future__ import annotations

import re

from bpe_automata._budget import Budget, check
from bpe_automata.automata.compile import compile_regex
from bpe_automata.errors import BudgetExceededError, GrammarError, UnsupportedGrammarError
from bpe_automata.grammars.reading import ROOT, Texts
from bpe_automata.grammars.rules import Rules

_SPACE = re.compile(r"(?:[ \t]|#[^\r\n]*)*")
_LINES = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*")
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_CHARACTER = re.compile(
    r"\\x([0-9A-Fa-f]{2})|\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})|\\([nrt\\\"\[\]])|([^\\])"
)
_COUNTS = re.compile(r"([*+?])|\{\s*([0-9]{1,9})\s*(,?)\s*([0-9]{0,9})\s*\}")
_MARKED = {"n": "\n", "r": "\r", "t": "\t"}
_MOST_CHARACTERS, _DEEPEST, _MOST_COUNT, _MOST_SYMBOLS = 200_000, 100, 2_000, 20_000
_Sequence = tuple[str, ...]


def read_gbnf(text: str, start: str, budget: Budget) -> tuple[Rules, dict[str, Texts]]:
    """(the alternatives of each rule, where ROOT stands for whole texts; the texts of each
    terminal, none of which is empty). Raises GrammarError, UnsupportedGrammarError,
    BudgetExceededError."""
    if len(text) > _MOST_CHARACTERS:
        raise BudgetExceededError("characters", _MOST_CHARACTERS, "the grammar is longer")
    reader = _Reader(text)
    reader.read()
    if start not in reader.rules:
        raise GrammarError(f"the grammar has no rule {start!r}: give another `start`")
    for name, at in reader.named.items():
        if name not in reader.rules:
            raise reader.wrong(f"there is no rule {name!r}", at)
    terminals: dict[str, Texts] = {
        name: bytes_of if bytes_of is not None else compile_regex(pattern, budget)
        for name, (pattern, bytes_of) in reader.terminals.items()
    }
    return {ROOT: [(start,)], **reader.rules}, terminals


class _Reader:
    """terminals: (regex, its bytes if it is one text) of each, by a name that no rule has; named:
    where each rule is first named."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._depth = text, 0, 0
        self.rules: Rules = {}
        self.terminals: dict[str, tuple[str, bytes | None]] = {}
        self.named: dict[str, int] = {}

    def wrong(self, why: str, at: int) -> GrammarError:
        line = self._text.count("\n", 0, at) + 1
        column = at - self._text.rfind("\n", 0, at)
        return GrammarError(f"GBNF, line {line}, column {column}: {why}")

    def read(self) -> None:
        """Read all rules."""
        self._skip(_LINES)
        while self._at < len(self._text):
            begin = self._at
            name = self._match(_NAME)
            self._skip(_SPACE)
            if not name or not self._take("::="):
                raise self.wrong("a rule is `name ::= ...`, on a line of its own", begin)
            if name[0] in self.rules:
                raise self.wrong(f"the rule {name[0]!r} comes twice", begin)
            self._skip(_LINES)
            self.rules[name[0]] = []  # before the rules that are made for it
            self.rules[name[0]] = self._alternatives(_SPACE)
            if self._at < len(self._text) and self._text[self._at] not in "\r\n":
                raise self.wrong(f"{self._text[self._at]!r} is no symbol", self._at)
            self._skip(_LINES)

    def _alternatives(self, space: re.Pattern[str]) -> list[_Sequence]:
        """space: what may come between symbols; a line break ends a rule, but not in a group."""
        found = [self._sequence(space)]
        while self._take("|"):
            self._skip(_LINES)
            found.append(self._sequence(space))
        return found

    def _sequence(self, space: re.Pattern[str]) -> _Sequence:
        found: _Sequence = ()
        while True:
            check()
            self._skip(space)
            one = self._symbol()
            if one is None:
                return found
            self._skip(space)
            while counts := self._match(_COUNTS):
                one = self._repeated(one, counts)
                self._skip(space)
            found += one
            if len(found) > _MOST_SYMBOLS:
                raise BudgetExceededError("symbols of a rule", _MOST_SYMBOLS, "use smaller counts")

    def _symbol(self) -> _Sequence | None:
        """A literal, a class, a rule or a group; None where there is none."""
        at, letter = self._at, self._text[self._at : self._at + 1]
        if letter == '"':
            text = self._literal()
            return (self._terminal(re.escape(text), text),) if text else ()
        if letter == "[":
            return (self._terminal(self._class()),)
        if letter == ".":
            self._at += 1
            return (self._terminal("(?s:.)"),)
        if letter in ("<", "!") and letter:
            raise UnsupportedGrammarError(f"the token at character {at}", "grammars are of texts")
        if letter == "(":
            return self._group(at)
        name = self._match(_NAME)
        if name is None:
            return None
        self.named.setdefault(name[0], at)
        return (name[0],)

    def _group(self, at: int) -> _Sequence:
        if self._depth == _DEEPEST:
            raise BudgetExceededError("groups in one another", _DEEPEST, "nest fewer of them")
        self._at, self._depth = self._at + 1, self._depth + 1
        self._skip(_LINES)
        inside = self._alternatives(_LINES)
        if not self._take(")"):
            raise self.wrong("this bracket has no end", at)
        self._depth -= 1
        return inside[0] if len(inside) == 1 else (self._rule(inside),)

    def _repeated(self, one: _Sequence, counts: re.Match[str]) -> _Sequence:
        sign, least, comma, most = counts.groups()
        if sign:
            low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
        else:
            low = int(least)
            high = int(most) if most else None if comma else low
        if max(low, high or 0) > _MOST_COUNT:
            raise BudgetExceededError("repeats", _MOST_COUNT, "use smaller counts")
        if high is not None and high < low:
            raise self.wrong(f"from {low} to {high} times", counts.start())
        if high == 0 or not one:
            return ()
        if len(one) == 1 and one[0] in self.terminals:
            pattern = f"(?:{self.terminals[one[0]][0]}){{{max(1, low)},{high or ''}}}"
            some = (self._terminal(pattern),)
            return some if low else (self._rule([(), some]),)
        if len(one) * max(low, high or 0) > _MOST_SYMBOLS:
            raise BudgetExceededError("symbols of a rule", _MOST_SYMBOLS, "use smaller counts")
        if high is None:
            again = self._rule([()])
            self.rules[again].append((again, *one))
            return (*one * low, again)
        rest: _Sequence = ()
        for _ in range(high - low):
            rest = (self._rule([(), (*one, *rest)]),)
        return (*one * low, *rest)

    def _literal(self) -> str:
        begin, found = self._at, list[str]()
        self._at += 1
        while not self._take('"'):
            found.append(self._character(begin))
        return "".join(found)

    def _class(self) -> str:
        """The regex of a class of characters."""
        begin, found = self._at, list[str]()
        self._at += 1
        sign = "^" if self._take("^") else ""
        while not self._take("]"):
            low = high = self._character(begin)
            if self._text[self._at : self._at + 1] == "-" and self._text[self._at + 1 :][:1] != "]":
                self._at += 1
                high = self._character(begin)
                if high < low:
                    raise self.wrong(f"the range from {low!r} to {high!r} is empty", begin)
            found.append(f"{re.escape(low)}-{re.escape(high)}")
        if not found:
            if sign:
                return "(?s:.)"
            raise self.wrong("this class has no characters", begin)
        return f"[{sign}{''.join(found)}]"

    def _character(self, begin: int) -> str:
        at, found = self._at, self._match(_CHARACTER)
        if found is None:
            if at >= len(self._text) or self._text[at] != "\\":
                raise self.wrong("this has no end", begin)
            raise self.wrong(f"{self._text[at : at + 2]!r} is no escape", at)
        *numbers, marked, plain = found.groups()
        number = next((int(one, 16) for one in numbers if one), None)
        if number is None:
            number = ord(plain or _MARKED.get(marked, marked))
        if number > 0x10FFFF or 0xD800 <= number < 0xE000:
            raise UnsupportedGrammarError(found[0], "it is no character")
        return chr(number)

    def _terminal(self, pattern: str, text: str | None = None) -> str:
        name = f"/{pattern}/"
        self.terminals[name] = pattern, None if text is None else text.encode()
        return name

    def _rule(self, alternatives: list[_Sequence]) -> str:
        """A rule that is made for a group or a repeat."""
        name = f"<{len(self.rules)}>"
        self.rules[name] = alternatives
        return name

    def _take(self, text: str) -> bool:
        found = self._text.startswith(text, self._at)
        self._at += len(text) if found else 0
        return found

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return found

    def _skip(self, pattern: re.Pattern[str]) -> None:
        self._match(pattern)
