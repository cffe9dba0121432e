"""Relevance where nothing ends a pretoken: texts say what leads on, and never say too much."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tokenizers
from hypothesis import assume, event, given
from hypothesis import strategies as st
from support import examples, named

from bpe_automata import Tokenizer, compile_regex
from bpe_automata._constructions.cartesian_merge import CartesianMerge
from bpe_automata._constructions.explicit import explored
from bpe_automata._kernels.bits import members
from bpe_automata._kernels.fixed_set import NONE
from bpe_automata._kernels.product import ALIVE, PARTLY
from bpe_automata.errors import (
    BudgetExceededError,
    EmptyLanguageError,
    ImproperMergeTableError,
)
from bpe_automata.reference import (
    CartesianProduct,
    all_texts,
    lift,
    merges_in_order,
    product_mask,
    spelled_in_symbols,
    symbol_dfa,
)
from bpe_automata.testing import bpe_tokenizers, byte_dfas, finite_regexes, small_tokenizer
from bpe_automata.testing._inputs import own_pieces
from bpe_automata.testing._small import merge_tables
from experiments.article.configurations import Where, all_configurations, settle

MOST = 300  # pairs of one product
OBJECT = r'\{"name":"[^"\\\x00-\x1f]*","age":-?[0-9]+,"tags":\[("[a-z]{1,3}"(,"[a-z]{1,3}")*)?\]\}'


def product_of(tokenizer, dfa):
    """The plain product, of tables that can be replayed."""
    try:
        merges = merges_in_order(tokenizer.description)
    except ImproperMergeTableError:
        assume(False)
    base = tokenizer.description.base.values()
    spelled = spelled_in_symbols([*base], merges)
    lifted = lift(symbol_dfa(tokenizer.description, dfa), spelled)
    return CartesianProduct(lifted, all_texts(base, merges).fused())


def check_masks(engine, product):
    """Every mask of the engine against the plain one, at pairs of states that go together."""
    todo, seen = [(engine.initial(), product.start)], set()
    while todo and len(seen) < MOST:
        state, pair = todo.pop()
        if (state, pair) in seen:
            continue
        seen.add((state, pair))
        ids = members(engine.mask(state)).tolist()
        assert {*ids} == product_mask(product, pair)
        todo += [(engine.step(state, i), product.step(pair, i)) for i in ids]
    return len(seen)


@examples(25)
@given(merge_tables(), byte_dfas())
def test_masks_are_those_of_the_plain_algorithms(table, dfa):
    tokenizer = small_tokenizer(table.vocabulary, table.merges)
    engine = CartesianMerge(tokenizer, dfa)
    assert engine._tables._product.fixed_set.number != NONE
    try:
        engine.initial()
    except EmptyLanguageError:
        assume(False)
    check_masks(engine, product_of(tokenizer, dfa))
    event(f"partly: {(engine._tables.memo.status == PARTLY).any()}")


@examples(25)
@given(merge_tables(), byte_dfas())
def test_where_a_configuration_is_alive_no_id_is_dead(table, dfa):
    """ALIVE is said by a few texts; the plain product has a relevant pair for every last id."""
    tokenizer = small_tokenizer(table.vocabulary, table.merges)
    tables = CartesianMerge(tokenizer, dfa)._tables
    fixed_set, product = tables._product.fixed_set.number, product_of(tokenizer, dfa)
    states = np.arange(1, dfa.n_states, dtype=np.int64)
    status = tables.statuses(states, np.full(len(states), fixed_set))
    for state in states[status == ALIVE].tolist():
        for last, text in product.texts.delta.items():
            in_lift = state in product.lifted.states()  # on a path from the start to acceptance
            assert not in_lift or relevant_from(product, state, text), (state, last)


def relevant_from(product, state, text):
    """Does some path lead from a pair to acceptance?"""
    todo, seen = [(state, text)], set()
    while todo:
        pair = todo.pop()
        if pair[0] in product.lifted.accepting:
            return True
        if pair not in seen and pair[0] in product.lifted.out:
            seen.add(pair)
            todo += [target for _, target in product.readable(pair)]
    return False


@examples(15)
@given(st.data())
def test_every_visited_configuration_is_among_all(data):
    tokenizer = data.draw(bpe_tokenizers())
    regex = data.draw(finite_regexes(own_pieces(tokenizer)))
    engine = CartesianMerge(tokenizer, compile_regex(regex))
    try:
        states = explored(engine, engine.initial(), 20_000).states
    except (EmptyLanguageError, BudgetExceededError):
        assume(False)
    memo = engine._tables.memo
    visited = {Where(int(memo.state[p]), int(memo.text_state[p]), h) for p, h, _ in states}
    fresh = CartesianMerge(tokenizer, compile_regex(regex))
    configurations = all_configurations(fresh, fresh.initial())
    assert visited <= {*configurations}
    assert len({*configurations}) == len(configurations)


@pytest.fixture(scope="module")
def mistral():
    return named("mistral-v1")


def test_few_configurations_of_an_object_need_a_search(mistral):
    """Inside strings and numbers texts settle everything; what is dead is dead inside keys."""
    engine = CartesianMerge(mistral, compile_regex(OBJECT))
    configurations = all_configurations(engine, engine.initial())
    fresh = CartesianMerge(mistral, compile_regex(OBJECT))
    assert 0 < settle(fresh, configurations) < 40 < 400 < len(configurations)
    assert int(fresh.tables.settled.n[0]) < 60


def test_a_character_in_byte_tokens_is_completed_at_once(mistral):
    """A byte token merges with nothing, so no configuration inside a character has anything
    dead."""
    engine = CartesianMerge(mistral, compile_regex(r'"[一-龯]{1,3}"'))
    configurations = [
        n
        for n in all_configurations(engine, engine.initial())
        if engine.canonical.sets.sets[n.hypotheses].utf8_row
    ]
    assert configurations
    assert settle(engine, configurations) == 0


def test_settling_all_changes_no_mask(mistral):
    lazy, eager = (CartesianMerge(mistral, compile_regex(OBJECT)) for _ in range(2))
    settle(eager, all_configurations(eager, eager.initial()))
    here, there = lazy.initial(), eager.initial()
    for token in mistral.encode('{"name":"Zoë 日","age":31,"tags":["ab","c"]}'):
        assert (lazy.mask(here) == eager.mask(there)).all()
        here, there = lazy.step(here, token), eager.step(there, token)
    assert lazy.accepting(here)
    assert eager.accepting(there)


@pytest.fixture(scope="module")
def with_added_tokens():
    """BPE without a pretokenizer, and added tokens that a text may begin to spell, but not end."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=60, min_frequency=1, show_progress=False, special_tokens=["[end]", "anna"]
    )
    tokenizer.decoder = tokenizers.decoders.Fuse()
    corpus = ["banana [anna] and an ant names mannequins [e] [en]"] * 2
    tokenizer.train_from_iterator(corpus, trainer)
    return Tokenizer.from_json(json.loads(tokenizer.to_str()))


