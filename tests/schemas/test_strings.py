"""Sets of strings by length, against `len`, JSON string literals, against `json`, and patterns of
ECMA-262, against V8.
"""

from __future__ import annotations

import itertools
import json
import random
import re
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples, same_arrays

from bpe_automata._budget import Budget
from bpe_automata.automata.algebra import intersection
from bpe_automata.automata.compile import compile_regex
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.errors import (
    BudgetExceededError,
    RegexSyntaxError,
    UnsupportedRegexError,
)
from bpe_automata.schemas._ecma import ecma_pattern
from bpe_automata.schemas._escapes import Escapes, json_string
from bpe_automata.schemas._scalar_sets import within_length

PATTERNS = (
    *("(?s:.*)", "[a-z]*", "(ab)*", "a{2,5}", "[^a]*é?"),
    *(r"\w+( \w+)*", "(日|a)*b", "", "a|bcd|é日😀é", "[😀-😂]{3}|x*"),
)


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
# Against answers of V8 that were kept.

KEPT = json.loads(Path(__file__).with_name("ecma_patterns.json").read_text(encoding="utf-8"))
"""answers: pattern, texts in which it is found, texts in which it is not; refused, wrong: pattern,
position, reason."""
WRONG = {UnsupportedRegexError: KEPT["refused"], RegexSyntaxError: KEPT["wrong"]}


@pytest.mark.parametrize(("pattern", "found", "not_found"), KEPT["answers"])
def test_kept_answers(pattern: str, found: list[str], not_found: list[str]) -> None:
    dfa = ecma_pattern(pattern)
    assert [text for text in found if not dfa.accepts(text.encode())] == []
    assert [text for text in not_found if dfa.accepts(text.encode())] == []


@pytest.mark.parametrize(
    ("kind", "pattern", "position", "reason"),
    [(kind, *row) for kind, rows in WRONG.items() for row in rows],
)
def test_what_is_not_regular_or_no_pattern(
    kind: type[Exception], pattern: str, position: int, reason: str
) -> None:
    with pytest.raises(kind, match=reason) as caught:
        ecma_pattern(pattern)
    assert (caught.value.pattern, caught.value.position) == (pattern, position)


HUGE = ("a{1000000000000}", "a{1," + "9" * 5000 + "}", "(a{1,900}b){900}", "(a|b)*a(a|b){20}$")


@pytest.mark.parametrize("pattern", [*HUGE, "(" * 20_000 + ")" * 20_000, "a" * 200_000])
def test_counted_patterns_beyond_the_budget(pattern: str) -> None:
    with pytest.raises(BudgetExceededError):
        ecma_pattern(pattern, Budget(max_states=10_000))


CONDITIONS = (
    *(r"^(?!ab)[a-c]+$", r"^(?!.*b$)(?=.{1,3}$)a?.*", r"^(?=a|b)(?!aa)c*.|^cc$"),
    *(r"^(?!\(x)[(x\)|]{1,3}$", r"^(?![)|]a).a$|b$", r"^(?!a(?:b|\)))a", r"^(?=$)|a", r"^(?!^a$)a"),
    r"x|(?:^(?!a)b|^c(a|$))",
)


@pytest.mark.parametrize("pattern", CONDITIONS)
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
