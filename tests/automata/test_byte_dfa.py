"""Byte DFAs: what they are made of, the automata of finite sets, and their boolean operations,
against brute force, `re`, and compiled regexes.
"""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import examples, same_arrays

from bpe_automata.automata import algebra
from bpe_automata.automata.codepoints import runs
from bpe_automata.automata.compile import Budget, compile_regex
from bpe_automata.automata.dfa import BrokenAutomatonError, ByteDFA
from bpe_automata.automata.sources import from_strings
from bpe_automata.automata.syntax import parse
from bpe_automata.errors import BudgetExceededError, UnsupportedRegexError
from bpe_automata.testing import byte_dfas, cyclic_regexes

FINITE = ["", "a?(b|é)?", "(a|b){0,3}", "(foo|foobar)", "[ab]{2}|c", "日?本?", "a{0,2}b{0,2}"]


@pytest.mark.parametrize("pattern", FINITE)
def test_strings_are_all_strings_in_order(pattern: str) -> None:
    letters, dfa = "abcfoér日本", compile_regex(pattern)
    words = ("".join(w) for n in range(5) for w in itertools.product(letters, repeat=n))
    expected = [w.encode() for w in words if re.fullmatch(pattern, w)]
    expected += [b"foobar"] if "foobar" in pattern else []
    expected.sort(key=lambda w: (len(w), w))
    assert list(dfa.strings(len(expected))) == expected
    assert dfa.shortest() == expected[0]
    assert dfa.far[dfa.start] == len(expected[0])
    with pytest.raises(BudgetExceededError):
        list(dfa.strings(len(expected) - 1))


GOOD = compile_regex("ab?")


@pytest.mark.parametrize(
    "change",
    [
        {"trans": GOOD.trans.astype(np.int64)},
        {"trans": np.asfortranarray(GOOD.trans)},
        {"trans": GOOD.trans * 9},
        {"trans": -GOOD.trans},
        {"byte_class": GOOD.byte_class + np.uint8(7)},
        {"accepting": ~GOOD.accepting},
        {"start": 9},
    ],
    ids=range(7),
)
def test_arrays_that_are_no_automaton(change: dict[str, object]) -> None:
    good = {name: getattr(GOOD, name) for name in ("trans", "byte_class", "accepting", "start")}
    with pytest.raises(BrokenAutomatonError):
        ByteDFA(**(good | change))


# ---------------------------------------------------------------- finite sets


@settings(max_examples=150, deadline=None)
@given(st.sets(st.text("abé日\n", max_size=4), max_size=12))
def test_from_strings_is_the_regex_of_the_set(words: set[str]) -> None:
    dfa = from_strings(words)
    assert set(dfa.strings(12)) == {w.encode() for w in words}
    other = compile_regex("|".join(map(re.escape, sorted(words))) if words else r"[^\s\S]")
    assert same_arrays(dfa, other)


def test_from_strings_refuses_surrogates() -> None:
    with pytest.raises(UnsupportedRegexError, match="position 1"):
        from_strings(["a\ud800"])


# ---------------------------------------------------------------- sets of code points


CLASSES = [r"\w", r"\W", r"\d", r"\D", r"\s", r"\S", r"[\w-]", r"[^\d\s]", r"[^\W_]", r"[Α-ω\d]"]
CLASSES += ["s", "k", "ß", "ẞ", "ſ", "İ", "ı", "ǅ", "σ", "ς", "[\ufb05]", "[^σ]", "[^a-zé]", "."]
CLASSES += ["[a-z]", "[K-ſ]", "[À-ÿ]", "[\u1c80-\u1c88]", "[\u13a0-\u13f5]"]


@pytest.mark.parametrize("flags", [0, re.I, re.A, re.I | re.A])
@pytest.mark.parametrize("text", CLASSES)
def test_classes_are_those_of_re(text: str, flags: int) -> None:
    """On every code point, by running the class over all of them."""
    letters = "".join(letter for letter in "ia" if flags & {"i": re.I, "a": re.A}[letter])
    (chars,) = parse(f"(?{letters}:{text})" if letters else text)
    assert chars.members == runs(re.compile(f"{text}+", flags))


# ---------------------------------------------------------------- boolean operations

WORDS = [bytes(w) for n in range(6) for w in itertools.product(b"abc", repeat=n)]
PIECES = ("a", "é", "日", "aé", "\n")


@examples(60)
@given(byte_dfas(), byte_dfas())
def test_they_are_the_set_operations(one, other):
    a = {w for w in WORDS if one.accepts(w)}
    b = {w for w in WORDS if other.accepts(w)}
    operations = {"union": a | b, "intersection": a & b, "difference": a - b}
    for name, wanted in operations.items():
        found = getattr(algebra, name)(one, other)
        assert {w for w in WORDS if found.accepts(w)} == wanted, name
    found = algebra.complement(one)
    assert {w for w in WORDS if found.accepts(w)} == set(WORDS) - a


@examples(40)
@given(cyclic_regexes(PIECES), cyclic_regexes(PIECES), cyclic_regexes(PIECES))
def test_rational_operations_are_those_of_regexes(one, two, three):
    a, b, c = (compile_regex(regex) for regex in (one, two, three))
    chain, nothing = algebra.concatenation, from_strings(())
    assert same_arrays(chain(a, b, c), compile_regex(f"(?:{one})(?:{two})(?:{three})"))
    assert same_arrays(chain(a, "xé".encode(), c), compile_regex(f"(?:{one})xé(?:{three})"))
    assert same_arrays(algebra.any_of((a, b, c)), compile_regex(f"{one}|{two}|{three}"))
    assert same_arrays(algebra.any_of((a, b)), algebra.union(a, b))
    assert chain(a, nothing, c).is_empty
    assert algebra.any_of(()).is_empty


@examples(40)
@given(cyclic_regexes(PIECES), cyclic_regexes(PIECES))
def test_equal_languages_have_equal_arrays(one, other):
    a, b = compile_regex(one), compile_regex(other)
    assert same_arrays(algebra.union(a, a), a)
    assert same_arrays(algebra.complement(algebra.complement(a)), a)
    assert same_arrays(algebra.intersection(a, b), algebra.intersection(b, a))
    both = algebra.complement(algebra.union(algebra.complement(a), algebra.complement(b)))
    assert same_arrays(algebra.intersection(a, b), both)
    assert same_arrays(algebra.difference(a, b), algebra.intersection(a, algebra.complement(b)))
    assert algebra.difference(a, a).n_states == 1


def test_the_complement_holds_no_bytes_that_are_no_text():
    found = algebra.complement(from_strings(["é"]))
    assert found.accepts(b"")
    assert found.accepts("éé".encode())
    for data in (b"\xc3", b"\x80", b"\xff", "é".encode()[1:], b"\xed\xa0\x80"):
        assert not found.accepts(data)
    assert algebra.complement(algebra.all_texts()).is_empty


@examples(40)
@given(byte_dfas(), st.sampled_from([w for w in WORDS if len(w) < 4]))
def test_after_is_the_quotient(dfa, data):
    found = algebra.after(dfa, data)
    assert {w for w in WORDS if found.accepts(w)} == {w for w in WORDS if dfa.accepts(data + w)}


def test_budgets():
    many = [compile_regex(f"(?:a|b)*a[ab]{{{n}}}") for n in (6, 7)]
    with pytest.raises(BudgetExceededError, match="50 states"):
        algebra.intersection(*many, Budget(max_states=50))
    with pytest.raises(BudgetExceededError, match="bytes"):
        algebra.union(*many, Budget(max_bytes=20_000))
