"""Samples on a trie follow the exact distributions: one by one through a matcher, and as weighted
populations of one, two and many."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from tiny import PIECES, lift_of

from experiments.answers.distributions import Explored
from experiments.answers.populations import Populations, _systematic
from experiments.answers.targets import Targets, Vocabulary
from experiments.answers.trie import Automaton, along_paths, masked_steps, unroll
from experiments.run.statistics import clopper_pearson
from experiments.study.distortion.artefact import ConstrainedSampler, sample_free

ANSWERS = ("abcab", "caa", "bbc")
AUTOMATON = lift_of(ANSWERS)
LEVEL = 1e-7
"""Per interval, so that a right sampler fails this test once in 100,000 seeds."""
COUNT = 20000


class FakeMatcher:
    """A matcher over an automaton, with the methods that the sampler uses."""

    def __init__(self, automaton: Automaton) -> None:
        self.automaton, self.states = automaton, [automaton.start]

    def advance(self, token: int) -> None:
        self.states.append(self.automaton.edges[self.states[-1]][token])

    def rollback(self, count: int) -> None:
        del self.states[len(self.states) - count :]

    def mask(self, out: np.ndarray, row: int) -> None:
        out[row] = sum(1 << token for token in self.automaton.edges[self.states[-1]])

    @property
    def is_accepting(self) -> bool:
        return not self.automaton.edges[self.states[-1]]


class FakeConstraint:
    n_ids = len(PIECES)

    def __init__(self, automaton: Automaton) -> None:
        self.automaton = automaton

    def matcher(self, prefix: list[int]) -> FakeMatcher:
        return FakeMatcher(self.automaton)


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


def test_constrained_samples_follow_the_masked_distribution(trie, scores, rng):
    sampler = ConstrainedSampler(FakeConstraint(AUTOMATON), [], trie, 0)
    drawn = [sampler.draw(scores, rng) for _ in range(3000)]
    paths = along_paths(trie, masked_steps(trie, scores, trie.alive(0)))
    leaves = trie.leaves()
    agree(np.bincount(drawn, minlength=len(trie))[leaves], np.exp(paths[leaves]))


def test_free_samples_follow_the_free_distribution_given_an_answer(trie, scores, rng):
    leaves = trie.leaves()
    passing, trials = sample_free(trie, scores, 3000, rng)
    distribution = np.exp(along_paths(trie, scores)[leaves])
    assert passing[leaves].sum() >= 3000
    assert passing[0] == trials
    agree(passing[leaves], distribution / distribution.sum())
    low, high = clopper_pearson(int(passing[leaves].sum()), trials, LEVEL)
    assert low <= distribution.sum() <= high


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
