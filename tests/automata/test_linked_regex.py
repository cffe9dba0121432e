"""Regexes with large counted repeats: linked, they are what `compile_regex` makes of them."""

from __future__ import annotations

import random
import re
from contextlib import contextmanager

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support import examples, same_arrays, same_masks
from support.drawn import COUNTS, regexes

from bpe_automata import Budget, LinkedDFA, compile_regex, constrain, link_regex
from bpe_automata.automata import linked_regex
from bpe_automata.automata.linked_store import members_of
from bpe_automata.canonical.canonical import canonical_automaton
from bpe_automata.composition.descriptions import described
from bpe_automata.errors import (
    BpeAutomataError,
    BudgetExceededError,
    EmptyLanguageError,
)
from bpe_automata.testing import small_tokenizer

# ---------------------------------------------------------------- small counts, taken for large

BODIES = ("a", "b", "ab", "[ab]", "é", ".", "a|aa", "ab|c", "a?", "a*", "a*b", "ab?", "(?i:a)", "")
REPEATS = COUNTS | st.sampled_from(("*", "+", "?", "{2,}", "{3}"))
PATTERNS = regexes(st.sampled_from(BODIES).map("(?:{})".format), REPEATS, max_leaves=5)


@contextmanager
def limits(large: int):
    """What has more characters is large."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linked_regex, "_LARGE", large)
        yield


def linked(pattern, large=1):
    with limits(large):
        return link_regex(pattern)


def states_beside(one: LinkedDFA, other, most=300):
    """Pairs of states that the same texts lead to."""
    pairs = [(one.start, other.start)]
    for s, t in pairs:
        yield s, t
        if len(pairs) < most:
            new = ((one.step(s, byte), other.step(t, byte)) for byte in "abcéxA".encode())
            pairs += [pair for pair in dict.fromkeys(new) if pair not in pairs]


@examples(120)
@example("(?:(?:(?:a|aa)){2,4}b?){2,3}", 1)  # rounds that are told apart in no way
@example("(?:a*b){2,4}", 1)  # the beginning of a round is met again within it
@example("(?:(?:a?){2,3}|b){0,3}", 1)  # rounds that may be empty
@example("(?:a){3,5}(?:a){2,6}", 0)  # two repeats at once
@example("(?:(?:a|[ab][ab][ab][ab][ab][ab])(?:[ab]){2,3}){2}", 2)  # of different lengths
@given(PATTERNS, st.sampled_from((0, 1, 2, 5)))
def test_it_is_the_automaton_of_the_regex(pattern, large):
    whole = compile_regex(pattern)
    with limits(large):
        found = link_regex(pattern)
        assert found.equivalent(whole) is None
        assert same_arrays(found.to_dfa(), whole)
        distance = whole.far
        for state, other in states_beside(link_regex(pattern), whole):
            assert (state == 0) == (other == 0)
        for state, other in states_beside(found, whole):
            if other:
                assert found.far[state] == distance[other]
                assert bool(found.accepting[state]) == whole.accepting[other]


# ---------------------------------------------------------------- large counts

LARGE = [
    (r".{2990,3000}", ["a" * 2990, "a" * 3000], ["a" * 2989, "a" * 3001, "\n"]),
    (r"[ab]{300,}c", ["a" * 300 + "c", "ab" * 3000 + "c"], ["a" * 299 + "c", "a" * 400]),
    (r"(ab|c){0,10000}", ["", "ab" * 10_000, "abc" * 5000], ["abc" * 5000 + "c", "a", "b"]),
    (r"(a.{0,500};){0,500}", ["", "a" + ";" * 501, "a;b;"], ["a" + "x" * 501 + ";", "b;", "a"]),
    (r"(a|aa){500,1000}", ["a" * 500, "a" * 1999, "a" * 2000], ["a" * 499, "a" * 2001]),
    (r"(a*b?){0,1000}", ["", "b" * 1000, "ab" * 1000, "a" * 2000], ["b" * 1001, "c"]),
    (r"((ab?){0,30}c){0,30}", ["ab" * 30 + "c", "c" * 30], ["a" * 31 + "c", "c" * 31, "ab"]),
    (r"(?i)(?:straße){0,100}", ["STRAẞE" * 100], ["straße" * 101, "strasse"]),
    (r"(?i:a{0,300}b){2}b", ["AbaBb", "A" * 300 + "BBb"], ["AbaBB", "A" * 301 + "BBb"]),
    (r"^(?:a{0,1000}b)?$", ["", "ab", "a" * 1000 + "b"], ["a", "a" * 1001 + "b"]),
    (r"[\ud800-\udfff]{0,1000}a{2}", ["aa"], ["a"]),
    (r"x{0}(y{0,1000}){0}z", ["z"], ["xz", "yz"]),
]


@pytest.mark.parametrize(("pattern", "accepted", "rejected"), LARGE)
def test_counts_end_where_they_end(pattern, accepted, rejected):
    found = link_regex(pattern)
    assert [text[:9] for text in accepted if not found.accepts(text.encode())] == []
    assert [text[:9] for text in rejected if found.accepts(text.encode())] == []
    if found.far[found.start] < 1000:
        rng = random.Random(2)
        for text in (found.shortest(), *(found.sample(rng, 40) for _ in range(3))):
            assert re.fullmatch(pattern, text.decode())
            assert len(text) >= found.far[found.start]


LETTERS = small_tokenizer(["a", "b", "ab", "c", '"', '",', ";", "a;", ",", "a,"])
canonical_automaton(LETTERS)  # is made here, and in no budget of a test
HUGE = [
    (r".{0,100000}", r".{0,99}"),
    (r'("[^"]{0,20000}",?){1,1000}', r'("[^"]{0,99}",?)+'),
    (r"([a-z]{0,4000000000},){0,4000000000}", r"([a-z]*,)*"),
]


@pytest.mark.parametrize(("pattern", "small"), HUGE)
def test_what_cannot_be_written_out_is_masked(pattern, small):
    """As a regex with counts that no text here comes to the end of."""
    with pytest.raises(BudgetExceededError):
        compile_regex(pattern, Budget(max_states=5000))
    found, explicit = link_regex(pattern), compile_regex(small)
    assert found.shortest() == explicit.shortest()
    assert same_masks(LETTERS, "canonical", found, explicit, 20) == 20
    assert found.n_written < 3000


@pytest.mark.parametrize(
    ("pattern", "text", "of_a_letter"),
    [
        (r"(\w+\s?){300,100000}", b"ab" * 100, 70),
        (r"(a|aa){500,1000}", b"a" * 400, 6),
        (r".*x.{0,1000}y", b"x" * 300, 2),
        (r"((ab?){9,300}){20,300}a", b"a" * 270, 6),
    ],
)
def test_rounds_that_include_others_are_left_out(pattern, text, of_a_letter):
    """Else a set would have as many states, or a context as many ways on, as a text has letters."""
    found = link_regex(pattern)
    found.walk(text)
    assert max(len(members_of(kept)[0]) for kept in found._members.values()) <= 6
    contexts = [one.context for one in found._written._instance_with.values()]
    assert max(len(context.frames) for context in contexts) <= 3
    assert max(len(ranges) for context in contexts for *_, ranges in context.frames) <= 2
    assert found.n_written <= of_a_letter * len(text)


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    "pattern", [r"[^\s\S]{1,1000}", r"a{0,1000}[^\s\S]", r"([^\s\S]a{0,900})+"]
)
def test_an_empty_language_is_refused(pattern):
    with pytest.raises(EmptyLanguageError, match="no text matches"):
        link_regex(pattern)
    assert link_regex(f"(?:{pattern})?").shortest() == b""


def test_what_exceeds_a_budget():
    with pytest.raises(BudgetExceededError, match="bytes"):
        link_regex("(?:ab){3000000}|c")
    with pytest.raises(BudgetExceededError, match="the shortest text needs more"):
        link_regex("a{700000}")
    assert link_regex("a{700000}", Budget(max_states=120_000)).far.max() >= 700_000
    assert link_regex("a{700000}|b").shortest() == b"b"
    with pytest.raises(BudgetExceededError, match="one another"):
        link_regex("(?:" * 65 + "a" + "b?){2,300}" * 65)
    with pytest.raises(BudgetExceededError, match="stack frames"):
        link_regex("(" * 3000 + "a{0,1000}" + ")" * 3000)
    with pytest.raises(BudgetExceededError, match="seconds"):
        link_regex("a{0,1000}" + r"|\w{100}" * 3000, Budget(max_seconds=0.05))
    small = link_regex(".{0,100000}", Budget(max_states=500))
    with pytest.raises(BudgetExceededError, match="used them up"):
        small.walk(b"a" * 10_000)
    with pytest.raises(BudgetExceededError, match="link_regex"):
        compile_regex(".{0,100000}", Budget(max_states=1000))


# ---------------------------------------------------------------- regexes of constraints


@pytest.mark.parametrize(
    "pattern", [r".{0,100000}", r'("[^"]{0,20000}",?){1,1000}', r"(?i:ab|c){5,900000}"]
)
def test_a_constraint_links_what_is_too_large(pattern):
    for found in (constrain(LETTERS, pattern).dfa, described({"regex": pattern})):
        assert isinstance(found, LinkedDFA)
        assert same_masks(LETTERS, "canonical", found, link_regex(pattern)) == 12


@pytest.mark.parametrize(
    ("pattern", "budget"),
    [
        (r"(a|b)*a(a|b){30}", Budget(max_states=500)),  # no count is large
        (r"(a|b)*a(a|b){30}(ab){0,300}", Budget(max_states=500)),  # another part is too large
        (r"a{700000}", Budget()),
        (r"(a|b)*a(a|b){60}", Budget(max_states=10**7, max_seconds=0.05)),
        ("(" * 3000 + "a{0,1000}" + ")" * 3000, Budget()),
        (r"(a{0,1000})\1", Budget()),
        (r"(?:\ba{300}){0}b", Budget()),
        (r"[a-\p{L}]{0,1000}", Budget()),
        (r"(a{0,1000}", Budget()),
    ],
)
def test_what_cannot_be_linked_either_is_refused_as_ever(pattern, budget):
    with pytest.raises(BpeAutomataError) as one:
        compile_regex(pattern, budget)
    with pytest.raises(BpeAutomataError) as other:
        constrain(LETTERS, pattern, budget=budget)
    assert (type(other.value), str(other.value)) == (type(one.value), str(one.value))
