"""JSON string literals, against `json` itself."""

from __future__ import annotations

import json
import random
from functools import lru_cache

import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st

from bpe_automata.automata.compile import compile_regex
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.sources import from_strings
from bpe_automata.budget import Budget
from bpe_automata.errors import ArgumentError, BudgetExceededError
from bpe_automata.schemas.escapes import Escapes, json_string
from bpe_automata.schemas.strings import length_between

EDGES = (
    '"\\/\b\f\n\r\t\x00\x01\x0b\x1f\x20\x7f\x80\xff\u07ff\u0800\u0fff\u1000\u2028\ud7ff\ue000\uffff'
    "\U00010000\U0001f600\U00050123\U000fffff\U00100000\U0010ffffaAbfu0"
)
CHARACTERS = st.one_of(st.sampled_from(EDGES), st.characters(exclude_categories=("Cs",)))
PATTERNS = (
    "(?s:.*)",
    "(?s:.{0,3})",
    r"[^\n\r\"]*",
    r'[a-z"\\\n]{0,4}',
    r"[\x00-\x1f]*",
    "[\U00010000-\U0010ffff]*|[\ue000-\uffff]",
    "[日\U0001f600/é]*",
    "[^a/]*[\U00050000-\U0005ffff]?",
    "[\u0800-\u0fff\u00ff]{1,2}",
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


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("mode", MODES)
@given(st.lists(CHARACTERS, max_size=4), st.randoms(use_true_random=False))
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


@pytest.mark.parametrize("pattern", PATTERNS)
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


def test_words_of_a_list() -> None:
    words = ["", "a", 'say "hi"', "tab\there", "\x1f", "b\\", "é😀", "\x7f"]
    found = json_string(from_strings(words))
    assert sorted(json.loads(t) for t in found.strings(20)) == sorted(words)
    assert json_string(from_strings(())).is_empty


def test_long_lengths() -> None:
    literals = json_string(length_between(0, 5_000))
    assert literals.accepts(b'"' + rb"\n\"\u001f" * 1666 + b'ab"')
    assert not literals.accepts(b'"' + rb"\n\"\u001f" * 1666 + b'abc"')


def test_bad_arguments() -> None:
    with pytest.raises(ArgumentError, match='"minimal" or "any"'):
        json_string(length_between(0, 3), "all")  # type: ignore[arg-type]
    for mode in MODES:
        with pytest.raises(BudgetExceededError, match="bytes"):
            json_string(length_between(0, 3_000), mode, Budget(max_bytes=2_000_000))
