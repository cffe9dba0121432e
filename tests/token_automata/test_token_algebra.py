"""Union, intersection, difference, complement; determinisation."""

import random
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples
from support.drawn import LONGEST, SYMBOLS, automata, automaton_parts, language, language_of, words

from bpe_automata.errors import BudgetExceededError, EmptyLanguageError, InfiniteLanguageError
from bpe_automata.token_automata.algebra import Counterexample
from bpe_automata.token_automata.automaton import TokenAutomaton


@examples(40)
@given(automata(), automata())
def test_operations_are_those_on_sets(one, other):
    a, b = set(language_of(one)), set(language_of(other))
    assert set(language_of(one.union(other))) == a | b
    assert set(language_of(one.intersection(other))) == a & b
    assert set(language_of(one.difference(other))) == a - b
    assert set(language_of(one.complement())) == set(words()) - a


@examples(40)
@given(automata(), automata())
def test_laws_of_languages(one, other):
    """On whole languages, not to a length."""
    one_not, other_not = one.complement(), other.complement()
    assert one_not.complement().equivalent(one) is None
    both = one.intersection(other)
    assert one.union(other).complement().equivalent(one_not.intersection(other_not)) is None
    assert both.complement().equivalent(one_not.union(other_not)) is None
    assert one.difference(other).equivalent(one.intersection(other_not)) is None
    assert both.union(one.difference(other)).equivalent(one) is None
    assert one.intersection(one_not).is_empty


def test_a_product_of_many_states_grows_as_it_must():
    """Cycles of 61 and 67: 4,087 pairs, more than the kernel starts with."""
    cycles = [
        TokenAutomaton.from_transitions([(k, 3, (k + 1) % n) for k in range(n)], 0, [0])
        for n in (61, 67)
    ]
    both = cycles[0].intersection(cycles[1])
    assert both.n_states == 61 * 67
    accepted = [n for n in (1, 61, 67, 61 * 67) if both.accepts([3] * n)]
    assert accepted == [61 * 67]


def test_operations_have_a_budget():
    loop = TokenAutomaton.from_transitions([(0, a, 0) for a in range(10)], 0, [0])
    assert loop.union(loop, max_edges=10).n_transitions == 10
    for act in (loop.union, loop.intersection):
        with pytest.raises(BudgetExceededError, match="9 edges"):
            act(loop, max_edges=9)
    assert loop.complement(max_edges=10).n_transitions == 10
    with pytest.raises(BudgetExceededError):
        loop.complement(max_edges=9)


# Trimmed, minimal and equal automata.


@examples(40)
@given(automata())
def test_trimmed_is_the_same_language_with_relevant_states_only(automaton):
    trimmed = automaton.trimmed()
    assert language_of(trimmed) == language_of(automaton)
    assert trimmed.relevant().all() or (automaton.is_empty and trimmed.n_states == 1)
    assert trimmed.n_states == max(1, int(automaton.relevant().sum()))


@examples(40)
@given(automata())
def test_minimised_has_one_state_for_each_myhill_nerode_class(automaton):
    """Classes of prefixes by what can follow them, all of at most n symbols."""
    walks = words(automaton.n_states)
    after = {tuple(v for v in walks if automaton.accepts((*u, *v))) for u in walks}
    minimal = automaton.minimised()
    assert minimal.n_states == max(1, len(after - {()}))
    assert language_of(minimal) == language_of(automaton)


@examples(40)
@given(automaton_parts(), st.randoms(use_true_random=False))
def test_equal_languages_give_equal_arrays(given_parts, rng):
    """The states renamed, one of them doubled: the same minimal automaton."""
    transitions, start, accepting = given_parts
    one = TokenAutomaton.from_transitions(*given_parts, SYMBOLS)
    twin = rng.choice([start, *(q for _, _, q in transitions)])
    doubled = [(p, a, rng.choice([q, "twin"]) if q == twin else q) for p, a, q in transitions]
    doubled += [("twin", a, q) for p, a, q in transitions if p == twin]
    rng.shuffle(doubled)
    ends = {*accepting, "twin"} if twin in accepting else accepting
    other = TokenAutomaton.from_transitions(doubled, start, ends, SYMBOLS, states=ends)
    assert one.equivalent(other) is None
    assert one.minimised().identical(other.minimised())


