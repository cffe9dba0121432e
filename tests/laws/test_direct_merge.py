"""DirectMerge, CartesianMerge twice and BPE itself, on small random merge tables and automata.

    L(DirectMerge) = L(CartesianMerge, reference) = L(CartesianMerge, fast) = BPE(L)
    Algorithm 3 = Algorithm 4 = rectangles

The tables hold merges of a token with itself, chains, several merges of one token, tokens that
nothing makes; the automata loops on the start and on accepting states.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support import examples
from support.drawn import automaton_parts

from bpe_automata import ByteDFA, Tokenizer
from bpe_automata._kernels.bits import members
from bpe_automata.canonical.geometry import Geometry
from bpe_automata.constructions.cartesian_merge import CartesianMerge
from bpe_automata.constructions.explicit import explore
from bpe_automata.errors import EmptyLanguageError, ImproperMergeTableError
from bpe_automata.reference import (
    CartesianProduct,
    TokenDFA,
    all_pairs,
    all_texts,
    bpe,
    direct_merge,
    explicit,
    lift,
    merge_pair,
    merge_ranks,
    merge_twin,
    product_mask,
    ranks_of,
    replay,
    spelled_in_symbols,
    symbol_dfa,
)
from bpe_automata.testing import byte_dfas, merge_tables, small_tokenizer
from bpe_automata.tokenizer.derivation import derive

SYMBOLS = ("a", "b", "c")
LONGEST = 6


@pytest.fixture(scope="module", autouse=True)
def _taken_as_they_are():
    """Each table is compared with others made of it; the texts that a tokenizer is tried on when
    it is loaded, which is what takes longest, say nothing more here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bpe_automata.tokenizer.tokenizer.check_decoding", lambda tokenizer: None)
        yield


@dataclass(frozen=True)
class Case:
    """A merge table as every construction wants it."""

    tokenizer: Tokenizer

    @cached_property
    def merges(self):
        """Each pair once, in order of the rank that encoders give it."""
        ranks = merge_ranks(self.tokenizer.description).items()
        by_rank = sorted((rank, *pair, made) for pair, (rank, made) in ranks)
        return [tuple(merge) for _, *merge in by_rank]

    @cached_property
    def base(self):
        return [*self.tokenizer.description.base.values()]

    @cached_property
    def spelled(self):
        return spelled_in_symbols(self.base, self.merges)

    @cached_property
    def size(self):
        return {token: len(symbols) for token, symbols in self.spelled.items()}

    @cached_property
    def ranks(self):
        return ranks_of(self.merges)

    @property
    def proper(self):
        return not derive(self.tokenizer.description).late.any()

    def symbols_of(self, dfa: ByteDFA) -> TokenDFA:
        return symbol_dfa(self.tokenizer.description, dfa)


@st.composite
def tables(draw, shuffled=False):
    """Any table over one to three symbols."""
    symbols = SYMBOLS[: draw(st.integers(1, len(SYMBOLS)))]
    table = draw(merge_tables(symbols, shuffled=shuffled))
    return Case(small_tokenizer(table.vocabulary, table.merges))


proper_tables = tables().filter(lambda case: case.proper)


def shown(case, dfa):
    return f"merges {case.merges}, {[*dfa.transitions()]}, start {dfa.start}, {dfa.accepting}"


# ---------------------------------------------------------------- DirectMerge


def token_dfas(*tokens):
    return automaton_parts(symbols=tokens).map(lambda parts: TokenDFA.of(*parts))


def check_consistent(dfa):
    """Deterministic (each token leads to one state, by construction), its three tables agree, and
    every state is relevant."""
    listed = set(dfa.transitions())
    back = {(s, t, q) for q, row in dfa.into.items() for t, from_ in row.items() for s in from_}
    assert listed == back
    assert {(s, t) for s, t, _ in listed} == {
        (s, t) for t, from_ in dfa.readers.items() for s in from_
    }
    assert dfa.states() - {dfa.start} == dfa.relevant() - {dfa.start}


@examples(100)
@given(token_dfas(0, 1, 2))
def test_algorithm_1_replaces_each_pair(dfa):
    """L(after) = L(before) with each a b replaced by ab."""
    before = dfa.sequences(LONGEST)
    changed = merge_pair(dfa, 0, 1, 9)
    check_consistent(dfa)
    size = {0: 1, 1: 1, 2: 1, 9: 2}
    assert dfa.sequences(LONGEST, size) == {tuple(replay(w, [(0, 1, 9)])) for w in before}
    assert changed or not any((0, 1) in pairwise(w) for w in before)


@examples(100)
@given(token_dfas(0, 1))
def test_algorithm_2_replaces_each_double_from_the_left(dfa):
    before = dfa.sequences(LONGEST + 2)
    merge_twin(dfa, 0, 9)
    check_consistent(dfa)
    size = {0: 1, 1: 1, 9: 2}
    assert dfa.sequences(LONGEST + 2, size) == {tuple(replay(w, [(0, 0, 9)])) for w in before}


