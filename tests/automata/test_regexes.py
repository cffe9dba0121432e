"""Regexes: those that other engines get wrong, one example of each rule of the front end, and
compile_regex(r) accepts s.encode()  <=>  re.fullmatch(r, s), on random ones.
"""

from __future__ import annotations

import random
import re
from contextlib import suppress

import interegular
import networkx
import numpy as np
import pytest
import regex
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support import same_arrays
from support.drawn import COUNTS, regexes

from bpe_automata import link_regex
from bpe_automata.automata.compile import Budget, _by_atoms, _by_bytes, _Program, compile_regex
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.sources import from_interegular
from bpe_automata.automata.syntax import parse
from bpe_automata.errors import (
    BudgetExceededError,
    EmptyLanguageError,
    RegexSyntaxError,
    UnsupportedRegexError,
)
from bpe_automata.grammars.terminals import texts_of

EXAMPLES = [  # of what the random ones below do not draw
    (r"a{129}", ["a" * 129], ["a" * 128, "a" * 130]),
    (r"(?i)straße", ["STRAßE", "STRAẞE", "ſtraße", "straße"], ["strasse"]),
    (r"(?a:\p{L}\w)", ["éa"], ["éé", "1a"]),
    (r"^a|b$", ["a", "b"], [""]),
    (r"\A(?:^x|y$)\Z", ["x", "y"], ["xy"]),
    (r"(^|,)a(;|$)", ["a", ",a", "a;", ",a;"], [",", "aa"]),
    (r"(?m)^a$", ["a"], ["a\n"]),
    (r"[\ud800-\udfffa]", ["a"], ["b"]),
    (r"\p{L}\ud800?\udc00?", ["a"], ["ab"]),
    # The subset construction alone would need 2**200 states.
    (r"(.{0,200}b.{0,200})", ["x" * 200 + "b" + "x" * 200], ["x" * 201 + "b" + "x" * 200]),
]


@pytest.mark.parametrize(("pattern", "accepted", "rejected"), EXAMPLES)
def test_example(pattern: str, accepted: list[str], rejected: list[str]) -> None:
    dfa = compile_regex(pattern)
    assert [s for s in accepted if not dfa.accepts(s.encode())] == []
    assert [s for s in rejected if dfa.accepts(s.encode())] == []


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
    with pytest.raises(EmptyLanguageError):
        dfa.sample(random.Random(0))


@pytest.mark.parametrize("pattern", ["[^a]b", ".*x.?", "[^é]{2}", "(日|[^a-z])+", "a[^\\n]"])
def test_interegular_with_anything_else(pattern: str) -> None:
    fsm = interegular.parse_pattern(pattern).to_fsm()
    assert same_arrays(from_interegular(fsm), compile_regex(pattern))
    with pytest.raises(BudgetExceededError):
        from_interegular(fsm, Budget(max_bytes=100))


# Refusals: typed, with the position of the construct, and within the budget.

UNSUPPORTED = [
    (r"(?P<x>a)[(?=](?P=x)", 13),
    (r"[\b]\bfoo", 4),
    (r"^(^a|b$)c", 6),
    (r"(a^)*", 2),
    (r"^a\b", 2),
    (r"\p{L}[\p{Lu}x](?=b)", 14),
    ("(?x) a # $ \\b\n b ^ c", 17),
]
SYNTAX = [
    ("(", 0),
    ("a[z-a]", 2),
    ("a**", 2),
    (r"x\q", 1),
    (r"x\p{Nonsense}", 1),
    (r"\p{L}\p{Lu}(", 11),
    (r"\p{L}[a-\p{Lu}]", 8),
    (r"\p{L}[\p{Lu}-z]", 6),
    (r"\p{L}[\p{Lu}-\ufffd]", 6),
    ("ab{99999999999}", 2),
    ("(?P<1>a)", 4),
    ("(?au)a", 4),
]
REFUSED = [
    *((UnsupportedRegexError, *case) for case in UNSUPPORTED),
    *((RegexSyntaxError, *case) for case in SYNTAX),
]


