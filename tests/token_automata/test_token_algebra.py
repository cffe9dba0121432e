"""Union, intersection, difference, complement; determinisation."""

from __future__ import annotations

import pytest
from brute import SYMBOLS, automata, language, of, parts, words
from budget import examples
from hypothesis import given

from bpe_automata import constrain
from bpe_automata.constructions.cartesian_merge import _BYTES_OF_ID
from bpe_automata.constructions.explicit import explore, explored
from bpe_automata.errors import BudgetExceededError
from bpe_automata.testing import byte_level, small_tokenizer
from bpe_automata.token_automata import TokenAutomaton


@examples(200)
@given(automata(), automata())
def test_operations_are_those_on_sets(one, other):
    a, b = set(of(one)), set(of(other))
    assert set(of(one.union(other))) == a | b
    assert set(of(one.intersection(other))) == a & b
    assert set(of(one.difference(other))) == a - b
    assert set(of(one.complement())) == set(words()) - a


@examples(200)
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


def test_complement_is_relative_to_the_alphabet():
    automaton = TokenAutomaton.from_transitions([(0, 3, 1)], 0, [1], alphabet=[3, 4])
    assert list(automaton.complement().enumerate(max_length=1)) == [(), (4,)]
    assert not automaton.complement().accepts([5])
    other = TokenAutomaton.from_transitions([], 0, [], alphabet=[7])
    assert automaton.union(other).alphabet.tolist() == [3, 4, 7]


def test_a_product_of_many_states_grows_as_it_must():
    """Cycles of 61 and 67: 4,087 pairs, more than the kernel starts with."""
    cycles = [
        TokenAutomaton.from_transitions([(k, 3, (k + 1) % n) for k in range(n)], 0, [0])
        for n in (61, 67)
    ]
    both = cycles[0].intersection(cycles[1])
    assert both.n_states == 61 * 67
    assert both.count(61 * 67) == 1
    assert both.count(61) == both.count(67) == 0


def test_operations_have_a_budget():
    loop = TokenAutomaton.from_transitions([(0, a, 0) for a in range(10)], 0, [0])
    assert loop.union(loop, max_edges=10).n_transitions == 10
    for act in (loop.union, loop.intersection):
        with pytest.raises(BudgetExceededError, match="9 edges"):
            act(loop, max_edges=9)
    assert loop.complement(max_edges=20).n_transitions == 20
    with pytest.raises(BudgetExceededError):
        loop.complement(max_edges=19)


@examples(200)
@given(parts(nondeterministic=True))
def test_determinised_with_moves_that_read_nothing(given_parts):
    automaton = TokenAutomaton.from_transitions(*given_parts, SYMBOLS, determinise=True)
    assert of(automaton) == language(*given_parts)


def test_the_message_over_a_budget_names_the_argument():
    loop = TokenAutomaton.from_transitions([(0, 1, 0)], 0, [0])
    with pytest.raises(BudgetExceededError, match="raise max_edges"):
        loop.union(loop, max_edges=0)
    tokenizer = small_tokenizer(["a", "b"], [], byte_level(), [])
    engine = constrain(tokenizer, "(ab)*").engine
    with pytest.raises(BudgetExceededError, match="raise max_edges"):
        explore(engine, engine.initial(), max_edges=1)


def test_the_memo_of_successors_counts_all_that_it_holds():
    engine = constrain(small_tokenizer(["a", "b"], [], byte_level(), []), "(ab)*").engine
    shown = explored(engine, engine.initial()).states
    leads = engine.leads(shown[0].place, shown[0].hypotheses)
    assert sum(column.itemsize for column in leads) == _BYTES_OF_ID
    assert leads.free.base is None
