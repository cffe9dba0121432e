"""Trimmed, minimal and equal automata."""

from __future__ import annotations

import random

from brute import SYMBOLS, automata, of, parts, words
from budget import examples
from hypothesis import given
from hypothesis import strategies as st

from bpe_automata.token_automata import Counterexample, TokenAutomaton


@examples(200)
@given(automata())
def test_relevant_states_by_definition(automaton):
    """Some sequence leads there, some leads on to acceptance; n symbols are enough for each."""
    walks = words(automaton.n_states)
    reached = {automaton.walk(word) for word in walks}
    for state in automaton.states():
        ends = any(
            automaton.accepting[end] for w in walks if (end := automaton.walk(w, state)) is not None
        )
        assert automaton.relevant()[state] == (state in reached and ends)


@examples(200)
@given(automata())
def test_trimmed_is_the_same_language_with_relevant_states_only(automaton):
    trimmed = automaton.trimmed()
    assert of(trimmed) == of(automaton)
    assert trimmed.relevant().all() or (automaton.is_empty and trimmed.n_states == 1)
    assert trimmed.n_states == max(1, int(automaton.relevant().sum()))


@examples(200)
@given(automata())
def test_minimised_has_one_state_for_each_myhill_nerode_class(automaton):
    """Classes of prefixes by what can follow them, all of at most n symbols."""
    walks = words(automaton.n_states)
    after = {tuple(v for v in walks if automaton.accepts((*u, *v))) for u in walks}
    minimal = automaton.minimised()
    assert minimal.n_states == max(1, len(after - {()}))
    assert of(minimal) == of(automaton)


@examples(200)
@given(parts(), st.randoms(use_true_random=False))
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


@examples(200)
@given(automata(), automata())
def test_a_counterexample_is_the_first_difference(one, other):
    """Automata of n and m states that differ do so on less than n + m symbols."""
    longest = one.n_states + other.n_states
    a, b = set(of(one, longest - 1)), set(of(other, longest - 1))
    first = min(a ^ b, key=lambda w: (len(w), w), default=None)
    expected = None if first is None else Counterexample(first, first in a)
    assert one.equivalent(other) == expected


def test_a_change_anywhere_is_found():
    """A chain of 300: each state in turn is made accepting."""
    chain = [(k, 3 + k % 2, k + 1) for k in range(300)]
    whole = TokenAutomaton.from_transitions(chain, 0, [300])
    for place in random.Random(0).sample(range(300), 20):
        found = whole.equivalent(TokenAutomaton.from_transitions(chain, 0, [300, place]))
        assert found == Counterexample(tuple(a for _, a, _ in chain[:place]), False)
    assert "second language only" in str(found)
    assert whole.minimised().n_states == 301