@pytest.mark.parametrize(("error", "pattern", "position"), REFUSED)
def test_what_is_refused_is_named_with_its_position(error, pattern: str, position: int) -> None:
    """Alike where counts are linked."""
    for refuse in (compile_regex, link_regex):
        with pytest.raises(error) as caught:
            refuse(pattern)
        assert (caught.value.pattern, caught.value.position) == (pattern, position)
        assert str(caught.value).encode()  # nothing in it stands for something else


HUGE = [
    *((pattern, Budget(), "") for pattern in ("(.{0,1000}b){5}", ".*a.{30}", "(a?){10000000}")),
    ("((((a{100}){100}){100}){100}){100}", Budget(), ""),
    ("a" * 200_000, Budget(), ""),
    ("(a|b)*" * 300 + "a.{40}" * 9, Budget(), ""),
    (".*a.{30}", Budget(max_states=1000), "states"),
    (".*a.{30}", Budget(max_states=10**7, max_seconds=0.05), "seconds"),
    (".*a.{30}", Budget(max_states=10**7, max_bytes=10**6), "bytes"),
    ("a{500}", Budget(max_bytes=20_000), "bytes"),
    ("(a{90}){90}", Budget(max_states=500), "instructions"),
]


@pytest.mark.parametrize(("pattern", "budget", "resource"), HUGE, ids=range(len(HUGE)))
def test_huge_regexes_exceed_the_budget(pattern: str, budget: Budget, resource: str) -> None:
    with pytest.raises(BudgetExceededError) as caught:
        compile_regex(pattern, budget)
    assert resource in caught.value.resource


@pytest.mark.parametrize("compiled", [compile_regex, lambda regex: texts_of(regex, Budget())])
@pytest.mark.parametrize("parts", [("(", ")"), ("(?:", ")*"), ("(b|", ")"), ("(?i:", "b?)")])
def test_deep_nesting(parts: tuple[str, str], compiled) -> None:
    """Too deep for the parser is a typed error, and nothing else is."""
    assert compiled(parts[0] * 50 + "a" + parts[1] * 50).accepts(b"a")
    for depth in (300, 500, 5000):
        with suppress(BudgetExceededError):
            assert compiled(parts[0] * depth + "a" + parts[1] * depth).accepts(b"a")
            assert depth < 5000


# Random regexes, and strings of a fixed alphabet. Case folding and `(?a:...)` of a property are the
# `regex` package's own, so they do not meet in one regex.

ALPHABET = "abcxyzABZ019_- .\n\tſKk\u0131İßẞσςΣéÉǅ日本\u3000\u0660😀\U0001e900"
PROPERTIES = [f"\\{p}{{{x}}}" for p in "pP" for x in ("L", "Lu", "N", "Greek")]
letters = st.sampled_from(ALPHABET).map(re.escape)
categories = st.sampled_from([r"\w", r"\W", r"\d", r"\D", r"\s", r"\S"])
ranges = st.sampled_from(["a-z", "A-Z", "0-9", "!-~", "ß-ſ", "\u0100-\uffff", "一-鿿"])
parts = st.one_of(letters, letters, ranges, categories)
properties = st.sampled_from(PROPERTIES)
repeats = st.sampled_from([*"*+?", "{0}", "{2}", "{3}", "{0,}", "{1,}", "{3,}", "{,0}", "{,4}"])
quantifiers = st.builds(str.__add__, repeats | COUNTS, st.sampled_from(["", "", "?"]))


