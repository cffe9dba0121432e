"""Refusals: typed, with the position of the construct, and within the budget."""

from __future__ import annotations

import pytest

from bpe_automata.automata import Budget, compile_regex, from_interegular
from bpe_automata.errors import BudgetExceededError, RegexSyntaxError, UnsupportedRegexError

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
        ("(a{90}){90}", Budget(max_states=500), "places"),
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