@pytest.mark.parametrize(
    "regex", [r"[a-z\[\] ]*", r"\[[a-n]{2,6}\]?", "(an|nn|a|banan)*t?", r"\[(end\]|a)"]
)
def test_texts_speak_for_configurations_inside_a_spelled_added_token(with_added_tokens, regex):
    """Between `[en` and `d]` the text automaton is not in its first state. Where ALIVE is said, a
    search without the texts finds nothing dead either."""
    dfa = compile_regex(regex)
    engine, plain = (CartesianMerge(with_added_tokens, dfa) for _ in range(2))
    explored(engine, engine.initial(), 20_000)
    tables, searching = engine.tables, plain.tables
    fixed_set = tables.fixed_set
    searching._product = searching._product._replace(
        fixed_set=searching._product.fixed_set._replace(number=NONE)
    )
    n, inside = int(tables.memo.n_state_pairs[0]), 0
    for state_pair in range(1, n):
        state, text = int(tables.memo.state[state_pair]), int(tables.memo.text_state[state_pair])
        here = np.array([state_pair]), np.array([searching.state_pair(state, text)])
        status = [
            int(t.statuses(p, np.array([fixed_set]))[0])
            for t, p in zip((tables, searching), here, strict=True)
        ]
        if status[0] == ALIVE:
            assert status[1] == ALIVE or plain.relevance.dead((int(here[1][0]), fixed_set)) is None
            inside += text != 0
        else:
            assert status[0] == status[1]
    assert inside > 0
