"""Sets of strings by length, against `len`, JSON string literals, against `json`, and patterns of
ECMA-262, against V8.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import shutil
import subprocess
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples, same_arrays

from bpe_automata._automata.algebra import all_texts, intersection
from bpe_automata._automata.compile import compile_regex
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._budget import Budget
from bpe_automata.errors import (
    BudgetExceededError,
    RegexSyntaxError,
    UnsupportedRegexError,
)
from bpe_automata.schemas._ecma import ecma_pattern
from bpe_automata.schemas._escapes import Escapes, json_string
from bpe_automata.schemas._strings import within_length

CHARACTERS = 'ab\x00"\x7f\x80é߿ࠀ日\ud7ff\ue000\uffff\U00010000😀\U0010ffff'
TEXTS = st.text(st.one_of(st.sampled_from(CHARACTERS), st.characters(exclude_categories=("Cs",))))
COUNTS = st.integers(0, 6)
length_between = partial(within_length, all_texts())
PATTERNS = (
    *("(?s:.*)", "[a-z]*", "(ab)*", "a{2,5}", "[^a]*é?"),
    *(r"\w+( \w+)*", "(日|a)*b", "", "a|bcd|é日😀é", "[😀-😂]{3}|x*"),
)


@given(TEXTS, COUNTS, st.one_of(st.none(), COUNTS))
@examples(150)
def test_length_counts_characters(text: str, fewest: int, most: int | None) -> None:
    within = fewest <= len(text) and (most is None or len(text) <= most)
    assert length_between(fewest, most).accepts(text.encode()) == within


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(("fewest", "most"), [(0, 4), (3, 3), (2, 9), (2, None), (0, 0), (5, 2)])
def test_within_length_is_the_intersection(pattern: str, fewest: int, most: int | None) -> None:
    dfa = compile_regex(pattern)
    bound = "" if most is None else str(max(most, fewest))
    lengths = compile_regex(f"(?s:.){{{fewest},{bound}}}")
    empty = most is not None and most < fewest
    expected = compile_regex("[^\\s\\S]") if empty else intersection(dfa, lengths)
    found = within_length(dfa, fewest, most)
    assert same_arrays(found, expected)


EDGES = (
    '"\\/\b\f\n\r\t\x00\x01\x0b\x1f\x20\x7f\x80\xff\u07ff\u0800\u0fff\u1000\u2028\ud7ff\ue000\uffff'
    "\U00010000\U0001f600\U00050123\U000fffff\U00100000\U0010ffffaAbfu0"
)
LITERAL_CHARACTERS = st.one_of(st.sampled_from(EDGES), st.characters(exclude_categories=("Cs",)))
LITERAL_PATTERNS = (
    *("(?s:.*)", "(?s:.{0,3})", r"[^\n\r\"]*"),
    *(r'[a-z"\\\n]{0,4}', r"[\x00-\x1f]*", "[\U00010000-\U0010ffff]*|[\ue000-\uffff]"),
    *("[日\U0001f600/é]*", "[^a/]*[\U00050000-\U0005ffff]?", "[\u0800-\u0fff\u00ff]{1,2}"),
)
MODES: tuple[Escapes, ...] = ("minimal", "any")
SHORT = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\b": "\\b", "\f": "\\f", "\n": "\\n"}
SHORT |= {"\r": "\\r", "\t": "\\t"}


@lru_cache(maxsize=64)
def made(pattern: str, mode: Escapes) -> tuple[ByteDFA, ByteDFA]:
    texts = compile_regex(pattern)
    return texts, json_string(texts, mode)


def spellings(character: str) -> list[str]:
    """All ways of JSON to write a character, but for the case of hexadecimal digits."""
    units = character.encode("utf-16-be").hex()
    escaped = "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
    raw = [character] if character >= " " and character not in '"\\' else []
    short = [SHORT[character]] if character in SHORT else []
    return [*raw, *short, escaped, escaped.upper().replace("\\U", "\\u")]


@pytest.mark.parametrize("pattern", LITERAL_PATTERNS)
@pytest.mark.parametrize("mode", MODES)
@given(st.lists(LITERAL_CHARACTERS, max_size=4), st.randoms(use_true_random=False))
@examples(20)
def test_a_spelling_is_in_if_its_text_is(
    pattern: str, mode: Escapes, characters: list[str], rng: random.Random
) -> None:
    texts, literals = made(pattern, mode)
    text = "".join(characters)
    canonical = json.dumps(text, ensure_ascii=False)
    literal = '"' + "".join(rng.choice(spellings(c)) for c in characters) + '"'
    assert json.loads(literal) == text
    inside = texts.accepts(text.encode())
    assert literals.accepts(canonical.encode()) == inside
    allowed = mode == "any" or literal == canonical
    assert literals.accepts(literal.encode()) == (inside and allowed)


@pytest.mark.parametrize("pattern", LITERAL_PATTERNS)
@pytest.mark.parametrize("mode", MODES)
def test_what_is_in_is_a_literal_of_a_text(pattern: str, mode: Escapes) -> None:
    texts, literals = made(pattern, mode)
    rng = random.Random(0)
    for _ in range(60):
        literal = literals.sample(rng, 30)
        text = json.loads(literal.decode())
        assert texts.accepts(text.encode())
        if mode == "minimal":
            assert json.dumps(text, ensure_ascii=False).encode() == literal


@pytest.mark.parametrize("mode", MODES)
def test_damaged_literals(mode: Escapes) -> None:
    texts, literals = made("(?s:.{0,3})", mode)
    rng = random.Random(1)
    for _ in range(600):
        literal = literals.sample(rng, 20)
        at = rng.randrange(len(literal))
        damaged = literal[:at] + bytes([rng.choice(b'"\\/abu0189DFd \n\x7f')])
        damaged += literal[at + rng.randrange(2) :]
        assert literals.accepts(damaged) == is_literal(damaged, texts, mode)


def is_literal(data: bytes, texts: ByteDFA, mode: Escapes) -> bool:
    if data[:1] != b'"' or data[-1:] != b'"':  # `json` reads white space around it
        return False
    try:
        text = json.loads(data.decode())
        encoded = text.encode()
    except ValueError:  # also of UTF-8, and of half a surrogate pair
        return False
    plain = mode == "any" or json.dumps(text, ensure_ascii=False).encode() == data
    return plain and texts.accepts(encoded)


HALF_PAIRS = (r'"\ud800"', r'"\udc00"', r'"\ud800a"', r'"\ud83d\ud83d"', r'"\ude00\ud83d"')


@pytest.mark.parametrize("literal", HALF_PAIRS)
def test_half_a_surrogate_pair_is_no_character(literal: str) -> None:
    assert not made("(?s:.*)", "any")[1].accepts(literal.encode())


def test_every_character_has_its_escape() -> None:
    literals = made("(?s:.*)", "any")[1]
    for code_point in (*range(0x1100), *range(0x1100, 0x110000, 307)):
        if not 0xD800 <= code_point < 0xE000:
            for spelled in spellings(chr(code_point)):
                assert literals.accepts(f'"{spelled}"'.encode())


# ---------------------------------------------------------------- patterns of ECMA-262
# Against answers of V8: kept ones, and fresh ones where `node` is there.

NODE = shutil.which("node")
KEPT = json.loads(Path(__file__).with_name("ecma_patterns.json").read_text(encoding="utf-8"))
"""answers: pattern, texts in which it is found, texts in which it is not; refused, wrong: pattern,
position, reason."""
ANSWERS, REFUSED, WRONG = (KEPT[name] for name in ("answers", "refused", "wrong"))


@pytest.mark.parametrize(("pattern", "found", "not_found"), ANSWERS)
def test_kept_answers(pattern: str, found: list[str], not_found: list[str]) -> None:
    dfa = ecma_pattern(pattern)
    assert [text for text in found if not dfa.accepts(text.encode())] == []
    assert [text for text in not_found if dfa.accepts(text.encode())] == []


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
def test_counted_patterns_beyond_the_budget(pattern: str) -> None:
    with pytest.raises(BudgetExceededError):
        ecma_pattern(pattern, Budget(max_states=10_000))


@pytest.mark.parametrize(
    "pattern",
    [
        r"^(?!ab)[a-c]+$",
        r"^(?!.*b$)(?=.{1,3}$)a?.*",
        r"^(?=a|b)(?!aa)c*.|^cc$",
        r"^(?!\(x)[(x\)|]{1,3}$",
        r"^(?![)|]a).a$|b$",
        r"^(?!a(?:b|\)))a",
        r"^(?=$)|a",
        r"^(?!^a$)a",
        r"x|(?:^(?!a)b|^c(a|$))",
    ],
)
def test_a_condition_at_the_beginning_is_a_set_of_its_own(pattern: str) -> None:
    """`re` reads these patterns alike, but for `$` before a line feed."""
    dfa, search = ecma_pattern(pattern), re.compile(pattern.replace("$", r"\Z")).search
    for size in range(5):
        for letters in itertools.product("abcx()|", repeat=size):
            text = "".join(letters)
            assert dfa.accepts(text.encode()) == bool(search(text)), text


@pytest.mark.parametrize(
    ("pattern", "agreed", "not_agreed"),
    [
        (r"^\d\D$", ["1a", "1é"], ["١a", "1١"]),
        (r"^\w\W$", ["a-", "a\n"], ["é-", "aé", "aº", "a\u0301", "a\U0003fffd"]),
        (r"^[^\w]$", ["-"], ["é", "a"]),
        (r"^\s\S$", [" a", "\xa0é"], ["\x85a", "\x1ca", "\ufeffa", " \ufeff", " \x85"]),
        (r"^[\s\S]$", ["\ufeff", "\x85", "é"], ["", "ab"]),
        (r"^.$", ["é"], ["\n", "\r", "\u2028"]),
        (r"^a$", ["a"], ["a\n"]),
        (r"^(?!a$).*$", ["b", "ab"], ["a", "a\n", "b\n"]),
        (r"^(?!.*\W)", ["ab"], ["é", "-"]),
        (r"\A[0-9]\Z", ["1"], ["1\n", "A1Z"]),
        (r"\A(?!\d)..\z", ["ab"], ["1b", "١b", "ab\n"]),
    ],
)
def test_where_all_dialects_find_a_match(
    pattern: str, agreed: list[str], not_agreed: list[str]
) -> None:
    dfa, search = (
        ecma_pattern(pattern, agreed=True),
        re.compile(pattern.replace(r"\z", r"\Z")).search,
    )
    assert [text for text in agreed if not (dfa.accepts(text.encode()) and search(text))] == []
    assert [text for text in not_agreed if dfa.accepts(text.encode())] == []


# ---------------------------------------------------------------- fresh patterns

ATOMS = (
    *("a", "b", ".", r"\d", r"\w", r"\s", r"\W", r"\D", r"\S", "[ab]", "[^a]", "[a-c1]", r"[\s\S]"),
    *(r"\x41", r"\u0062", r"\cJ", r"\n", r"\-", r"\/", "é", r"[\w-]", r"\0", r"[\b]"),
    *(r"\_", "-", "}", "]", "x{", r"\ca", r"[\d-x]", r"[^\W\d]", "\u2028"),
)
REPEATS = ("*", "+", "?", "{2}", "{0,2}", "{1,}", "*?", "{0}", "{2,3}?")


def _wrapped(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    groups = st.builds("({}{})".format, st.sampled_from(("", "?:")), inner)
    return st.one_of(
        st.builds(str.__add__, inner, inner),
        st.builds("(?:{}|{})".format, inner, inner),
        st.builds("{}{}".format, groups, st.sampled_from(REPEATS)),
        st.builds("({}{})".format, st.sampled_from(("^", "$")), inner),
        st.builds("({}{})".format, inner, st.sampled_from(("^", "$"))),
    )


ECMA_PATTERNS = st.recursive(st.sampled_from(ATOMS), _wrapped, max_leaves=8)
TEXT = "abA1_ \n\r\u2028é-/{}]cx0\x00\b\ufeff\\8,2\x01"


@pytest.mark.skipif(NODE is None, reason="needs node")
@given(st.lists(ECMA_PATTERNS, min_size=30, max_size=40), st.randoms(use_true_random=False))
@examples(2)
def test_v8_finds_the_same(patterns: list[str], rng: random.Random) -> None:
    made = []
    for pattern in patterns:
        with suppress(UnsupportedRegexError):  # of anchors within
            made.append((pattern, ecma_pattern(pattern)))
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
