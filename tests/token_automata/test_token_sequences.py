"""Counting, listing and sampling, against the list of all sequences."""

from __future__ import annotations

import random
import tracemalloc
from itertools import islice

import pytest
from brute import LONGEST, SYMBOLS, automata, language, of, parts, words
from budget import examples
from hypothesis import given

from bpe_automata.errors import BudgetExceededError, EmptyLanguageError, InfiniteLanguageError
from bpe_automata.token_automata import TokenAutomaton, strings


class Chosen:
    """In place of a random generator: gives the number it is told to."""

    def __init__(self, number):
        self.number = number

    def randrange(self, stop):
        assert 0 <= self.number < stop
        return self.number


@examples(200)
@given(parts())
def test_the_automaton_is_that_of_its_transitions(given_parts):
    automaton = TokenAutomaton.from_transitions(*given_parts, SYMBOLS)
    assert of(automaton) == language(*given_parts)
    assert [w for w in words() if automaton.accepts(w)] == language(*given_parts)
    listed = list(automaton.transitions())
    assert listed == sorted(set(listed))
    assert len(listed) == automaton.n_transitions
    assert all(automaton.step(p, a) == q for p, a, q in listed)
    assert automaton.step(automaton.start, 4) is None
    assert not automaton.accepts([2**70])


@examples(200)
@given(automata())
def test_count_enumerate_shortest(automaton):
    accepted = of(automaton)
    for length in range(LONGEST + 1):
        assert automaton.count(length) == sum(len(w) == length for w in accepted)
        expected = [w for w in accepted if len(w) <= length]
        assert list(automaton.enumerate(max_length=length)) == expected
    assert automaton.shortest() == (accepted[0] if accepted else None)
    assert automaton.is_empty == (not accepted)


@examples(200)
@given(automata())
def test_finite_and_infinite_languages(automaton):
    """A cycle on the way to acceptance of n states gives a sequence of n to 2n - 1 symbols."""
    n = automaton.n_states
    accepted = of(automaton, 2 * n - 1)
    finite = all(len(w) < n for w in accepted)
    assert automaton.is_finite == finite
    if finite:
        assert automaton.total() == len(accepted)
        assert list(automaton.enumerate()) == accepted
        assert list(automaton.enumerate(limit=len(accepted))) == accepted
    else:
        for ask in (automaton.total, automaton.enumerate):
            with pytest.raises(InfiniteLanguageError):
                ask()
    for limit in {0, len(accepted) - 1} & set(range(len(accepted))):
        with pytest.raises(BudgetExceededError):
            list(automaton.enumerate(limit=limit))


@examples(200)
@given(automata())
def test_each_random_number_gives_another_sequence(automaton):
    """So samples are exactly uniform, the generator's numbers being so."""
    for length in range(LONGEST):
        expected = [w for w in of(automaton) if len(w) == length]
        numbers = range(automaton.count(length))
        assert sorted(automaton.sample_uniform(Chosen(k), length) for k in numbers) == expected
    if automaton.is_finite:
        numbers = range(automaton.total())
        assert sorted(automaton.sample_uniform(Chosen(k)) for k in numbers) == sorted(of(automaton))


def test_counts_are_exact_however_large():
    automaton = TokenAutomaton.from_transitions([(0, a, 0) for a in range(7)], 0, [0])
    assert automaton.count(300) == 7**300
    assert len(automaton.sample_uniform(random.Random(0), 300)) == 300
    chain = [(k, a, k + 1) for k in range(100) for a in range(7)]
    assert TokenAutomaton.from_transitions(chain, 0, [0, 100]).total() == 7**100 + 1
    assert automaton.count(-1) == 0


def test_no_sample_where_nothing_is_accepted():
    automaton = TokenAutomaton.from_transitions([(0, 1, 1)], 0, [1])
    with pytest.raises(EmptyLanguageError, match="of length 2"):
        automaton.sample_uniform(random.Random(0), 2)
    with pytest.raises(EmptyLanguageError):
        TokenAutomaton.from_transitions([], 0, []).sample_uniform(random.Random(0))


def test_the_limit_ends_an_infinite_listing_at_once():
    automaton = TokenAutomaton.from_transitions([(0, 1, 0), (0, 2, 1)], 0, [1])
    found = []
    with pytest.raises(BudgetExceededError):
        found.extend(automaton.enumerate(limit=10))
    assert len(found) <= 10
    assert list(automaton.enumerate(limit=3, max_length=3)) == [(2,), (1, 2), (1, 1, 2)]
    listing = automaton.enumerate(limit=3)
    assert [*islice(listing, 3)] == [(2,), (1, 2), (1, 1, 2)]
    with pytest.raises(BudgetExceededError):
        next(listing)


def test_the_first_of_very_many_comes_at_once():
    """5**12 sequences, of which none shorter than 12 symbols."""
    listed = [(k, s, k + 1) for k in range(12) for s in range(5)]
    automaton = TokenAutomaton.from_transitions(listed, 0, [12])
    assert next(automaton.enumerate()) == (0,) * 12
    assert list(islice(automaton.enumerate(limit=7), 7))[5:] == [
        (0,) * 10 + (1, 0),
        (0,) * 10 + (1, 1),
    ]


def test_counting_keeps_one_length_only():
    automaton = TokenAutomaton.from_transitions([(0, a, 0) for a in (1, 2)], 0, [0])
    tracemalloc.start()
    assert automaton.count(20_000) == 2**20_000
    kept = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert kept < 5_000_000  # all lengths take 25 MB
    assert automaton.count(3) == 8
    assert len(automaton.sample_uniform(random.Random(0), 4)) == 4
    assert automaton.count(5) == 32


def test_levels_are_kept_between_samples_only_where_they_are_small(monkeypatch):
    automaton = TokenAutomaton.from_transitions([(0, a, 0) for a in (1, 2)], 0, [0])
    automaton.sample_uniform(random.Random(0), 50)
    assert len(automaton._counts._levels) == 50
    monkeypatch.setattr(strings, "_MOST_BYTES", 1000)
    automaton.sample_uniform(random.Random(0), 50)
    assert len(automaton._counts._levels) == 1
    assert len(automaton.sample_uniform(random.Random(0), 60)) == 60
