"""Texts as scalars of a block of YAML, 1.1 or 1.2: a text means the same under both.

    PLAIN = { t : t is the string t again wherever it stands unquoted, and has no U+FEFF }
    spelled(t) = t if t in PLAIN else the text in double quotes

"Again": for PyYAML's `safe_load`, for readers that keep to YAML 1.1's own list of types (where `y`
and `n` are booleans), and for readers of YAML 1.2 (where `1e3` and `0o17` are numbers). The one
exception is that 1.1's list takes `1.2.3` for a float, which is a slip that no reader follows.

"Wherever": as the whole document, after a key, after a dash, as a key, at any depth. (`--- a` would
do after a key, but not on a line of its own.) U+FEFF is read back, but YAML allows it in no
document, so it is always escaped. In double quotes each character has one spelling: itself if YAML
takes it inside a line, else its short escape, else `\\xXX` or `\\uXXXX` with capital digits.
Sources: yaml.org/spec/1.1, the resolvers of yaml.org/type, yaml.org/spec/1.2.2 (section 10.3.2),
PyYAML 6 (scanner, resolver, reader), ruamel.yaml 0.19 (resolver).
"""

from __future__ import annotations

import re
from functools import lru_cache

from bpe_automata.automata.algebra import difference
from bpe_automata.automata.compile import compile_regex
from bpe_automata.automata.dfa import ByteDFA

# What a line may hold unescaped: no control characters, no tab, no line breaks (U+0085, U+2028 and
# U+2029 are some), no U+FEFF, U+FFFE, U+FFFF. Astral characters are all allowed.
_BEYOND_ASCII = r"\xA0-\u2027\u202A-\uD7FF\uE000-\uFEFE\uFF00-\uFFFD\U00010000-\U0010FFFF"
_LINE = f"[ -~{_BEYOND_ASCII}]"

_NOT_PLAIN = (
    r" .*|.* ",  # outer spaces are no part of it
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
"""Per tag, a regex of the plain texts that PyYAML takes for something else than a string."""

RESOLVED_ELSEWHERE = (
    r"[yYnN]",
    r"[-+]?(0b[01_]+|0o[0-7_]+|0x[0-9a-fA-F_]+)",
    r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?|[-+][0-9_]+",
    r"[-+]?\.[0-9_]+([eE][-+]?[0-9]+)?",
)
"""Regexes of the plain texts that others take for booleans and numbers."""

_SHORT = dict(zip('\0\a\b\t\n\v\f\r\x1b"\\\x85\u2028\u2029', '0abtnvfre"\\NLP', strict=True))
_LINE_CHARACTER = re.compile(_LINE)


_NOT_STRINGS = (*_NOT_PLAIN, *RESOLVED.values(), *RESOLVED_ELSEWHERE)


@lru_cache(maxsize=1)
def plain() -> ByteDFA:
    """PLAIN, see above."""
    others = "|".join(f"(?:{regex})" for regex in _NOT_STRINGS)
    return difference(compile_regex(f"{_LINE}*"), compile_regex(others))


def spelled(text: str) -> str:
    """The one spelling of a text, at any place of a block.

    ValueError (UnicodeEncodeError) for a surrogate, which no YAML file can hold."""
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
    """All texts in double quotes, each character in its one spelling."""
    one_of = "|".join(map(re.escape, escapes().values()))
    return compile_regex(rf'"([ !#-\[\]-~{_BEYOND_ASCII}]|{one_of})*"')


@lru_cache(maxsize=1)
def numbers() -> ByteDFA:
    """Texts of numbers that YAML and JSON read alike: an exponent only after a fraction, and
    with its sign (`1e5` is a string, `1.0e+5` a number)."""
    return compile_regex(r"-?(0|[1-9][0-9]*)(\.[0-9]+([eE][-+][0-9]+)?)?")


@lru_cache(maxsize=1)
def scientific() -> ByteDFA:
    """Those with an exponent."""
    return compile_regex(r"-?(0|[1-9][0-9]*)\.[0-9]+[eE][-+][0-9]+")
