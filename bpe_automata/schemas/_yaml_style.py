"""Writes values as a block of YAML 1.1, each value in a single way.

    text({k: x, l: y}) = key(k): text(x)        text([x, y]) = - text(x)
                         key(l): text(y)                       - text(y)

Each property and each item begins a line, and every line ends with a line feed. An array or object
that is the value of a key begins on the next line, indented by two more spaces; one that is an item
begins on the line of the dash. Empty ones are `{}` and `[]`; null, true and false are these words;
other scalars are described below. There are no comments, anchors, tags, block scalars or folded
lines.

Every text is one document from which `yaml.safe_load` returns the value. Some names of properties
that the schema does not list are never written, see `keys`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from bpe_automata._budget import Budget
from bpe_automata.automata.algebra import any_of, concatenation, difference, intersection, union
from bpe_automata.automata.compile import compile_regex
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.errors import UnsupportedSchemaError
from bpe_automata.schemas import _numbers
from bpe_automata.schemas._escapes import with_escapes
from bpe_automata.schemas._style import Context, Layout, Piece, Shared, Style

INDENT = 2  # spaces a level
_SHARED = Shared()


class LineContext(NamedTuple):
    """A context: the level at which the lines of an array or object begin, and whether the value
    follows a key."""

    level: int
    after_key: bool


class YamlStyle(Style):
    """Block YAML. budget: for the spellings of one set of strings or names."""

    quotes, root = False, LineContext(0, after_key=False)

    def __init__(self, budget: Budget = Budget()) -> None:  # noqa: B008 - frozen
        super().__init__(_SHARED)
        self._budget = budget

    def around(self, context: Context) -> tuple[Piece, Piece]:
        """A space after a key, and the line feed that ends the line."""
        return (b" " if context.after_key else b""), b"\n"

    def objects(self, context: Context) -> Layout:
        """One or more lines for each property."""
        return _block(context, b"", b"{}\n", after_key=True)

    def arrays(self, context: Context) -> Layout:
        """One or more lines for each item."""
        return _block(context, b"- ", b"[]\n", after_key=False)

    def numbers(self, numbers: ByteDFA) -> ByteDFA:
        """The spellings that YAML 1.1 reads in the same way as JSON."""

        def find() -> ByteDFA:
            return intersection(_numbers.spellings(numbers), number_spellings())

        return self._once("numbers", numbers, find)

    def strings(self, strings: ByteDFA, context: Context) -> ByteDFA:
        """Plain, or else in double quotes."""
        return self._once("strings", strings, lambda: spellings(strings, self._budget))

    def string(self, text: str) -> Piece:
        """Plain, or else in double quotes."""
        return spelled(text).encode()

    def key(self, name: str, layout: Layout) -> Piece:
        """The name as a scalar, with a colon. Raises UnsupportedSchemaError if it is too long."""
        return key(name)

    def keys(self, names: ByteDFA, layout: Layout) -> ByteDFA:
        """The spellings of names, each with a colon; see `keys`."""
        return self._once("keys", names, lambda: keys(names, self._budget))


@lru_cache(maxsize=256)
def _block(line: LineContext, mark: bytes, empty: bytes, after_key: bool) -> Layout:
    """The layout of an array or object. after_key: whether the values inside follow a key."""
    margin = b" " * (INDENT * line.level)
    first = b"\n" + margin + mark if line.after_key else mark
    empty = b" " + empty if line.after_key else empty
    return Layout(first, margin + mark, b"", empty, LineContext(line.level + 1, after_key))


# Computes the spellings of strings as scalars and keys of block YAML, valid for YAML 1.1 and 1.2.
#
#     PLAIN = { t : t is read as the string t wherever it is unquoted, and has no U+FEFF }
#     spelled(t) = t if t in PLAIN else the text in double quotes
#
# "Is read": by PyYAML's `safe_load`, by readers that follow YAML 1.1's own list of types (in which
# `y` and `n` are booleans), and by readers of YAML 1.2 (in which `1e3` and `0o17` are numbers). The
# only exception is `1.2.3`, a float in the list of 1.1 by mistake, which no reader follows.
#
# "Wherever": as the whole document, after a key, after a dash, as a key, at any level. (`--- a`
# would be possible after a key, but not on a line of its own.) U+FEFF is read as it is, but YAML
# allows it in no document, so it is always escaped. In double quotes each character has one
# spelling: itself if YAML allows it in a line, else its short escape, else `\xXX` or `\uXXXX` with
# capital digits.
# Sources: yaml.org/spec/1.1, the resolvers of yaml.org/type, yaml.org/spec/1.2.2 (section 10.3.2),
# PyYAML 6 (scanner, resolver, reader), ruamel.yaml 0.19 (resolver).

# What a line may hold unescaped: no control characters, no tab, no line breaks (U+0085, U+2028 and
# U+2029 are some), no U+FEFF, U+FFFE, U+FFFF. Astral characters are all allowed.
_BEYOND_ASCII = r"\xA0-\u2027\u202A-\uD7FF\uE000-\uFEFE\uFF00-\uFFFD\U00010000-\U0010FFFF"
_LINE = f"[ -~{_BEYOND_ASCII}]"

_NOT_PLAIN = (
    r" .*|.* ",  # outer spaces are no part of a scalar
    r"[,\[\]{}#&*!|>'\"%@`].*",  # indicators that begin something else
    r"[-?:]( .*)?",  # a list item, a key, a value
    r".*: .*|.*:",  # a key and its value
    r".* #.*",  # a comment
    r"(---|\.\.\.)( .*)?",  # the marks between documents, on a line of their own
)

_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_LONG_DATE = r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_TIME = r"[0-9]{1,2}:[0-9]{2}:[0-9]{2}(\.[0-9]*)?"
_ZONE = r"[ \t]*(Z|[-+][0-9]{1,2}(:[0-9]{2})?)"
_SIXTIES = r"(:[0-5]?[0-9])+"

RESOLVED = {
    "bool": "|".join(
        f"{word}|{word.capitalize()}|{word.upper()}"
        for word in ("yes", "no", "true", "false", "on", "off")
    ),
    "float": r"[-+]?[0-9][0-9_]*\.[0-9_]*([eE][-+][0-9]+)?|\.[0-9][0-9_]*([eE][-+][0-9]+)?"
    rf"|[-+]?[0-9][0-9_]*{_SIXTIES}\.[0-9_]*|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
    "int": r"[-+]?(0b[01_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)"
    rf"|[-+]?[1-9][0-9_]*{_SIXTIES}",
    "merge": "<<",
    "null": "|~|null|Null|NULL",
    "timestamp": rf"{_DATE}|{_LONG_DATE}([Tt]|[ \t]+){_TIME}({_ZONE})?",
    "value": "=",
}
"""For each tag, a regex of the plain scalars that PyYAML reads as another type than string."""

RESOLVED_ELSEWHERE = (
    r"[yYnN]",
    r"[-+]?(0b[01_]+|0o[0-7_]+|0x[0-9a-fA-F_]+)",
    r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?|[-+][0-9_]+",
    r"[-+]?\.[0-9_]+([eE][-+]?[0-9]+)?",
)
"""Regexes of the plain scalars that other readers take for booleans and numbers."""

_SHORT = dict(zip('\0\a\b\t\n\v\f\r\x1b"\\\x85\u2028\u2029', '0abtnvfre"\\NLP', strict=True))
_LINE_CHARACTER = re.compile(_LINE)


_NOT_STRINGS = (*_NOT_PLAIN, *RESOLVED.values(), *RESOLVED_ELSEWHERE)


@lru_cache(maxsize=1)
def plain() -> ByteDFA:
    """The set PLAIN."""
    others = "|".join(f"(?:{regex})" for regex in _NOT_STRINGS)
    return difference(compile_regex(f"{_LINE}*"), compile_regex(others))


def spelled(text: str) -> str:
    """The spelling of a string anywhere in a block.

    Raises UnicodeEncodeError for a surrogate, which no YAML file can hold."""
    if plain().accepts(text.encode()):
        return text
    return f'"{"".join(map(escaped, text))}"'


def escaped(character: str) -> str:
    """One character inside double quotes."""
    if character in _SHORT:
        return "\\" + _SHORT[character]
    if _LINE_CHARACTER.fullmatch(character):
        return character
    code = ord(character)
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}"


@lru_cache(maxsize=1)
def escapes() -> dict[str, str]:
    """Each character that is escaped in double quotes, with its escape."""
    characters = [*map(chr, range(0xA0)), *"\u2028\u2029\ufeff\ufffe\uffff"]
    return {c: escaped(c) for c in characters if escaped(c) != c}


@lru_cache(maxsize=1)
def quoted() -> ByteDFA:
    """The spellings of all strings in double quotes."""
    one_of = "|".join(map(re.escape, escapes().values()))
    return compile_regex(rf'"([ !#-\[\]-~{_BEYOND_ASCII}]|{one_of})*"')


@lru_cache(maxsize=1)
def number_spellings() -> ByteDFA:
    """The spellings of numbers that YAML and JSON read in the same way: an exponent comes only
    after a fraction, and has a sign (`1e5` is a string, `1.0e+5` a number)."""
    return compile_regex(r"-?(0|[1-9][0-9]*)(\.[0-9]+([eE][-+][0-9]+)?)?")


# The spellings of a set of strings, computed on the table of its automaton.
#
# In double quotes, an intersection with the automaton of all quoted strings removes the unescaped
# spellings of characters beyond ASCII that must be escaped.

_DEFAULT = Budget()


def spellings(strings: ByteDFA, budget: Budget = _DEFAULT) -> ByteDFA:
    """{ spelled(t) : t in L(strings) }. Raises BudgetExceededError."""
    bare = intersection(strings, plain(), budget)
    others = difference(strings, plain(), budget)
    return union(bare, in_quotes(others, budget), budget)


def in_quotes(strings: ByteDFA, budget: Budget = _DEFAULT) -> ByteDFA:
    """{ " + escaped characters of t + " : t in L(strings) }. Raises BudgetExceededError."""
    after_backslash = {character: text[1:] for character, text in escapes().items()}
    return intersection(with_escapes(strings, after_backslash, budget), quoted(), budget)


# Names of properties as keys of block YAML.
#
#     keys(names) = { spelled(t) : t in names }                  if no name has over 32 characters
#                 = { spelled(t) : t in names and in WRITTEN }   otherwise
#
# A key of YAML has at most 1,024 characters of source, so the lengths of names must be limited, and
# each character that is counted costs about 120 states, half as many as all scalars. WRITTEN has
# the names of up to 4 characters; those of up to 8 in printable ASCII; and those of up to 64 in
# printable ASCII that either are plain and begin with a letter, `_`, `/` or `$`, or need quotes
# because of their first character (`@scope/name`, `*.md`), and no escapes.

_SOURCE = 1024  # characters of a key: YAML 1.1, section 9.1.3 (simple keys)
_LONGEST_KEY = 32


def key(name: str) -> bytes:
    """The spelling of a name, with a colon. Raises UnsupportedSchemaError if it is too long."""
    text = spelled(name)
    if len(text) > _SOURCE:
        why = f"a key of YAML takes at most {_SOURCE} characters, {name[:20]!r}... is longer"
        raise UnsupportedSchemaError("properties", "#", why)
    return f"{text}:".encode()


def keys(names: ByteDFA, budget: Budget = _DEFAULT) -> ByteDFA:
    """The spellings of names, each with a colon; see above. Raises BudgetExceededError.

    If all names of a set are written, so are all names of each subset: differences rely on that.
    """
    if not intersection(names, _long()).is_empty:
        names = intersection(names, key_names(), budget)
    return concatenation(spellings(names, budget), b":", budget=budget)


@lru_cache(maxsize=1)
def key_names() -> ByteDFA:
    """The set WRITTEN."""
    named = intersection(compile_regex(r"[A-Za-z_/$][ -~]{0,63}"), plain())
    in_quotes = compile_regex(r"[,\[\]{}#&*!|>'%@`][ !#-\[\]-~]{0,63}")
    return any_of([compile_regex(r"(?s:.{0,4})"), compile_regex(r"[ -~]{0,8}"), named, in_quotes])


@lru_cache(maxsize=1)
def _long() -> ByteDFA:
    return compile_regex(f"(?s:.{{{_LONGEST_KEY + 1},}})")
