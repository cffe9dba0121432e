"""Weighted populations on a trie, of one, two and many, follow the exact distributions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from tiny import PIECES, lift_of

from experiments.answers.distributions import Explored
from experiments.answers.populations import Populations, _systematic
from experiments.answers.targets import Targets, Vocabulary
from experiments.statistics import clopper_pearson
from experiments.trie import along_paths, masked_steps, unroll

ANSWERS = ("abcab", "caa", "bbc")
AUTOMATON = lift_of(ANSWERS)
LEVEL = 1e-7
"""Per interval, so that a right sampler fails this test once in 100,000 seeds."""
COUNT = 20000


@pytest.fixture(scope="module")
def found():
    """A trie with random log-probabilities; the children of a node have less than all the mass."""
    trie = unroll([AUTOMATON])
    scores = np.log(np.random.default_rng(3).random((1, len(trie))) / len(PIECES))
    scores[0, 0] = 0
    complete = np.zeros(len(trie), dtype=bool)
    complete[trie.leaves()] = True
    texts = ["".join(PIECES[token] for token in trie.ids(node)) for node in range(len(trie))]
    answer = np.full(len(trie), -1)
    for node, text in enumerate(texts):
        (*possible,) = (k for k, one in enumerate(ANSWERS) if one.startswith(text))
        answer[node] = possible[0] if len(possible) == 1 else -1
    targets = Targets(Vocabulary([], []), [], 1)
    none = np.zeros(len(trie), dtype=bool)
    return Explored(trie, scores, complete, none, answer, 0, targets, np.zeros(1))


@pytest.fixture
def trie(found):
    return found.trie


@pytest.fixture
def scores(found):
    return found.scores[0]


def agree(counts, distribution):
    n = int(counts.sum())
    for count, p in zip(counts, distribution, strict=True):
        low, high = clopper_pearson(int(count), n, LEVEL)
        assert low <= p <= high


@pytest.fixture
def populations(found):
    return Populations(found, found.scores[0], found.trie.alive(0), len(ANSWERS))


def leaf_distributions(found):
    """(distribution under the mask, weight, answer) of each leaf."""
    leaves = found.trie.leaves()
    steps = masked_steps(found.trie, found.scores[0], found.trie.alive(0))
    paths = along_paths(found.trie, steps)[leaves]
    own = along_paths(found.trie, found.scores[0])[leaves]
    return np.exp(paths), np.exp(own - paths), found.answer[leaves]


def close(made, distribution):
    assert made.distribution.sum() == pytest.approx(1)
    assert (np.abs(made.distribution - distribution) <= 5 * made.error + 1e-12).all()
    assert (made.error > 0).all()
    assert made.error.max() < 0.01


@pytest.mark.parametrize("kind", ["importance", "smc"])
def test_one_particle_is_the_masked_distribution(kind, populations, found, rng):
    distribution, _, answers = leaf_distributions(found)
    made = getattr(populations, kind)(1, COUNT, rng)
    close(made, np.bincount(answers, distribution, len(ANSWERS)))


def test_two_weighted_particles_are_enumerated(populations, found, rng):
    distribution, weight, answers = leaf_distributions(found)
    expected = np.zeros(len(ANSWERS))
    for one, other in product(range(len(distribution)), repeat=2):
        for taken in (one, other):
            share = weight[taken] / (weight[one] + weight[other])
            expected[answers[taken]] += distribution[one] * distribution[other] * share
    close(populations.importance(2, COUNT, rng), expected)


@pytest.mark.parametrize("kind", ["importance", "smc"])
def test_many_particles_give_the_free_distribution(kind, populations, found, rng):
    distribution, weight, answers = leaf_distributions(found)
    mass = np.bincount(answers, distribution * weight, len(ANSWERS))
    made = getattr(populations, kind)(2000, 200, rng)
    assert made.distribution == pytest.approx(mass / mass.sum(), abs=0.01)


def test_systematic_resampling_copies_as_often_as_weights_say(rng):
    weights = rng.random((500, 6))
    shares = weights / weights.sum(axis=1, keepdims=True)
    chosen = _systematic(np.log(weights), rng)
    copies = np.stack([(chosen == k).sum(axis=1) for k in range(6)], axis=1)
    assert (np.abs(copies - 6 * shares) < 1).all()
    assert (copies - 6 * shares).mean(axis=0) == pytest.approx(0, abs=0.1)