def atoms(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    body = st.lists(parts, min_size=1, max_size=4).map("".join)
    classes = st.builds("[{}{}]".format, st.sampled_from(["", "^"]), body)
    return st.one_of(letters, categories, classes, st.sampled_from(["", "."]))


plain = regexes(atoms(parts), quantifiers, ["i", "s", "a", "ia", "-i"])
with_properties = regexes(atoms(parts | properties) | properties, quantifiers, ["s"])
texts = st.lists(st.text(ALPHABET, max_size=6), min_size=1, max_size=12)


def near_misses(dfa: ByteDFA, seed: int) -> list[str]:
    """Some accepted strings, and strings one letter away from them."""
    if dfa.is_empty:
        return []
    rng, found = random.Random(seed), []
    for _ in range(4):
        text = dfa.sample(rng, max_bytes=10).decode()
        at = rng.randrange(len(text) + 1)
        found += [text[:at] + rng.choice(ALPHABET) + text[at:], text[:at] + text[at + 1 :], text]
    return found


@settings(max_examples=400, deadline=None)
@given(plain, texts, st.integers(0, 10**6), st.sampled_from(["", "(?i)", "(?s)", "(?a)"]))
def test_accepts_what_fullmatch_accepts(pattern, strings, seed, prefix) -> None:
    dfa, oracle = compile_regex(prefix + pattern), re.compile(prefix + pattern)
    for text in (*strings, *ALPHABET, *near_misses(dfa, seed)):
        assert dfa.accepts(text.encode()) == bool(oracle.fullmatch(text)), text


@settings(max_examples=200, deadline=None)
@given(with_properties, texts, st.integers(0, 10**6))
def test_properties_agree_with_the_regex_package(pattern, strings, seed) -> None:
    dfa, oracle = compile_regex(pattern), regex.compile(pattern)
    known = [text for text in near_misses(dfa, seed) if set(text) <= set(ALPHABET)]
    for text in (*strings, *ALPHABET, *known):
        assert dfa.accepts(text.encode()) == bool(oracle.fullmatch(text)), text


def told_apart(dfa: ByteDFA) -> int:
    """How many classes of states some texts tell apart (Moore's algorithm)."""
    block, n = dfa.accepting.astype(int), 0
    while n <= block.max():
        n = block.max() + 1
        rows = np.column_stack([block, block[dfa.trans]])
        block = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    return n


@settings(max_examples=150, deadline=None)
@given(plain | with_properties)
def test_minimal_and_trimmed(pattern: str) -> None:
    dfa = compile_regex(pattern)
    assert told_apart(dfa) == dfa.n_states
    steps = networkx.DiGraph((p, q) for p, row in enumerate(dfa.trans.tolist()) for q in row)
    reached = networkx.descendants(steps, dfa.start) | {dfa.start} if dfa.start else {0}
    assert reached | {0} == {*range(dfa.n_states)}
    assert (dfa.far[1:] >= 0).all()
    columns = np.unique(dfa.trans, axis=1)
    assert columns.shape[1] == dfa.n_classes == int(dfa.byte_class.max()) + 1


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=8), st.text(max_size=3), st.integers(0, 8))
@example(b"\xff", "", 0)
@example(b"\xc0\x80", "", 0)
@example(b"\xed\xa0\x80", "", 0)
@example(b"\xf4\x90\x80\x80", "日", 2)
def test_only_well_formed_utf8(noise: bytes, text: str, at: int) -> None:
    everything = compile_regex(r"[\s\S]*")
    encoded = text.encode("utf-8", "surrogatepass")
    for data in (noise, encoded, encoded[:at] + noise[:1] + encoded[at:], encoded[:at]):
        try:
            data.decode()
            valid = True
        except UnicodeDecodeError:
            valid = False
        assert everything.accepts(data) == valid


WORDS = sorted({chr(0x4E00 + 31 * i % 20_000) + "语文"[: i % 3] for i in range(90)})
wide_choices = st.lists(st.sampled_from(WORDS), min_size=70, max_size=90, unique=True).map(
    lambda words: f"(?:{'|'.join(words)})"
)
wide_patterns = regexes(
    wide_choices | parts,
    st.sampled_from(["?", "*", "+", "{0}", "{2}", "{1,2}", "{0,2}"]),
    ["i"],
    max_leaves=4,
)


@settings(deadline=None)
@given(wide_patterns)
def test_what_is_put_together_from_its_parts_is_what_atoms_give(pattern: str) -> None:
    """The same arrays, since both are minimal and numbered alike."""
    budget = Budget()
    program = _Program(parse(pattern), budget)
    one, other = _by_bytes(program, budget), _by_atoms(program, budget)
    assert same_arrays(one, other)