@examples(40)
@given(automata(), automata())
def test_a_counterexample_is_the_first_difference(one, other):
    """Automata of n and m states that differ do so on less than n + m symbols."""
    longest = one.n_states + other.n_states
    a, b = set(language_of(one, longest - 1)), set(language_of(other, longest - 1))
    first = min(a ^ b, key=lambda w: (len(w), w), default=None)
    expected = None if first is None else Counterexample(first, first in a)
    assert one.equivalent(other) == expected


def test_a_counterexample_shows_what_it_spells():
    spelled = TokenAutomaton.from_transitions([(0, 1, 1)], 0, [1], spellings=[b"", b" the"])
    other = TokenAutomaton.from_transitions([(0, 1, 1)], 0, [])
    assert str(spelled.equivalent(other)) == "[1] (␣the) is in the first language only"


# Counting, listing and sampling, against the list of all sequences.


class Chosen:
    """In place of a random generator: gives the number it is told to."""

    def __init__(self, number):
        self.number = number

    def randrange(self, stop):
        assert 0 <= self.number < stop
        return self.number


@examples(40)
@given(automaton_parts(nondeterministic=True))
def test_determinised_with_moves_that_read_nothing(given_parts):
    automaton = TokenAutomaton.from_transitions(*given_parts, SYMBOLS, determinise=True)
    assert language_of(automaton) == language(*given_parts)


@examples(40)
@given(automaton_parts())
def test_the_automaton_is_that_of_its_transitions(given_parts):
    automaton = TokenAutomaton.from_transitions(*given_parts, SYMBOLS)
    assert language_of(automaton) == language(*given_parts)
    assert [w for w in words() if automaton.accepts(w)] == language(*given_parts)
    listed = list(automaton.transitions())
    assert listed == sorted(set(listed))
    assert len(listed) == automaton.n_transitions
    assert all(automaton.step(p, a) == q for p, a, q in listed)
    assert automaton.step(automaton.start, 4) is None
    assert automaton.alphabet.tolist() == list(SYMBOLS)
    assert not automaton.accepts([2**70])


@examples(40)
@given(automata())
def test_counts_listings_and_whether_there_is_an_end(automaton):
    """A cycle on the way to acceptance of n states gives a sequence of n to 2n - 1 symbols."""
    n = automaton.n_states
    accepted = language_of(automaton, 2 * n - 1)
    for length in range(2 * n):
        assert automaton.count(length) == sum(len(w) == length for w in accepted)
        assert list(automaton.enumerate(max_length=length)) == [
            word for word in accepted if len(word) <= length
        ]
    assert automaton.shortest() == (accepted[0] if accepted else None)
    assert automaton.is_empty == (not accepted)
    assert automaton.is_finite == all(len(w) < n for w in accepted)
    if automaton.is_finite:
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


@examples(40)
@given(automata())
def test_each_random_number_gives_another_sequence(automaton):
    """So samples are exactly uniform, the generator's numbers being so."""
    if automaton.is_finite:
        numbers = range(automaton.total())
        assert sorted(automaton.sample_uniform(Chosen(k)) for k in numbers) == sorted(
            language_of(automaton)
        )
    for length in range(LONGEST):
        expected = [w for w in language_of(automaton) if len(w) == length]
        numbers = range(automaton.count(length))
        assert sorted(automaton.sample_uniform(Chosen(k), length) for k in numbers) == expected


def test_counts_are_exact_however_large():
    chain = [(k, a, k + 1) for k in range(100) for a in range(7)]
    automaton = TokenAutomaton.from_transitions(chain, 0, [0, 100])
    assert automaton.total() == 7**100 + 1
    assert len(automaton.sample_uniform(random.Random(0))) == 100
    loop = TokenAutomaton.from_transitions([(0, a, 0) for a in range(7)], 0, [0])
    assert loop.count(300) == 7**300
    assert len(loop.sample_uniform(random.Random(0), 300)) == 300


def test_no_sample_where_nothing_is_accepted():
    with pytest.raises(EmptyLanguageError):
        TokenAutomaton.from_transitions([], 0, []).sample_uniform(random.Random(0))
    with pytest.raises(EmptyLanguageError, match="of length 2"):
        TokenAutomaton.from_transitions([(0, 1, 1)], 0, [1]).sample_uniform(random.Random(0), 2)


def test_the_limit_ends_an_infinite_listing_at_once():
    listing = TokenAutomaton.from_transitions([(0, 1, 0), (0, 2, 1)], 0, [1]).enumerate(limit=3)
    assert [*islice(listing, 3)] == [(2,), (1, 2), (1, 1, 2)]
    with pytest.raises(BudgetExceededError):
        next(listing)
