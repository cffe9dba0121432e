"""Patterns of ECMA-262, against answers of V8: kept ones, and fresh ones where `node` is there."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from typing import Any

import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.budget import Budget
from bpe_automata.errors import BudgetExceededError, RegexSyntaxError, UnsupportedRegexError
from bpe_automata.schemas.strings import ecma_pattern

NODE = shutil.which("node")
# pattern, texts in which it is found, texts in which it is not
ANSWERS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("", ("", "x"), ()),
    ("b", ("b", "abc", "\nb"), ("", "a")),
    ("^a|b$", ("a", "ac", "cb", "b"), ("ca", "bc", "")),
    ("(^|,)x($|,)", ("x", "a,x", "x,b", "a,x,b"), ("ax", "xb", "a,xb", "")),
    ("^a$", ("a",), ("a\n", "\na", "aa", "")),
    ("(^a$|b)c", ("bc", "xbcx"), ("ac", "a", "c")),
    ("a(b$|^)", ("ab", "xab"), ("a", "abc", "ba")),
    ("^^$$", ("",), ("a",)),
    ("^([^,]+(,|$)){3,}$", ("a,b,c", "a,b,c,d", "a,b,c,"), ("a,b", "a,,b")),
    (r"\bcat\b", ("cat", "a cat.", "é cat", "écat"), ("cats", "_cat", "concat", "")),
    (r"\Bat\B", ("cats", "xaty"), ("at", "cat", "ats", "a t")),
    (r"^\B|x\b", ("", " a", "x", "é"), ("a", "1", "xy")),
    (r"^\d+$", ("09", "1"), ("", "a", "\u0661", "1\n")),
    (r"^\w$", ("a", "Z", "_", "7"), ("é", "-", "ſ", "\u212a")),
    (
        r"^\s$",
        (" ", "\t", "\v", "\xa0", "\ufeff", "\u3000", "\u2029", "\u1680"),
        ("\x85", "a", "\x1c"),
    ),
    (r"^[^\S\n]$", (" ", "\ufeff"), ("\n", "a")),
    ("^.$", ("a", "é", "😀", "\x85", "\x0b"), ("\n", "\r", "\u2028", "\u2029", "", "ab")),
    ("^[^]$", ("\n", "😀"), ("", "ab")),
    ("[]", (), ("", "a")),
    (r"^[\s\S]{2}$", ("\n\n", "a😀"), ("a", "abc")),
    (r"^\x41\u0042\cJ\0$", ("AB\n\0",), ("AB",)),
    (r"^\u{1F600}\ud83d\ude00[\ud83d\ude00-\ud83d\ude02]$", ("😀😀😁",), ("😀😀😃", "😀")),
    (r"^[\b\-\]a-c]$", ("\b", "-", "]", "b"), ("d", "\\")),
    (r"^\p{Lu}\P{L}$", ("É1", "A😀"), ("é1", "AB")),
    (r"^\/\-\_\@\e$", ("/-_@e",), ("/",)),
    (r"^[\w-.]+$", ("a-b.c",), ("a/b",)),
    (r"^a{,2}$", ("a{,2}",), ("", "a", "aa")),
    ("^{}]}$", ("{}]}",), ()),
    (r"^a{2,3}?b{2}c{1,}$", ("aabbc", "aaabbcc"), ("abbc", "aabbb", "aabbbc")),
    (r"^(?<year>\d{2})(?:a|b)*?$", ("12", "12ab"), ("1", "12c")),
    (r"^\1$", ("\x01",), ("1",)),
    (r"^\101\8\c$", ("A8\\c",), ()),
    (r"^(?:a*)*(b|)+$", ("", "ab", "aabb"), ("ba",)),
    (r"^[^\W\d]\D\W$", ("_x ", "a--"), ("1x ", "ax9", "abc")),
)
REFUSED: tuple[tuple[str, int, str], ...] = (
    ("a(?=b)", 1, "lookahead"),
    ("^(?!x)", 1, "lookahead"),
    ("ab(?<=b)", 2, "lookbehind"),
    ("(?<!b)", 0, "lookbehind"),
    (r"(a)b\1", 4, "backreference"),
    (r"(?<n>a)\k<n>", 7, "backreference"),
    (r"\1(a)", 0, "backreference"),
)
WRONG: tuple[tuple[str, int, str], ...] = (
    ("a)", 1, "not opened"),
    ("x(a", 1, "not closed"),
    ("x[a", 1, "not closed"),
    ("a**", 2, "nothing to repeat"),
    ("*a", 0, "nothing to repeat"),
    ("a|{2}", 2, "nothing to repeat"),
    ("a{3,2}", 1, "out of order"),
    ("[z-a]", 1, "out of order"),
    ("a\\", 1, "backslash at the end"),
    ("x^*", 1, "cannot be repeated"),
    ("(?i)a", 0, "no group of ECMA-262"),
    ("(?P<n>a)", 0, "no group of ECMA-262"),
    ("a(?#b)", 1, "no group of ECMA-262"),
    (r"\p{Nonsense}", 0, "Nonsense"),
    (r"\u{110000}", 0, "10FFFF"),
)


@pytest.mark.parametrize(("pattern", "found", "not_found"), ANSWERS)
def test_kept_answers(pattern: str, found: tuple[str, ...], not_found: tuple[str, ...]) -> None:
    dfa = ecma_pattern(pattern)
    assert [text for text in found if not dfa.accepts(text.encode())] == []
    assert [text for text in not_found if dfa.accepts(text.encode())] == []


@pytest.mark.skipif(NODE is None, reason="needs node")
def test_the_kept_answers_are_those_of_v8() -> None:
    asked = [(pattern, [*found, *others]) for pattern, found, others in ANSWERS]
    for (_, found, others), (_, answers) in zip(ANSWERS, v8(asked), strict=True):
        assert answers == [True] * len(found) + [False] * len(others)


@pytest.mark.parametrize(("pattern", "position", "reason"), REFUSED)
def test_what_is_not_regular_is_refused(pattern: str, position: int, reason: str) -> None:
    with pytest.raises(UnsupportedRegexError, match=reason) as caught:
        ecma_pattern(pattern)
    assert (caught.value.pattern, caught.value.position) == (pattern, position)


@pytest.mark.parametrize(("pattern", "position", "reason"), WRONG)
def test_what_is_no_pattern(pattern: str, position: int, reason: str) -> None:
    with pytest.raises(RegexSyntaxError, match=reason) as caught:
        ecma_pattern(pattern)
    assert (caught.value.pattern, caught.value.position) == (pattern, position)


@pytest.mark.parametrize(
    "pattern", ["\ud800a", "^$|(\ud801|^b)c", r"[\ud802]$x?", r"(^|\ud803)\udc00"]
)
def test_half_a_surrogate_pair_matches_nothing(pattern: str) -> None:
    dfa = ecma_pattern(pattern)
    found = [text for text in ("", "a", "bc", "c", "ac", "x") if dfa.accepts(text.encode())]
    assert found == (["", "bc"] if pattern.startswith("^$") else [])


def test_a_bracket_in_a_class_is_no_group() -> None:
    assert ecma_pattern(r"^[(]\1$").accepts(b"(\x01")
    assert ecma_pattern(r"^\(\1$").accepts(b"(\x01")


@pytest.mark.parametrize(
    "pattern",
    [
        "a{1000000000000}",
        "a{1," + "9" * 5000 + "}",
        "(a{1,900}b){900}",
        "(" * 20_000 + ")" * 20_000,
        "a" * 200_000,
        "(a|b)*a(a|b){20}$",
    ],
    ids=("large", "huge", "nested", "deep", "long", "blowing up"),
)
def test_beyond_the_budget(pattern: str) -> None:
    with pytest.raises(BudgetExceededError):
        ecma_pattern(pattern, Budget(max_states=10_000))


def test_long_lists_of_words_are_small() -> None:
    words = "|".join(f"NAME_{i}" for i in range(60))
    assert ecma_pattern(words).n_states < 100
    assert ecma_pattern(f"^({words})$|x").n_states < 300


def test_counts_with_anchors_inside() -> None:
    dfa = ecma_pattern("(^|;)[a-z]{1,300}($|;)")
    assert dfa.accepts(b"1;" + b"a" * 300)
    assert not dfa.accepts(b"1;" + b"a" * 301)


# ---------------------------------------------------------------- fresh patterns

ATOMS = (
    *("a", "b", ".", r"\d", r"\w", r"\s", r"\W", r"\D", r"\S", "[ab]", "[^a]", "[a-c1]", r"[\s\S]"),
    *("[^]", "[]", r"\x41", r"\u0062", r"\cJ", r"\n", r"\-", r"\/", "é", r"[\w-]", r"\0", r"[\b]"),
    *(r"\_", "-", "}", "]", "{", "{,2}", r"\8", r"\ca", "[--a]", r"[\d-x]", r"[^\W\d]", "\u2028"),
)
REPEATS = ("*", "+", "?", "{2}", "{0,2}", "{1,}", "*?", "{0}", "{2,3}?")


def _wrapped(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    groups = st.builds("({}{})".format, st.sampled_from(("", "?:")), inner)
    return st.one_of(
        st.builds(str.__add__, inner, inner),
        st.builds("(?:{}|{})".format, inner, inner),
        st.builds("{}{}".format, groups, st.sampled_from(REPEATS)),
        st.builds("{}{}{}".format, inner, st.sampled_from(("^", "$", r"\b", r"\B")), inner),
        st.builds("({}{})".format, st.sampled_from(("^", "$")), inner),
        st.builds("({}{})".format, inner, st.sampled_from(("^", "$"))),
    )


PATTERNS = st.recursive(st.sampled_from(ATOMS), _wrapped, max_leaves=8)
TEXT = "abA1_ \n\r\u2028é-/{}]cx0\x00\b\ufeff\\8,2\x01"


@pytest.mark.skipif(NODE is None, reason="needs node")
@given(st.lists(PATTERNS, min_size=30, max_size=40), st.randoms(use_true_random=False))
@examples(2)
def test_v8_finds_the_same(patterns: list[str], rng: random.Random) -> None:
    made = [(pattern, ecma_pattern(pattern)) for pattern in patterns]
    asked = [(pattern, near(dfa, rng)) for pattern, dfa in made]
    for (pattern, dfa), (_, texts), (_, answers) in zip(made, asked, v8(asked), strict=True):
        ours = [dfa.accepts(text.encode()) for text in texts]
        assert (pattern, texts, ours) == (pattern, texts, answers)


def near(dfa: ByteDFA, rng: random.Random) -> list[str]:
    """Texts of the language, texts near them, and random ones; all in the first plane, so that
    code units are code points."""
    texts = ["", *("".join(rng.choices(TEXT, k=rng.randrange(5))) for _ in range(6))]
    for _ in range(0 if dfa.is_empty else 4):
        text = dfa.sample(rng, 12).decode()
        at = rng.randrange(len(text) + 1)
        texts += [text, text[:at] + text[at + 1 :], text[:at] + rng.choice(TEXT) + text[at:]]
    return [text for text in texts if max(map(ord, text), default=0) < 0x10000]


def v8(asked: list[tuple[str, list[str]]]) -> list[Any]:
    """(was the flag u possible, the answers), for each pattern."""
    script = """
        const asked = JSON.parse(require('fs').readFileSync(0));
        console.log(JSON.stringify(asked.map(([pattern, texts]) => {
            let regex, u = true;
            try { regex = new RegExp(pattern, 'u') }
            catch { u = false; regex = new RegExp(pattern) }
            return [u, texts.map(t => regex.test(t))];
        })))
    """
    ran = subprocess.run(
        [str(NODE), "-e", script],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=True,
    )
    return list(json.loads(ran.stdout))
