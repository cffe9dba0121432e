"""Adaptive rejection: the id has the distribution under the mask, and the mass estimate is unbiased
given it, by going through every order in which ids can be drawn."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, permutations

import numpy as np
import pytest
from exact_distribution import TableModel, constraint_of

from bpe_automata.constructions import Lift
from bpe_automata.errors import ArgumentError
from bpe_automata.models import NGramModel, character_tokenizer
from bpe_automata.reference import Naive, naive_constraint
from bpe_automata.sampling import adaptive, decode
from bpe_automata.sampling.rejection import first_allowed, without_replacement

DISTRIBUTIONS = [
    np.array([0.5, 0.25, 0.125, 0.125]),
    np.array([0.4, 0.0, 0.3, 0.1]),  # padding has the rest
    np.array([0.9, 0.05, 0.03, 0.015, 0.005]),
]


def orders(distribution):
    """(order, its probability) of every draw without replacement."""
    ids = np.flatnonzero(distribution).tolist()
    for order in permutations(ids):
        p, left = 1.0, distribution[ids].sum()
        for token in order:
            p, left = p * distribution[token] / left, left - distribution[token]
        yield order, p


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("accepts", [1, 2, 3])
def test_the_estimate_is_unbiased_given_the_id(distribution, accepts):
    """E[M 1{id = a}] = p(a) for every allowed a, every set of allowed ids: M is a proper weight."""
    ids = range(len(distribution))
    for allowed in (set(s) for k in range(len(distribution) + 1) for s in combinations(ids, k)):
        mean = np.zeros(len(distribution))
        for order, p in orders(distribution):
            found = first_allowed(distribution, iter(order), allowed.__contains__, accepts)
            assert (found.token is None) == (found.mass == 0)
            assert found.mass <= distribution.sum() + 1e-12
            if found.token is not None:
                assert found.token == next(i for i in order if i in allowed)
                mean[found.token] += p * found.mass
        expected = [distribution[i] if i in allowed else 0.0 for i in ids]
        np.testing.assert_allclose(mean, expected, atol=1e-12)


def test_more_accepted_ids_make_it_less_noisy():
    distribution, allowed = DISTRIBUTIONS[0], {0, 2, 3}

    def second_moment(accepts):
        runs = (
            (first_allowed(distribution, iter(o), allowed.__contains__, accepts), p)
            for o, p in orders(distribution)
        )
        return sum(p * found.mass**2 for found, p in runs)

    moments = [second_moment(accepts) for accepts in (1, 2, 3, 4)]
    assert moments[0] > moments[1] > moments[2] >= moments[3]
    assert moments[3] == pytest.approx(0.75**2)  # all ids were tried: exact


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_draws_without_replacement_have_their_law(distribution):
    rng, n, counts = np.random.default_rng(1), 5_000, Counter()
    for _ in range(n):
        counts[tuple(without_replacement(distribution, rng))] += 1
    expected = dict(orders(distribution))
    assert set(counts) <= set(expected)
    for order, p in expected.items():
        # 4.5 standard errors; the 4 is for what is expected less than once
        assert abs(counts[order] - n * p) <= 4.5 * np.sqrt(n * p * (1 - p)) + 4


def test_a_uniform_number_near_one_draws_an_id_that_has_mass():
    class AlmostOne:
        def random(self):
            return 1 - 2**-53

    assert list(without_replacement(np.array([0.1, 0.2, 0.0, 0.0]), AlmostOne())) == [1, 0]


@pytest.mark.parametrize("engine", [Naive, Lift])
def test_no_mask_is_computed(engine, monkeypatch):
    tokenizer = character_tokenizer("abcdefghijklmnopqrstuvwxyz ")
    model = NGramModel.train(tokenizer, ["a cat", "a dog sat", "the cat sat"], order=3)
    regex = r"(a|the) [a-z]{3}( sat)?"
    constraint = naive_constraint(tokenizer, regex)
    if engine is Lift:
        constraint = constraint_of("lift", (), "a").__class__(
            tokenizer, constraint.dfa, "lift", Lift(tokenizer, constraint.dfa, tokenizer.eos_ids)
        )

    def no_mask(self, state):
        raise RuntimeError("a mask was computed")

    monkeypatch.setattr(engine, "mask", no_mask)
    found = adaptive(model, constraint, n=20, seed=0)
    assert all(generation.complete for generation in found.generations)
    assert found.passes == sum(generation.passes for generation in found.generations)
    assert 2 * found.passes <= found.tested < 0.5 * found.passes * tokenizer.n_ids
    with pytest.raises(RuntimeError, match="a mask"):
        decode(model, constraint, seed=0)


def test_nothing_left_ends_a_sequence_without_weight():
    def model(ids):
        logits = TableModel(1)(ids)
        logits[[4, 5]] = -np.inf  # it never ends
        return logits

    found = adaptive(model, constraint_of("lift", (4, 5)), n=3, seed=0, max_new_tokens=9)
    assert [generation.log_weight for generation in found.generations] == [-np.inf] * 3


def test_at_least_one_id_must_be_accepted():
    with pytest.raises(ArgumentError, match="accepts 0"):
        adaptive(TableModel(), constraint_of("lift", (4,)), accepts=0)
