"""The engine of `_core`: its masks are those of the trie of `encode`, and those of the engine that
it is to replace; slices change nothing; a search that is interrupted answers the same."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from bpe_automata import Tokenizer, compile_regex, constrain
from bpe_automata._automata.linked_regex import link_regex
from bpe_automata._constructions.canonical import canonical_automaton
from bpe_automata._core import product
from bpe_automata._core.cartesian_merge import CartesianMerge
from bpe_automata._kernels.bits import members
from bpe_automata.errors import (
    BudgetExceededError,
    EmptyLanguageError,
    MissingDependencyError,
    PromptError,
    UnsupportedFeatureError,
)
from bpe_automata.reference import canonical_trie, compare
from bpe_automata.testing import REFUSALS, cyclic_regexes, finite_regexes, tokenizer_files
from bpe_automata.testing._inputs import own_pieces

STRINGS, IDS = 300, 12
LANGUAGES = (
    r'"([^"\\\x00-\x1f]|\\["\\/bfnrt]){0,200}",',
    r".{0,300}\n",
    r"[a-z]{30}(ing)?",
    r"\w+( \w+)*[.!]",
    r"<[a-z|_]+>( <x>)?",
    r"[一-龥。，]{3,40}",
    r"\d{4}-\d{2}-\d{2}",
    r"\s*(def|class) [a-z_]+\(\):\n( {4}[a-z ]+\n)+",
)


def read(content):
    """The tokenizer, None if it is refused."""
    try:
        tokenizer = Tokenizer.from_json(content)
        canonical_automaton(tokenizer)
    except REFUSALS:
        return None
    return tokenizer


def begun(engine, prefix=()):
    """The first state, or the class of the error."""
    try:
        return engine.initial(prefix)
    except (EmptyLanguageError, PromptError) as error:
        return type(error)


def same_walk(one, other, seed, prefix=(), steps=IDS):
    """Compare masks along one walk that they choose; returns how many. Every third id is one of the
    64 lowest, among which those of single bytes are."""
    rng, state, twin = random.Random(seed), begun(one, prefix), begun(other, prefix)
    if isinstance(state, type) or isinstance(twin, type):
        assert state is twin
        return 0
    for n in range(steps):
        mask = one.mask(state)
        np.testing.assert_array_equal(mask, other.mask(twin))
        assert one.accepting(state) == other.accepting(twin)
        ids = np.setdiff1d(members(mask), one.eos_ids)
        if not len(ids):
            return n + 1
        token = int(rng.choice(ids[:64] if n % 3 == 0 else ids))
        (state,), twin = one.steps(state, np.array([token])), other.step(twin, token)
    return steps


def examples(config, few):
    """Settings of Hypothesis. A tokenizer takes minutes to shrink, and is small as it is."""
    phases = (Phase.explicit, Phase.reuse, Phase.generate)
    n = 20 * few if config.getoption("--long") else few
    checks = list(HealthCheck)
    return settings(max_examples=n, phases=phases, suppress_health_check=checks, deadline=None)


def test_masks_of_trained_tokenizers(request):
    compared = [0, 0]

    @examples(request.config, 16)
    @given(st.data(), tokenizer_files())
    def law(data, content):
        tokenizer = read(content)
        if tokenizer is None:
            return
        drawn = st.lists(st.sampled_from(own_pieces(tokenizer)), min_size=2, max_size=5)
        pieces = data.draw(drawn)
        prefix = tokenizer.encode("".join(data.draw(drawn)))
        prefix = prefix[: data.draw(st.integers(0, len(prefix)))]
        compared[0] += as_the_trie(tokenizer, data.draw(finite_regexes(pieces)), prefix)
        regex, seed = data.draw(cyclic_regexes(pieces)), data.draw(st.integers(0, 100))
        compared[1] += as_before(tokenizer, regex, seed, prefix)

    law()
    assert min(compared) > 20


def as_the_trie(tokenizer, regex, prefix):
    """How many masks were compared with the trie of `encode` over all strings."""
    try:
        dfa = compile_regex(regex)
        strings = [string.decode() for string in dfa.strings(STRINGS)]
    except BudgetExceededError:
        return 0
    trie = canonical_trie(tokenizer, strings, prefix, ())
    engine = CartesianMerge(tokenizer, dfa, (), True)
    state = begun(engine, prefix)
    if isinstance(state, type):
        assert not trie, f"{regex!r} after {prefix} was said to be impossible"
        return 0
    results = list(compare(engine, state, trie))
    assert [wrong for wrong in results if wrong] == [], f"{regex!r} after {prefix}"
    return len(results)


def as_before(tokenizer, regex, seed, prefix):
    """How many masks were compared with those of the engine before, of the explicit automaton and
    of a linked one."""
    try:
        automata = compile_regex(regex), link_regex(regex)
        engines = [CartesianMerge(tokenizer, automaton, (), True) for automaton in automata]
        other = constrain(tokenizer, automata[0], eos_ids=(), added_tokens=True).engine
    except (BudgetExceededError, EmptyLanguageError, UnsupportedFeatureError):
        return 0
    return sum(same_walk(engine, other, seed, prefix) for engine in engines)


@pytest.fixture(params=["smollm2", "qwen"], scope="module")
def tokenizer(request):
    try:
        return Tokenizer.load(request.param)
    except MissingDependencyError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("regex", LANGUAGES)
def test_masks_of_deployed_tokenizers_are_those_of_the_engine_before(tokenizer, regex):
    other = constrain(tokenizer, regex).engine
    one = CartesianMerge(tokenizer, other.dfa, tokenizer.eos_ids)
    if one.prefixed.dfa is not other.dfa:
        one = CartesianMerge(tokenizer, compile_regex(regex), tokenizer.eos_ids)
    assert same_walk(one, other, 1, steps=8) > 0


def test_slices_change_nothing_and_neither_do_interruptions(monkeypatch):
    tokenizer = Tokenizer.load("smollm2")
    dfa = compile_regex(LANGUAGES[0])
    whole = CartesianMerge(tokenizer, dfa)
    whole.product._sliced = False
    sliced = CartesianMerge(tokenizer, dfa)
    assert sliced.product._slice(sliced.dfa.walk(b'"')) is not None
    monkeypatch.setattr(product, "_QUOTA", 1)
    interrupted = CartesianMerge(tokenizer, dfa)
    for seed in range(2):
        assert same_walk(sliced, whole, seed) > 2
        assert same_walk(interrupted, whole, seed) > 2
