"""Regexes that other engines get wrong, and one example of each rule of the front end."""

from __future__ import annotations

import random
import re

import interegular
import numpy as np
import pytest

from bpe_automata.automata import Budget, ByteDFA, compile_regex, from_interegular
from bpe_automata.errors import BudgetExceededError, RegexSyntaxError, UnsupportedRegexError

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


# Refusals: typed, with the position of the construct, and within the budget.

UNSUPPORTED = [
    (r"a(?=b)", 1),
    (r"a(?!b)c", 1),
    (r"(?!)", 0),
    (r"ab(?<=b)", 2),
    (r"ab(?<!b)", 2),
    (r"(a)\1", 3),
    (r"(?P<x>a)[(?=](?P=x)", 13),
    (r"(a)?(?(1)b|c)", 4),
    (r"x(?>a)", 1),
    (r"(?#(?=)a*+b", 8),
    (r"a{2,3}+", 1),
    (r"[\b]\bfoo", 4),
    (r"a\B", 1),
    (r"a^b", 1),
    (r"^a$b$", 2),
    (r"^(^a|b$)c", 6),
    (r"(a^)*", 2),
    (r"\p{L}[\p{Lu}x](?=b)", 14),
    ("(?x) a # $ \\b\n b ^ c", 17),
]


@pytest.mark.parametrize(("pattern", "position"), UNSUPPORTED)
def test_unsupported_construct(pattern: str, position: int) -> None:
    with pytest.raises(UnsupportedRegexError) as caught:
        compile_regex(pattern)
    assert (caught.value.pattern, caught.value.position) == (pattern, position)


SYNTAX = [
    ("(", 0),
    ("a[z-a]", 2),
    ("a**", 2),
    (r"x\q", 1),
    (r"x\p{Nonsense}", 1),
    (r"\p{L}\p{Lu}(", 11),
    (r"\p{L}[a-\p{Lu}]", 8),
    ("ab{99999999999}", 2),
    ("(?P<1>a)", 4),
    ("(?au)a", 4),
]


@pytest.mark.parametrize(("pattern", "position"), SYNTAX)
def test_syntax_error(pattern: str, position: int) -> None:
    with pytest.raises(RegexSyntaxError) as caught:
        compile_regex(pattern)
    assert (caught.value.pattern, caught.value.position) == (pattern, position)


HUGE = [
    "(.{0,1000}b){5}",
    ".*a.{30}",
    "(a{1000}){1000}",
    "((((a{100}){100}){100}){100}){100}",
    "(a?){10000000}",
    "a" * 200_000,
    "(a|b)*" * 300 + "a.{40}" * 9,
]


@pytest.mark.parametrize("pattern", HUGE, ids=range(len(HUGE)))
def test_huge_regexes_exceed_the_budget(pattern: str) -> None:
    with pytest.raises(BudgetExceededError):
        compile_regex(pattern)


@pytest.mark.parametrize(
    ("pattern", "budget", "resource"),
    [
        (".*a.{30}", Budget(max_states=1000), "states"),
        (".*a.{30}", Budget(max_states=10**7, max_seconds=0.05), "seconds"),
        (".*a.{30}", Budget(max_states=10**7, max_bytes=10**6), "bytes"),
        (r"\w{0,500}", Budget(max_bytes=10**6), "bytes"),
        ("a{500}", Budget(max_bytes=20_000), "bytes"),
        ("(a{90}){90}", Budget(max_states=500), "instructions"),
    ],
)
def test_each_budget(pattern: str, budget: Budget, resource: str) -> None:
    with pytest.raises(BudgetExceededError, match="larger Budget") as caught:
        compile_regex(pattern, budget)
    assert caught.value.resource == resource


@pytest.mark.parametrize("parts", [("(", ")"), ("(?:", ")*"), ("(a|", ")"), ("(?i:", "b?)")])
def test_deep_nesting(parts: tuple[str, str]) -> None:
    """Too deep for the parser is a typed error, and nothing else is."""
    for depth in (50, *range(200, 600, 7)):
        pattern = parts[0] * depth + "a" + parts[1] * depth
        try:
            accepted, resource = compile_regex(pattern).accepts(b"a"), None
        except BudgetExceededError as error:
            accepted, resource = depth > 50, error.resource
        assert accepted
        assert resource in (None, "stack frames")
    with pytest.raises(BudgetExceededError, match="nested"):
        compile_regex("(" * 5000 + "a" + ")" * 5000)


def test_long_alternation() -> None:
    words = [f"{i * 7919 % 100003:x}" for i in range(5000)]
    dfa = compile_regex("|".join(words))
    assert sorted(dfa.strings(5000)) == sorted({w.encode() for w in words})


def test_budget_of_foreign_automata() -> None:
    import interegular

    fsm = interegular.parse_pattern("[^a]{50}").to_fsm()
    with pytest.raises(BudgetExceededError):
        from_interegular(fsm, Budget(max_bytes=1000))
