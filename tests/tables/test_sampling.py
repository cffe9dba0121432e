"""Samples follow the exact laws, and a matcher that disagrees with its automaton is caught."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_language import PIECES, lift_of

from experiments.run.statistics import clopper_pearson
from experiments.study.distortion import ConstrainedSampler, SamplerMismatchError, sample_free
from experiments.study.token_trie import Automaton, along_paths, masked_steps, unroll

AUTOMATON = lift_of(("abcab", "caa", "bbc"))
LEVEL = 1e-7
"""Per interval, so that a right sampler fails this test once in 100,000 seeds."""


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
def trie():
    return unroll([AUTOMATON])


@pytest.fixture
def scores(trie, rng):
    """Random log-probabilities; the children of a node get less than all of the mass."""
    result = np.log(rng.random(len(trie)) / len(PIECES))
    result[0] = 0
    return result


def agree(counts, law):
    n = int(counts.sum())
    for count, p in zip(counts, law, strict=True):
        low, high = clopper_pearson(int(count), n, LEVEL)
        assert low <= p <= high


def test_constrained_samples_follow_the_masked_law(trie, scores, rng):
    sampler = ConstrainedSampler(FakeConstraint(AUTOMATON), [], trie, 0)
    drawn = [sampler.draw(scores, rng) for _ in range(3000)]
    paths = along_paths(trie, masked_steps(trie, scores, trie.alive(0)))
    leaves = trie.leaves()
    agree(np.bincount(drawn, minlength=len(trie))[leaves], np.exp(paths[leaves]))


def test_free_samples_follow_the_free_law_given_an_answer(trie, scores, rng):
    leaves = trie.leaves()
    samples = sample_free(trie, scores, 3000, rng)
    law = np.exp(along_paths(trie, scores)[leaves])
    assert samples.passing[leaves].sum() >= 3000
    assert samples.passing[0] == samples.trials
    agree(samples.passing[leaves], law / law.sum())
    low, high = clopper_pearson(int(samples.passing[leaves].sum()), samples.trials, LEVEL)
    assert low <= law.sum() <= high


def test_answers_that_never_come_up_are_not_drawn(trie, scores, rng):
    samples = sample_free(trie, np.where(trie.depth == 1, -60, scores), 3000, rng)
    assert (samples.trials, samples.passing.sum()) == (0, 0)


def test_samples_are_seeded(trie, scores):
    sampler = ConstrainedSampler(FakeConstraint(AUTOMATON), [], trie, 0)
    one, other = (
        [sampler.draw(scores, np.random.default_rng(5)) for _ in range(20)] for _ in range(2)
    )
    assert one == other


def test_a_mask_that_differs_from_the_automaton_is_an_error(trie, scores, rng):
    wrong = Automaton(AUTOMATON.start, tuple(dict(list(e.items())[:1]) for e in AUTOMATON.edges))
    with pytest.raises(SamplerMismatchError, match="the mask allows"):
        ConstrainedSampler(FakeConstraint(wrong), [], trie, 0).draw(scores, rng)
