"""The syntax of split patterns (the regular part of Oniguruma's), as a small tree.

Only the structure is parsed here. What a one-character piece such as `[^\\s\\p{L}]` matches is
never interpreted: its source goes to the tokenizer's own engine (`charclass`). Constructs outside
alternation, concatenation, greedy and lazy repetition and one-character lookahead are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from bpe_automata.errors import UnsupportedTokenizerError
from bpe_automata.tokenizer.folding import joined_foldings

_ONE_CHARACTER_ESCAPES = set("sSdDwWhHrntfvae")
_ANCHORS = set("bBAzZGKXRyY")
_LARGEST_REPEAT = 1000
_CODE_POINT = re.compile(r"\\(?:x\{([0-9a-fA-F]+)\}|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4}))")


@dataclass(frozen=True)
class Char:
    """One character matched by `source`, a pattern of the engine."""

    source: str


@dataclass(frozen=True)
class Look:
    """Zero-width: the next character is (or, if `negative`, is not) matched by `source`."""

    source: str
    negative: bool


@dataclass(frozen=True)
class Seq:
    items: tuple[Node, ...]


@dataclass(frozen=True)
class Alt:
    """Alternatives, the first preferred."""

    options: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    item: Node
    least: int
    most: int | None
    greedy: bool


Node = Char | Look | Seq | Alt | Repeat


def parse(pattern: str) -> Node:
    """The tree of `pattern`. Raises UnsupportedTokenizerError for anything not modelled."""
    parser = _Parser(pattern)
    tree = parser.alternation(ignore_case=False)
    if parser.position < len(pattern):
        parser.refuse("unbalanced ')'")
    return tree


def literal(text: str) -> Node:
    """The tree that matches `text` itself."""
    return Seq(tuple(Char(_escaped(c)) for c in text))


def _escaped(character: str) -> str:
    return f"\\x{{{ord(character):X}}}"


class _Parser:
    def __init__(self, pattern: str) -> None:
        self.pattern, self.position = pattern, 0

    def refuse(self, why: str) -> NoReturn:
        raise UnsupportedTokenizerError(
            "split pattern", self.pattern, f"{why} (at position {self.position})"
        )

    def peek(self, text: str) -> bool:
        return self.pattern.startswith(text, self.position)

    def take(self, text: str) -> bool:
        if not self.peek(text):
            return False
        self.position += len(text)
        return True

    def alternation(self, ignore_case: bool) -> Node:
        options = [self.sequence(ignore_case)]
        while self.take("|"):
            options.append(self.sequence(ignore_case))
        return options[0] if len(options) == 1 else Alt(tuple(options))

    def sequence(self, ignore_case: bool) -> Node:
        items: list[Node] = []
        while self.position < len(self.pattern) and self.pattern[self.position] not in "|)":
            items.append(self.quantified(self.atom(ignore_case)))
        if ignore_case:
            _check_folding(self, items)
        return items[0] if len(items) == 1 else Seq(tuple(items))

    def atom(self, ignore_case: bool) -> Node:
        if self.take("(?:"):
            return self.closed(self.alternation(ignore_case))
        if self.take("(?i:"):
            return self.closed(self.alternation(ignore_case=True))
        if self.peek("(?=") or self.peek("(?!"):
            return self.lookahead(ignore_case)
        if self.peek("(?"):
            self.refuse("this kind of group is not modelled")
        if self.take("("):
            return self.closed(self.alternation(ignore_case))
        return Char(self.character(ignore_case))

    def closed(self, node: Node) -> Node:
        if not self.take(")"):
            self.refuse("missing ')'")
        return node

    def lookahead(self, ignore_case: bool) -> Node:
        negative = self.pattern[self.position + 2] == "!"
        self.position += 3
        inside = self.closed(self.alternation(ignore_case))
        if not isinstance(inside, Char):
            self.refuse("lookahead of anything but one character is not modelled")
        return Look(inside.source, negative)

    def character(self, ignore_case: bool) -> str:
        """The source of a pattern that matches exactly one character."""
        start = self.position
        first = self.pattern[start]
        if first == "[":
            self.bracket()
        elif first == "\\":
            self.escape()
        elif first in "^$":
            self.refuse("anchors are not modelled")
        elif first in "*+?{":
            self.refuse("a quantifier without anything to repeat")
        else:
            self.position += 1
        source = self.literal_source(self.pattern[start : self.position])
        return f"(?i:{source})" if ignore_case else source

    def literal_source(self, source: str) -> str:
        """However a single code point is written, it gets the same source."""
        if len(source) == 1 and source != ".":
            return _escaped(source)
        written = _CODE_POINT.fullmatch(source)
        if not written:
            return source
        if written[2] and int(written[2], 16) > 0x7F:
            self.refuse(f"{source} is a byte, not a character")
        return _escaped(chr(int(next(filter(None, written.groups())), 16)))

    def bracket(self) -> None:
        depth = 0
        while self.position < len(self.pattern):
            character = self.pattern[self.position]
            self.position += 2 if character == "\\" else 1
            depth += (character == "[") - (character == "]")
            if depth == 0:
                return
        self.refuse("missing ']'")

    def escape(self) -> None:
        following = self.pattern[self.position + 1 : self.position + 2]
        self.position += 2
        if following in "pP" and self.take("{"):
            self.braced()
        elif following == "x":
            self.hexadecimal()
        elif following == "u":
            self.position += 4
        elif (
            not following
            or following in _ANCHORS
            or following.isdigit()
            or (following.isalpha() and following not in _ONE_CHARACTER_ESCAPES)
        ):
            self.refuse(f"escape \\{following} is not modelled")

    def braced(self) -> None:
        end = self.pattern.find("}", self.position)
        if end < 0:
            self.refuse("missing '}'")
        self.position = end + 1

    def hexadecimal(self) -> None:
        if self.take("{"):
            self.braced()
            return
        for _ in range(2):
            if self.pattern[self.position : self.position + 1] in "0123456789abcdefABCDEF":
                self.position += 1

    def quantified(self, item: Node) -> Node:
        bounds = self.bounds()
        if bounds is None:
            return item
        least, most, braces = bounds
        lazy = self.take("?")
        if self.peek("+") or self.peek("*") or self.peek("?") or (lazy and braces):
            self.refuse("possessive or stacked quantifiers are not modelled")
        if isinstance(item, Look):
            self.refuse("a repeated lookahead is not modelled")
        return Repeat(item, least, most, greedy=not lazy)

    def bounds(self) -> tuple[int, int | None, bool] | None:
        for sign, least, most in (("*", 0, None), ("+", 1, None), ("?", 0, 1)):
            if self.take(sign):
                return least, most, False
        if not self.peek("{"):
            return None
        end = self.pattern.find("}", self.position)
        low, comma, high = self.pattern[self.position + 1 : end].partition(",")
        if end < 0 or not (low + high).isdecimal():
            self.refuse("malformed repetition")
        self.position = end + 1
        least = int(low or 0)
        most = (int(high) if high else None) if comma else least
        if max(least, most or 0) > _LARGEST_REPEAT:
            self.refuse(f"repetition over {_LARGEST_REPEAT}")
        return least, most, True


def _check_folding(parser: _Parser, items: list[Node]) -> None:
    """Refuse case-insensitive text whose folding joins or splits characters (ß ~ ss)."""
    letters = [_folded_letter(item) for item in items]
    for index, letter in enumerate(letters):
        if letter and len(letter.casefold()) > 1:
            parser.refuse(f"case folding of {letter!r} to several characters is not modelled")
        for size in (2, 3):
            run = letters[index : index + size]
            if (
                len(run) == size
                and all(run)
                and "".join(map(str, run)).casefold() in joined_foldings()
            ):
                parser.refuse(f"case folding joins {''.join(map(str, run))!r} into one character")


def _folded_letter(item: Node) -> str | None:
    if isinstance(item, Repeat):
        item = item.item
    if isinstance(item, Char) and item.source.startswith("(?i:\\x{"):
        return chr(int(item.source[7:-2], 16))
    return None
