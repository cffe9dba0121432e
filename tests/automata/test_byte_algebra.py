"""Laws of the boolean operations on byte DFAs, against brute force, `re`, and compiled regexes."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st

from bpe_automata.automata import Budget, ByteDFA, algebra, compile_regex, from_strings
from bpe_automata.errors import BudgetExceededError
from bpe_automata.kernels.inclusion import widest
from bpe_automata.kernels.watch import watched
from bpe_automata.testing import byte_dfas, cyclic_regexes

WORDS = [bytes(w) for n in range(6) for w in itertools.product(b"abc", repeat=n)]
TEXTS = ["".join(w) for n in range(4) for w in itertools.product("aé日\n", repeat=n)]
PIECES = ("a", "é", "日", "aé", "\n")


def same(one, other):
    """Are all the arrays equal, and their types?"""
    arrays = ("trans", "byte_class", "accepting")
    pairs = [(getattr(one, name), getattr(other, name)) for name in arrays]
    return one.start == other.start and all(
        a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs
    )


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
@given(cyclic_regexes(PIECES), cyclic_regexes(PIECES))
def test_equal_languages_have_equal_arrays(one, other):
    a, b = compile_regex(one), compile_regex(other)
    assert same(algebra.union(a, b), compile_regex(f"(?:{one})|(?:{other})"))
    assert same(algebra.union(a, a), a)
    assert same(algebra.complement(algebra.complement(a)), a)
    assert same(algebra.intersection(a, b), algebra.intersection(b, a))
    both = algebra.complement(algebra.union(algebra.complement(a), algebra.complement(b)))
    assert same(algebra.intersection(a, b), both)
    assert same(algebra.difference(a, b), algebra.intersection(a, algebra.complement(b)))
    assert algebra.difference(a, a).n_states == 1


@examples(40)
@given(cyclic_regexes(PIECES))
def test_the_complement_is_that_of_fullmatch(regex):
    found = algebra.complement(compile_regex(regex))
    for text in TEXTS:
        assert found.accepts(text.encode()) == (re.fullmatch(regex, text) is None)


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


def test_after_a_part_of_a_character():
    found = algebra.after(compile_regex("日本|é"), "日".encode()[:2])
    assert list(found.strings(5)) == ["日本".encode()[2:]]
    assert same(algebra.after(compile_regex("ab|cab"), b"c"), from_strings(["ab"]))


@pytest.mark.parametrize("one", ["a", "ab|b", "(aé)+", "a?日", "[ab]{2}|c"])
def test_followed_by_anything(one):
    ending = compile_regex(rf"[\s\S]*(?:{one})")
    found = algebra.followed(ending, ending.start, algebra.all_texts())
    assert same(found, compile_regex(rf"[\s\S]*(?:{one})[\s\S]*"))
    ending = compile_regex(rf"(?:[\s\S]*\W)?(?:{one})")
    found = algebra.followed(ending, ending.start, compile_regex(r"(?:\W[\s\S]*)?"))
    assert same(found, compile_regex(rf"(?:[\s\S]*\W)?(?:{one})(?:\W[\s\S]*)?"))


def test_a_prefix_that_is_complete_at_the_start_is_not_followed():
    """Only what more bytes complete counts."""
    ending = compile_regex(r"[\s\S]*ab")
    found = algebra.followed(ending, ending.walk(b"xab"), algebra.all_texts())
    assert not found.accepts(b"")
    assert not found.accepts(b"b")
    assert found.accepts(b"cab")
    found = algebra.followed(ending, ending.walk(b"xa"), algebra.all_texts())
    assert found.accepts(b"b")
    assert not found.accepts(b"ab"[:1])


def test_budgets():
    many = [compile_regex(f"(?:a|b)*a[ab]{{{n}}}") for n in (6, 7)]
    with pytest.raises(BudgetExceededError, match="50 states"):
        algebra.intersection(*many, Budget(max_states=50))
    with pytest.raises(BudgetExceededError, match="bytes"):
        algebra.union(*many, Budget(max_bytes=20_000))


def test_a_budget_of_time():
    many = [compile_regex(f"(?:a|b)*a[ab]{{{n}}}") for n in (6, 7)]
    whole = algebra.union(*many)
    with pytest.raises(BudgetExceededError, match="seconds"):
        algebra.union(*many, Budget(max_seconds=0))
    assert same(algebra.union(*many), whole)


# Laws of the states that include others.


def widest_of(dfa: ByteDFA) -> np.ndarray:
    n_bytes = np.bincount(dfa.byte_class, minlength=dfa.trans.shape[1]).astype(np.int32)
    found: np.ndarray = watched(widest, dfa.trans, n_bytes, dfa.distance())
    return found


def included(dfa: ByteDFA, q: int, p: int) -> bool:
    """Does p read all that q reads? By all pairs that the two lead to."""
    seen, waiting = {(q, p)}, [(q, p)]
    while waiting:
        q, p = waiting.pop()
        if dfa.accepting[q] and not dfa.accepting[p]:
            return False
        for pair in zip(dfa.trans[q].tolist(), dfa.trans[p].tolist(), strict=True):
            if pair[0] != 0 and pair not in seen:
                seen.add(pair)
                waiting.append(pair)
    return True


@given(byte_dfas())
def test_what_is_found_is_included(dfa: ByteDFA) -> None:
    tops = widest_of(dfa)
    for state, top in enumerate(tops.tolist()):
        assert included(dfa, state, top)
        assert tops[top] == top


@pytest.mark.parametrize(
    ("pattern", "tops"),
    [
        ("[a-z]{10,300}x", 13),
        ("(?:é|ab|[c-z]){0,30}", 4),
        ("[가-힣]{3,9}a", 24),
        (r"(?:\S){0,60}é[가-힣]", 52),
        ("[a-z]{20}", 22),  # no two of its states have a text in common
    ],
)
def test_after_more_repeats_fewer_are_left(pattern: str, tops: int) -> None:
    """Of a counted repeat few states are left that no other includes."""
    dfa = compile_regex(pattern)
    found = widest_of(dfa)
    assert all(included(dfa, state, top) for state, top in enumerate(found.tolist()))
    assert len(set(found.tolist())) <= tops


def test_states_of_one_language_include_one_another() -> None:
    """Automata that are not minimal lead round in a circle."""
    trans = np.array([[0, 0], [2, 0], [3, 0], [1, 0]], dtype=np.int32)
    byte_class = np.ones(256, dtype=np.uint8)
    byte_class[:200] = 0
    dfa = ByteDFA(trans, byte_class, np.array([False, True, True, True]), 1)
    tops = widest_of(dfa)
    assert len(set(tops[1:].tolist())) == 1
