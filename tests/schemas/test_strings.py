"""Texts by length, against `len`."""

from __future__ import annotations

import random

import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st

from bpe_automata.automata.algebra import all_texts, intersection
from bpe_automata.automata.compile import compile_regex
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.budget import Budget
from bpe_automata.errors import BudgetExceededError
from bpe_automata.schemas.strings import length_between, within_length

CHARACTERS = 'ab\x00"\x7f\x80é߿ࠀ日\ud7ff\ue000\uffff\U00010000😀\U0010ffff'
TEXTS = st.text(st.one_of(st.sampled_from(CHARACTERS), st.characters(exclude_categories=("Cs",))))
COUNTS = st.integers(0, 6)
PATTERNS = (
    "(?s:.*)",
    "[a-z]*",
    "(ab)*",
    "a{2,5}",
    "[^a]*é?",
    r"\w+( \w+)*",
    "(日|a)*b",
    "",
    "a|bcd|é日😀é",
    "[😀-😂]{3}|x*",
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


def same_arrays(one: ByteDFA, other: ByteDFA) -> bool:
    """Equal languages have equal arrays, if both are minimal and numbered alike."""
    return (
        one.trans.tolist() == other.trans.tolist()
        and one.byte_class.tolist() == other.byte_class.tolist()
        and one.accepting.tolist() == other.accepting.tolist()
        and one.start == other.start
    )


def test_half_a_character_is_no_text() -> None:
    dfa = length_between(0, 3)
    assert not any(dfa.accepts("é日😀".encode()[:n]) for n in (1, 3, 4, 6, 7, 8))


def test_long_bounds_are_exact_at_their_ends() -> None:
    dfa = length_between(2, 30_000)
    assert [dfa.accepts("日".encode() * n) for n in (1, 2, 30_000, 30_001)] == [
        False,
        True,
        True,
        False,
    ]
    words = within_length(compile_regex("[a-z]+(-[a-z]+)*"), 0, 30_000)
    assert words.accepts(b"a-" * 14_999 + b"bc")
    assert not words.accepts(b"a-" * 15_000 + b"b")
    assert words.n_states < 70_000


def test_nothing_to_cut_off_gives_the_same_object() -> None:
    assert within_length(all_texts(), 0, None) is all_texts()


@pytest.mark.parametrize("bounds", [(0, 1_000_000), (1_000_000, None), (0, 10**30)])
def test_beyond_the_budget(bounds: tuple[int, int | None]) -> None:
    with pytest.raises(BudgetExceededError, match="bytes"):
        length_between(*bounds, Budget(max_bytes=20_000_000))


@pytest.mark.long
def test_samples_of_long_texts_have_their_length() -> None:
    dfa, rng = length_between(40, 65_536), random.Random(0)
    for _ in range(50):
        assert 40 <= len(dfa.sample(rng, 400).decode()) <= 65_536
