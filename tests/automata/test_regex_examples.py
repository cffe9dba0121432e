"""Regexes that other engines get wrong, and one example of each rule of the front end."""

from __future__ import annotations

import random
import re

import interegular
import numpy as np
import pytest

from bpe_automata.automata import ByteDFA, compile_regex, from_interegular

EXAMPLES = [
    (r"(ab)*", ["", "ab", "abab"], ["a", "aba"]),
    (r"-?[0-9]+(\.[0-9]+)?", ["0", "-3", "0.5", "-12.25"], ["", "-", ".5", "1."]),
    (r"\w+", ["日本", "a_1", "é"], ["", "-", "日 本"]),
    (r"(foo|foobar)", ["foo", "foobar"], ["fo", "fooba"]),
    (r".", ["a", "日", "😀", "\r", "\u2028"], ["\n", "", "ab"]),
    (r"(?s).", ["\n", "a"], ["", "ab"]),
    (r"a{129}", ["a" * 129], ["a" * 128, "a" * 130]),
    (r"[^a]", ["b", "\n", "日"], ["a", ""]),
    (r"\p{Lu}", ["A", "É", "Σ"], ["a", "日", "1"]),
    (r"[\p{Lu}0-9_-]+\P{L}", ["A1-!", "É_1"], ["Aa", "é1"]),
    (r"[^\p{L}]", ["1", " "], ["a", "日"]),
    (r"(?i)straße", ["STRAßE", "STRAẞE", "ſtraße", "straße"], ["strasse"]),
    (r"(?i)s", ["s", "S", "ſ"], ["ß"]),
    (r"(?i)k", ["k", "K", "\u212a"], ["q"]),
    (r"(?i:a)b", ["ab", "Ab"], ["aB"]),
    (r"(?a)\w+", ["a1_"], ["é"]),
    (r"(?x) a b  # a comment", ["ab"], ["a b"]),
    (r"a{0}b", ["b"], ["ab"]),
    (r"(a|b{0,3}){2,4}?c", ["c", "abbbac"], ["ac" * 2, ""]),
    (r"^a|b$", ["a", "b"], [""]),
    (r"\A(?:^x|y$)\Z", ["x", "y"], ["xy"]),
    (r"(^|,)a(;|$)", ["a", ",a", "a;", ",a;"], [",", "aa"]),
    (r"(?m)^a$", ["a"], ["a\n"]),
    (r"[\ud800-\udfffa]", ["a"], ["b"]),
    (r"\p{L}\ud800?\udc00?", ["a"], ["ab"]),
]


@pytest.mark.parametrize(("pattern", "accepted", "rejected"), EXAMPLES)
def test_example(pattern: str, accepted: list[str], rejected: list[str]) -> None:
    dfa = compile_regex(pattern)
    assert [s for s in accepted if not dfa.accepts(s.encode())] == []
    assert [s for s in rejected if dfa.accepts(s.encode())] == []


@pytest.mark.parametrize("data", [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"])
def test_ill_formed_utf8_is_rejected(data: bytes) -> None:
    dfa = compile_regex(r"(?s).*")
    assert not dfa.accepts(data)
    assert dfa.walk(data) == 0
    assert not dfa.accepts("日".encode()[:2])


@pytest.mark.parametrize(
    "pattern",
    [r"[^\s\S]", r"a[^\x00-\U0010ffff]", r"\ud800", r"[\ud800-\udfff]+x", r"[^\w\W]{2,5}"],
)
def test_empty_language(pattern: str) -> None:
    dfa = compile_regex(pattern)
    assert dfa.is_empty
    assert dfa.start == 0
    assert dfa.n_states == 1
    assert dfa.shortest() is None
    assert list(dfa.strings(0)) == []


def test_repeats_that_overlap_stay_small() -> None:
    """The subset construction alone would need 2**200 states."""
    dfa = compile_regex("(.{0,200}b.{0,200})")
    assert dfa.accepts(b"x" * 200 + b"b" + b"x" * 200)
    assert not dfa.accepts(b"x" * 201 + b"b" + b"x" * 200)
    rng = random.Random(5)
    pattern = "((.{0,7}b.{1,6}){1,2}c{0,3}){0,2}"
    small = compile_regex(pattern)
    for _ in range(4000):
        text = "".join(rng.choice("aaaabc") for _ in range(rng.randrange(40)))
        assert small.accepts(text.encode()) == bool(re.fullmatch(pattern, text))


def same_arrays(a: ByteDFA, b: ByteDFA) -> bool:
    pairs = ((a.trans, b.trans), (a.byte_class, b.byte_class), (a.accepting, b.accepting))
    return a.start == b.start and all(np.array_equal(x, y) for x, y in pairs)


@pytest.mark.parametrize(
    "pattern",
    [
        "(ab)*",
        "a|b+c?",
        "[0-9]{2,5}",
        "(a|b)*abb",
        "(foo|foobar)",
        "-?[0-9]+(\\.[0-9]+)?",
        "(a?b){3}",
    ],
)
def test_as_small_as_interegular(pattern: str) -> None:
    fsm = interegular.parse_pattern(pattern).to_fsm().reduce()
    live = sum(fsm.islive(state) for state in fsm.states)
    dfa = compile_regex(pattern)
    assert dfa.n_states == live + 1
    assert same_arrays(from_interegular(fsm), dfa)


@pytest.mark.parametrize("pattern", ["[^a]b", ".*x.?", "[^é]{2}", "(日|[^a-z])+", "a[^\\n]"])
def test_interegular_with_anything_else(pattern: str) -> None:
    fsm = interegular.parse_pattern(pattern).to_fsm()
    assert same_arrays(from_interegular(fsm), compile_regex(pattern))


def test_equal_languages_have_equal_arrays() -> None:
    for one, other in [
        ("a(b|c)", "ac|ab"),
        ("(a*)*", "a*"),
        (r"[\w\W]", "(?s)."),
        ("aa?", "a{1,2}"),
    ]:
        assert same_arrays(compile_regex(one), compile_regex(other))