@examples(100)
@given(proper_tables, byte_dfas(SYMBOLS))
def test_direct_merge_is_the_tokenization_of_the_language(case, language):
    symbols = case.symbols_of(language)
    merged = direct_merge(symbols, case.merges)
    event("empty" if not merged.accepting else "not empty")
    expected = {tuple(bpe(w, case.ranks)) for w in symbols.sequences(LONGEST)}
    assert merged.sequences(LONGEST, case.size) == expected, shown(case, symbols)


# ---------------------------------------------------------------- CartesianMerge


@examples(75)
@given(proper_tables, byte_dfas(SYMBOLS))
def test_direct_merge_is_the_reference_cartesian_merge(case, language):
    symbols = case.symbols_of(language)
    merged = explicit(direct_merge(symbols, case.merges))
    texts = all_texts(case.base, case.merges)
    for table in (texts, texts.fused()):
        product = CartesianProduct(lift(symbols, case.spelled), table)
        check_consistent(product.automaton())
        assert merged.equivalent(explicit(product.automaton())) is None, shown(case, symbols)


@examples(75)
@given(proper_tables, byte_dfas(SYMBOLS))
def test_direct_merge_is_the_fast_cartesian_merge(case, language):
    symbols = case.symbols_of(language)
    merged = explicit(direct_merge(symbols, case.merges))
    try:
        engine = CartesianMerge(case.tokenizer, language)
        fast = explore(engine, engine.initial())
    except EmptyLanguageError:
        assert merged.is_empty
        return
    assert merged.equivalent(fast) is None, shown(case, symbols)
    assert merged.minimised().n_states == fast.minimised().n_states


@examples(100)
@given(proper_tables, byte_dfas(SYMBOLS))
def test_masks_of_the_product_are_those_of_the_fast_one(case, language):
    """Algorithm 6, at every pair of states within reach."""
    product = CartesianProduct(
        lift(case.symbols_of(language), case.spelled), all_texts(case.base, case.merges)
    )
    try:
        engine = CartesianMerge(case.tokenizer, language)
        todo = [(product.start, engine.initial())]
    except EmptyLanguageError:
        assert product.start not in product.relevant
        return
    seen = set(todo)
    while todo:
        pair, state = todo.pop()
        mask = product_mask(product, pair)
        assert mask == {*members(engine.mask(state)).tolist()}
        for token in mask:
            both = (product.step(pair, token), engine.step(state, token))
            if both not in seen:
                seen.add(both)
                todo.append(both)


# ---------------------------------------------------------------- all texts


@examples(75)
@given(proper_tables)
def test_algorithm_3_is_algorithm_4_is_the_rectangles(case):
    texts = all_texts(case.base, case.merges)
    pairs = all_pairs(case.spelled, case.ranks)
    derivation = derive(case.tokenizer.description)
    geometry = Geometry(derivation)
    assert (
        set(texts.delta)
        == set(pairs)
        == {*np.flatnonzero(derivation.reachable).tolist()} & {*case.spelled}
    )
    for table in (texts, texts.fused()):
        for left, forbidden in pairs.items():
            assert table.forbidden[table.delta[left]] & set(pairs) == forbidden
            assert forbidden == {
                right for right in pairs if geometry.breaking_merge(left, right) >= 0
            }


@examples(100)
@given(proper_tables)
def test_algorithm_3_is_direct_merge_of_all_texts(case):
    loops = TokenDFA.of([(0, symbol, 0) for symbol in case.base], 0, [0])
    merged = explicit(direct_merge(loops, case.merges))
    texts = all_texts(case.base, case.merges)
    assert merged.equivalent(explicit(texts.automaton())) is None
    assert merged.equivalent(explicit(texts.fused().automaton())) is None


# ---------------------------------------------------------------- improper tables


@examples(100)
@given(tables(shuffled=True), st.data())
def test_rule_order_replay_is_min_rank_exactly_on_the_proper_tables(case, data):
    """On an improper table some token's own bytes show the difference."""
    words = case.spelled.values()
    differ = [w for w in words if replay(w, case.merges) != bpe(w, case.ranks)]
    assert bool(differ) == (not case.proper)
    word = data.draw(st.lists(st.sampled_from(case.base), max_size=10))
    if case.proper:
        assert replay(word, case.merges) == bpe(word, case.ranks)


def test_two_merges_that_both_make_a_token_are_refused():
    """b c, then a bc, and a b, then ab c: on the automaton of abc the second one finds abc made."""
    with pytest.raises(ImproperMergeTableError, match="token 5"):
        all_texts([0, 1, 2], [(0, 1, 5), (1, 2, 5)])
    dfa = TokenDFA.of([(0, 0, 1), (1, 1, 2), (0, 1, 3), (3, 2, 4)], 0, [2, 4])
    with pytest.raises(ImproperMergeTableError, match="the merge of 1 and 2 makes 5"):
        direct_merge(dfa, [(0, 1, 5), (1, 2, 5)])
