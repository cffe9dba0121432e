"""The article's own examples (Tran-Thien 2024), and its Algorithm 3 on the Mistral-7B table."""

import random
from dataclasses import replace

import numpy as np
import pytest
from support import named

from bpe_automata import compile_regex, constrain
from bpe_automata._kernels.bits import members
from bpe_automata.canonical.geometry import Geometry
from bpe_automata.constructions.explicit import explore
from bpe_automata.reference import (
    CartesianProduct,
    TokenDFA,
    all_texts,
    direct_merge,
    explicit,
    lift,
    merges_in_order,
    replay,
    spelled_in_symbols,
    symbol_dfa,
)
from bpe_automata.testing import small_tokenizer
from bpe_automata.tokenizer.derivation import derive


@pytest.fixture(scope="module")
def mistral():
    return named("mistral-v1")


@pytest.fixture(scope="module")
def merges(mistral):
    return merges_in_order(mistral.description)


# ---------------------------------------------------------------- the toy tables


def test_the_table_ab_aa_ac():
    tokenizer = small_tokenizer(
        ["a", "b", "c", "ab", "aa", "ac"], [("a", "b"), ("a", "a"), ("a", "c")]
    )
    ids = tokenizer.encode("aaaabaacac")
    assert [tokenizer.decode([i]) for i in ids] == ["aa", "a", "ab", "aa", "c", "ac"]
    assert replay([0, 0, 0, 0, 1, 0, 0, 2, 0, 2], merges_in_order(tokenizer.description)) == ids
    texts = all_texts([0, 1, 2], merges_in_order(tokenizer.description)).fused()
    assert len(texts.forbidden) == 3
    a, aa = texts.forbidden[texts.delta[0]], texts.forbidden[texts.delta[4]]
    assert {0, 1, 2, 3, 4, 5} - a == {3}, "after a only ab"
    assert aa == {1}, "after aa anything but b"


def test_a_star_b_star():
    """The automaton of characters, that of tokens, and the masks of both kinds."""
    tokenizer = small_tokenizer(["a", "b", "aa", "ab", "bb"], [("a", "b"), ("a", "a"), ("b", "b")])
    characters = compile_regex("a*b*")
    assert characters.n_states - 1 == 2
    assert characters.accepting[1:].all()
    everything = constrain(tokenizer, characters, method="lift")
    a, b, aa, ab, bb = range(5)
    lifted = explore(everything.engine, everything.engine.initial())
    assert [*lifted.transitions()] == [
        (0, a, 0), (0, b, 1), (0, aa, 0), (0, ab, 1), (0, bb, 1), (1, b, 1), (1, bb, 1)
    ]  # fmt: skip
    canonical = constrain(tokenizer, characters).automaton().minimised()
    assert {*canonical.transitions()} == {
        *[(0, a, 1), (0, b, 2), (0, aa, 3), (0, ab, 4), (0, bb, 4)],
        *[(1, ab, 4), (3, a, 1), (3, aa, 3), (3, ab, 4), (4, b, 2), (4, bb, 4)],
    }
    assert canonical.accepting.all()
    own = constrain(tokenizer, characters, method="canonical").matcher()
    assert set(own.allowed_ids()) == {a, b, aa, ab, bb}
    own.advance(a)
    assert set(own.allowed_ids()) == {ab}, "a b is ab, a aa is aa a, a bb is ab b, but a ab stays"
    own.advance(ab)
    assert set(own.allowed_ids()) == {b, bb}
    own.advance(b)
    assert set(own.allowed_ids()) == set()
    assert own.is_accepting


# ---------------------------------------------------------------- the Mistral-7B table


@pytest.mark.parametrize("k", [1, 4, 16, 64, 128])
def test_direct_merge_of_all_texts_is_algorithm_3(mistral, merges, k):
    """On growing prefixes of the table; `python -m experiments table2` says how far it goes."""
    base = [*mistral.description.base.values()]
    merged = explicit(direct_merge(TokenDFA.of([(0, s, 0) for s in base], 0, [0]), merges[:k]))
    texts = all_texts(base, merges[:k])
    assert len(texts.delta) > len(base)
    assert merged.equivalent(explicit(texts.fused().automaton())) is None


WHOLE = pytest.param(None, None, marks=pytest.mark.long)


@pytest.mark.parametrize(("n", "sample"), [(3000, 300), WHOLE])
def test_algorithm_3_is_the_rectangles(mistral, merges, n, sample):
    """What may not follow a token, for tokens that the first n merges make."""
    listed, whole = merges[:n], mistral.description
    texts = all_texts(whole.base.values(), listed)
    tied = whole.tied[: len(listed)]
    geometry = Geometry(derive(replace(whole, merges=np.array(listed, dtype=np.int32), tied=tied)))
    made = set(texts.delta)
    for left in made if sample is None else random.Random(3).sample(sorted(made), sample):
        allowed = np.full(geometry.n_words, -1, dtype=np.int32)
        geometry.clear_followers(left, allowed)
        forbidden = made - set(members(allowed).tolist())
        assert texts.forbidden[texts.delta[left]] == forbidden, mistral.token_bytes(left)


def test_the_product_is_direct_merge_on_the_mistral_table(mistral, merges):
    base = [*mistral.description.base.values()]
    spelled = spelled_in_symbols(base, merges)
    texts = all_texts(base, merges[:400])
    spelled = {token: spelled[token] for token in texts.delta}
    for regex in ("[ a-c]{0,3}", "(the |in|on|at){1,3}", r"\{(at|re)*\}"):
        symbols = symbol_dfa(mistral.description, compile_regex(regex))
        product = CartesianProduct(lift(symbols, spelled), texts).automaton()
        merged = direct_merge(symbols, merges[:400])
        assert explicit(merged).equivalent(explicit(product)) is None
