"""The regex of a constraint: Python's syntax, `re.fullmatch` semantics."""

from __future__ import annotations

import re

import pytest
import regex as regex_package

from bpe_automata import compile_regex
from bpe_automata.errors import UnsupportedRegexError
from support.case import Case
from support.laws import language_is

SECTION = "regex of the constraint"
LETTERS = "aAb1 é\n^"


def does(name, pattern, variant="", engine=re):
    """The language is that of the engine's `fullmatch`."""

    def check(folder):
        language_is(pattern, LETTERS, 3, engine)

    return Case(SECTION, name, False, check, variant)


def does_not(name, pattern, position, variant=""):
    def check(folder):
        with pytest.raises(UnsupportedRegexError) as caught:
            compile_regex(pattern)
        assert (caught.value.pattern, caught.value.position) == (pattern, position)

    return Case(SECTION, name, True, check, variant)


CASES = [
    does("alternation and groups", "(a|(?:b|A)1|(?P<x>aa))"),
    does("`* + ? {n,m}`", "a*b+1?|a{2,3}"),
    does("lazy repetition", "a{1,2}?b??"),
    does("classes", "[ab1-3][^a]?"),
    does("`.`", "a."),
    does("`\\d \\w \\s`", r"\d?\w\s|\D\W\S"),
    does("`(?i) (?s) (?x) (?i:…)`", "(?i)a(?-i:b)", "i"),
    does("`(?i) (?s) (?x) (?i:…)`", "(?s)a.", "s"),
    does("`(?i) (?s) (?x) (?i:…)`", "(?x) a  b # and a comment", "x"),
    does("`\\p{…}`", r"\p{L}\p{Nd}|\P{L}", engine=regex_package),
    does("anchors at its ends", "^(a|b)$"),
    does_not("backreferences", r"(a)\1", 3),
    *(does_not("lookaround", p, 1, p) for p in ("a(?=b)", "a(?!b)", "a(?<=a)", "a(?<!b)")),
    does_not("conditional groups", "(a)?(?(1)b|c)", 4),
    does_not("possessive repetition", "a*+b", 1),
    does_not("atomic groups", "(?>a)b", 0),
    does_not(r"`\b`", r"\bfoo", 0),
    does_not("anchors inside", "a^b", 1),
]
