"""The parser of split patterns: the regular part of two regex dialects, parsed to `pattern_tree`.

The dialects are "oniguruma" (of `tokenizers`, Ruby's syntax) and "fancy-regex" (of `tiktoken`).
Only the structure is parsed. A part that matches one character, such as `[^\\s\\p{L}]`, is not
interpreted: its source goes to the tokenizer's own engine (`alphabet.engine_class`). The parser
models alternation, concatenation, greedy and lazy repetition, possessive repetition of one
character, lookahead for one character (at the end of the pattern also for more), flags for case and
for the dot, and the anchors of the text. It refuses all else.

Zero-width constructs are rewritten as lookahead for one character X:

    X*+  =  X*(?!X)        X{n,m}+  =  X{m}|X{n,m-1}(?!X)        end of text  =  (?!any)
"""

from __future__ import annotations

import re
from typing import NoReturn

from bpe_automata._budget import check
from bpe_automata.errors import UnsupportedTokenizerError
from bpe_automata.tokenizer.alphabet import multi_character_folding
from bpe_automata.tokenizer.description import SplitRule
from bpe_automata.tokenizer.pattern_tree import (
    Ahead,
    Alt,
    Char,
    Look,
    Node,
    Repeat,
    Seq,
    Start,
    folded_letters,
    may_be_empty,
    sources_of,
)

DIALECTS = ("oniguruma", "fancy-regex")

_ONE_CHARACTER_ESCAPES = frozenset("sSdDwWhHntrfvae")
_WORD_EDGES = frozenset("<>")  # \< and \> are zero-width in fancy-regex
_WORD_CLASSES = {r"\d", r"\w"}
_LARGEST_REPEAT = 1000
_MOST_GROUPS = 50  # nested: each takes some 9 calls on the stack, see `with_room`
_HEX = "[0-9a-fA-F]"
_CODE_POINT = {
    "oniguruma": re.compile(rf"\\(?:x\{{({_HEX}+)\}}|x({_HEX}{{1,2}})|u({_HEX}{{4}}))"),
    "fancy-regex": re.compile(
        rf"\\(?:[xu]\{{({_HEX}+)\}}|x({_HEX}{{2}})|u({_HEX}{{4}})|U({_HEX}{{8}}))"
    ),
}
_BRACES = re.compile(r"\{(?=,?[0-9])([0-9]*)(,?)([0-9]*)\}")
_FLAGS = re.compile(r"\(\?([A-Za-z]*)(?:-([A-Za-z]+))?([:)])")
_DOT_FLAG = {"oniguruma": "m", "fancy-regex": "s"}  # the dot also matches a line feed


def tree_of(rule: SplitRule, dialect: str) -> Node:
    """The tree of the rule's matches. Raises UnsupportedTokenizerError for what is not modelled."""
    if rule.kind == "regex":
        return parse(rule.pattern, dialect)
    return literal(rule.pattern) if rule.kind == "literal" else Char(rule.pattern, rule.kind)


def literal(text: str) -> Node:
    """The tree that matches `text` itself."""
    return Seq(tuple(Char(_escaped(c)) for c in text))


def parse(pattern: str, dialect: str) -> Node:
    """The tree of `pattern`. Raises UnsupportedTokenizerError for what is not modelled."""
    if dialect not in DIALECTS:
        raise UnsupportedTokenizerError("regex dialect", dialect, f"known are {DIALECTS}")
    parser = _Parser(pattern, dialect)
    tree = parser.alternation(parser.leading_flags())
    if parser.position < len(pattern):
        parser.refuse("unbalanced ')'")
    if parser.word_edges and not set(sources_of(tree)) <= _WORD_CLASSES:
        parser.refuse(r"\b after anything but \d and \w is not modelled")
    if dialect == "oniguruma" and (run := multi_character_folding(folded_letters(tree))):
        parser.refuse(f"case folding of {run!r} joins or splits characters, which is not modelled")
    return tree


def _escaped(character: str) -> str:
    return f"\\x{{{ord(character):X}}}"


