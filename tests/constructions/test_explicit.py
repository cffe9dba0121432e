"""The explicit automaton of an engine is the one that single steps walk through."""

from __future__ import annotations

import random

import numpy as np
import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st

from bpe_automata import compile_regex, constrain
from bpe_automata.constructions import explore, explored
from bpe_automata.errors import BudgetExceededError, EmptyLanguageError
from bpe_automata.kernels.bits import members
from bpe_automata.testing import bpe_tokenizers, cyclic_regexes, small_tokenizer
from bpe_automata.testing.inputs import own_pieces

METHODS = ("lift", "canonical")


def by_steps(engine, state, most):
    """(states, transitions, accepting), one id at a time."""
    states, found = [state], []
    for source, here in enumerate(states):
        for token in members(engine.mask(here)).tolist():
            if token not in engine.eos_ids:
                after = engine.step(here, token)
                if after not in states:
                    states.append(after)
                found.append((source, token, states.index(after)))
        if len(found) > most:
            raise BudgetExceededError("edges", most, "too many")
    return states, found, [engine.accepting(here) for here in states]


@examples(60)
@given(st.data(), st.sampled_from(METHODS))
def test_explored_is_what_single_steps_find(data, method):
    tokenizer = data.draw(bpe_tokenizers())
    regex = data.draw(cyclic_regexes(own_pieces(tokenizer)))
    added = [token.id for token in tokenizer.description.added]
    eos = tuple(added[:1]) if data.draw(st.booleans()) else ()
    try:
        engine = constrain(tokenizer, regex, method=method, eos_ids=eos).engine
        initial = engine.initial()
        states, transitions, accepting = by_steps(engine, initial, 2000)
    except (BudgetExceededError, EmptyLanguageError):
        return
    found = explored(engine, initial)
    assert list(found.states) == states
    assert list(map(type, found.states)) == list(map(type, states))
    automaton = found.automaton
    assert list(automaton.transitions()) == transitions
    assert automaton.accepting.tolist() == accepting
    assert automaton.start == 0
    assert automaton.relevant().all()
    assert automaton.spellings == tokenizer.spellings
    assert automaton.alphabet.tolist() == [i for i in range(tokenizer.n_ids) if i not in eos]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("regex", ["(a|yb)*", "(a<x>a| a)*|yb?"])
def test_with_a_space_before_each_piece(method, regex):
    """Where added tokens are read from other states than ordinary ones."""
    space = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    vocabulary, merges = ["▁", "a", "▁a", "b", "<", "x", ">"], [("▁", "a")]
    tokenizer = small_tokenizer(vocabulary, merges, space, ["<x>", "y"], None, space)
    engine = constrain(tokenizer, regex, method=method).engine
    states, transitions, accepting = by_steps(engine, engine.initial(), 2000)
    found = explored(engine, engine.initial())
    assert found.states == tuple(states)
    assert list(found.automaton.transitions()) == transitions
    assert found.automaton.accepting.tolist() == accepting
    assert len(states) > 2


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "regex",
    [
        r'\{"name": "[a-z]{1,3}"\}',
        r"\s+\S{1,2}(\n\s*)?",
        r"(é|日本|😀|\u0301)+",
        r"a(<\|im_end\|>| <\|im_start\|>)*b?",
        r"(<\|im_e[a-z]{1,2}\|?)+",
    ],
)
def test_many_steps_are_many_single_steps_on_smollm2(smollm2_tokenizer, method, regex):
    engine = constrain(smollm2_tokenizer, regex, method=method).engine
    rng, here = random.Random(0), engine.initial()
    for _ in range(80):
        tokens = members(engine.mask(here))
        tokens = tokens[~np.isin(tokens, engine.eos_ids)]
        after = engine.steps(here, tokens)
        assert len(after) == len(tokens)
        for k in rng.sample(range(len(tokens)), min(200, len(tokens))):
            assert after[k] == engine.step(here, int(tokens[k]))
        here = rng.choice(after) if after else engine.initial()


def test_the_budget():
    tokenizer = small_tokenizer(["a", "b"], [])
    engine = constrain(tokenizer, compile_regex("[ab]{3}")).engine
    automaton = explore(engine, engine.initial(), max_edges=1000)
    assert explore(engine, engine.initial(), automaton.n_transitions).identical(automaton)
    with pytest.raises(BudgetExceededError):
        explore(engine, engine.initial(), automaton.n_transitions - 1)