class _Parser:
    def __init__(self, pattern: str, dialect: str) -> None:
        self.pattern, self.dialect, self.position = pattern, dialect, 0
        self.looking = False  # inside a lookahead
        self.word_edges = False  # a \b was read
        self.groups = 0  # open ones
        self.any = f"(?{_DOT_FLAG[dialect]}:.)"

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

    # ------------------------------------------------------------ groups

    def alternation(self, flags: frozenset[str]) -> Node:
        options = [self.sequence(flags)]
        while self.take("|"):
            options.append(self.sequence(flags))
        return options[0] if len(options) == 1 else Alt(tuple(options))

    def sequence(self, flags: frozenset[str]) -> Node:
        items: list[Node] = []
        while self.position < len(self.pattern) and self.pattern[self.position] not in "|)":
            check()
            items.append(self.quantified(self.atom(flags)))
        return items[0] if len(items) == 1 else Seq(tuple(items))

    def atom(self, flags: frozenset[str]) -> Node:
        if self.peek("(?=") or self.peek("(?!"):
            return self.lookahead(flags)
        if self.peek("(?"):
            inner, end = self.flag_group(flags)
            if end != ":":
                self.refuse("flags are modelled at the beginning, or as a group")
            return self.group(inner)
        if self.take("("):
            return self.group(flags)
        return self.anchor() or Char(self.character(flags))

    def leading_flags(self) -> frozenset[str]:
        flags: frozenset[str] = frozenset()
        while (found := _FLAGS.match(self.pattern, self.position)) and found[3] == ")":
            flags, _ = self.flag_group(flags)
        return flags

    def flag_group(self, flags: frozenset[str]) -> tuple[frozenset[str], str]:
        """The flags after `(?i:` or `(?i)`, and the character that ends it."""
        found = _FLAGS.match(self.pattern, self.position)
        if not found:
            self.refuse("this kind of group is not modelled")
        added, dropped = frozenset(found[1]), frozenset(found[2] or "")
        if unknown := (added | dropped) - {"i", _DOT_FLAG[self.dialect]}:
            self.refuse(f"the flag {min(unknown)!r} is not modelled")
        self.position = found.end()
        return (flags | added) - dropped, found[3]

    def group(self, flags: frozenset[str]) -> Node:
        """The rest of a group whose beginning was read."""
        if self.groups == _MOST_GROUPS:
            self.refuse(f"over {_MOST_GROUPS} groups inside one another: write it with fewer")
        self.groups += 1
        inside = self.alternation(flags)
        self.groups -= 1
        if not self.take(")"):
            self.refuse("missing ')'")
        return inside

    # ------------------------------------------------------------ zero width

    def lookahead(self, flags: frozenset[str]) -> Node:
        negative = self.pattern[self.position + 2] == "!"
        self.position += 3
        outside, self.looking = self.looking, True
        inside = self.group(flags)
        self.looking = outside
        if isinstance(inside, Char):
            return Look(inside.source, negative)
        if negative or outside or self.position < len(self.pattern):
            self.refuse(
                "lookahead of anything but one character is modelled at the end of the pattern, "
                "where it is positive"
            )
        return Ahead(inside)

    def anchor(self) -> Node | None:
        """An anchor: the beginning of the text, or its end (`$` in Oniguruma: or before a line
        feed); None for anything else."""
        ruby = self.dialect == "oniguruma"
        if self.take(r"\z"):
            return Look(self.any, negative=True)
        if self.take("$"):
            return Look(r"[^\x{A}]" if ruby else self.any, negative=True)
        if self.take(r"\A"):
            return Start()
        if self.looking and self.take(r"\b"):  # after a word character, see `parse`
            self.word_edges = True
            return Look(r"\w", negative=True)
        if self.peek("^"):
            if ruby:
                self.refuse("'^', which looks back for a line feed, is not modelled")
            self.position += 1
            return Start()
        return None

    # ------------------------------------------------------------ one character

    def character(self, flags: frozenset[str]) -> str:
        """The source of a pattern that matches exactly one character."""
        start = self.position
        first = self.pattern[start]
        if first == "[":
            self.bracket()
        elif first == "\\":
            self.escape()
        elif first in "*+?{":
            self.refuse("a quantifier without anything to repeat")
        else:
            self.position += 1
        source = self.literal_source(self.pattern[start : self.position])
        if source == "." and _DOT_FLAG[self.dialect] in flags:
            return self.any
        return f"(?i:{source})" if "i" in flags and source != "." else source

    def literal_source(self, source: str) -> str:
        """The same source for every way to write one code point."""
        if len(source) == 1 and source != ".":
            return _escaped(source)
        written = _CODE_POINT[self.dialect].fullmatch(source)
        if not written:
            return source
        code_point = int(next(filter(None, written.groups())), 16)
        if self.dialect == "oniguruma" and written[2] and code_point > 0x7F:
            self.refuse(f"{source} is a byte, not a character")
        if code_point > 0x10FFFF:
            self.refuse(f"{source} is no character")
        return _escaped(chr(code_point))

    def bracket(self) -> None:
        depth = 0
        while self.position < len(self.pattern):
            character = self.pattern[self.position]
            self.position += 2 if character == "\\" else 1
            depth += (character == "[") - (character == "]")
            if character == "[" and (self.peek("]") or self.peek("^]")):
                self.refuse("a ']' at the beginning of a class is not modelled; write '\\]'")
            if depth == 0:
                return
        self.refuse("missing ']'")

    def escape(self) -> None:
        if written := _CODE_POINT[self.dialect].match(self.pattern, self.position):
            self.position = written.end()
            return
        following = self.pattern[self.position + 1 : self.position + 2]
        if following in ("p", "P"):
            self.property()
        elif following in _ONE_CHARACTER_ESCAPES or self.is_punctuation(following):
            self.position += 2
        else:
            self.refuse(f"escape \\{following} is not modelled")

    def is_punctuation(self, character: str) -> bool:
        """Does a backslash before it only say that the character stands for itself?"""
        if self.dialect == "fancy-regex" and character in _WORD_EDGES:
            return False
        return character != "" and character.isascii() and not character.isalnum()

    def property(self) -> None:
        r"""`\p{...}`, and in fancy-regex also `\pL`."""
        braced = self.pattern.startswith("{", self.position + 2)
        if not braced and self.dialect == "oniguruma":
            self.refuse(r"\p without braces is not modelled")
        end = self.pattern.find("}", self.position) if braced else self.position + 2
        if not 0 <= end < len(self.pattern):
            self.refuse("missing '}'")
        self.position = end + 1

    # ------------------------------------------------------------ repetition

    def quantified(self, item: Node) -> Node:
        start, bounds = self.position, self.bounds()
        if bounds is None:
            return item
        if isinstance(item, Look | Ahead | Start):
            self.refuse("a repeated lookahead or anchor is not modelled")
        if bounds[1] is None and may_be_empty(item):
            self.refuse("endless repetition of what may be empty is not modelled")
        written = self.pattern[start : self.position]
        mode = next((sign for sign in "?+" if self.take(sign)), "")
        if self.position < len(self.pattern) and self.pattern[self.position] in "*+?{":
            self.refuse("stacked quantifiers are not modelled")
        least, most = bounds
        if mode and written[0] == "{" and self.dialect == "oniguruma":
            return self.ruby_braces(item, least, most, written + mode)
        if mode == "+":
            return self.possessive(item, least, most)
        return Repeat(item, least, most, greedy=mode == "")

    def ruby_braces(self, item: Node, least: int, most: int | None, written: str) -> Node:
        """In Ruby's syntax `X{2,3}+` is `(?:X{2,3})+`, and `X{2}?` is `(?:X{2})?`."""
        if written.endswith("?") and "," in written:
            return Repeat(item, least, most, greedy=False)
        once = Repeat(item, least, most, greedy=True)
        if written.endswith("?"):
            return Repeat(once, 0, 1, greedy=True)
        if may_be_empty(once):
            self.refuse("endless repetition of what may be empty is not modelled")
        return Repeat(once, 1, None, greedy=True)

    def possessive(self, item: Node, least: int, most: int | None) -> Node:
        """As many as possible, without backtracking: the next character must not be one more."""
        if not isinstance(item, Char) or item.kind != "regex":
            self.refuse("possessive repetition of anything but one character is not modelled")
        no_more = Look(item.source, negative=True)
        if most is None:
            return Seq((Repeat(item, least, None, greedy=True), no_more))
        all_of_them = Repeat(item, most, most, greedy=True)
        if most == least:
            return all_of_them
        return Alt((all_of_them, Seq((Repeat(item, least, most - 1, greedy=True), no_more))))

    def bounds(self) -> tuple[int, int | None] | None:
        for sign, fewest, largest in (("*", 0, None), ("+", 1, None), ("?", 0, 1)):
            if self.take(sign):
                return fewest, largest
        if not self.peek("{"):
            return None
        found = _BRACES.match(self.pattern, self.position)
        if not found:
            self.refuse("malformed repetition")
        least = int(found[1] or 0)
        most = (int(found[3]) if found[3] else None) if found[2] else least
        if max(least, most or 0) > _LARGEST_REPEAT or (most is not None and most < least):
            self.refuse(f"repetition over {_LARGEST_REPEAT}, or from more to fewer")
        self.position = found.end()
        return least, most
