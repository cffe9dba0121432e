"""Resampling keeps every weighted mean: E[copies of i] = n W_i."""

from __future__ import annotations

import numpy as np
import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st

from bpe_automata.sampling.smc import SCHEMES, resample

WEIGHTS = st.lists(st.integers(0, 9), min_size=1, max_size=8).filter(any)


class Fixed:
    """A generator whose uniform numbers are given."""

    def __init__(self, u):
        self.u = u

    def random(self, size=None):
        return self.u if size is None else np.full(size, self.u)


def copies(weights, scheme, rng):
    share = np.array(weights) / sum(weights)
    found = resample(share, scheme, rng)
    assert found.shape == (len(weights),)
    assert (np.diff(found) >= 0).all()
    return np.bincount(found, minlength=len(weights))


@examples(40)
@given(WEIGHTS)
def test_systematic_is_exact_over_all_its_points(weights):
    """n W_i changes by whole multiples of 1 / sum(weights), so a grid of that many midpoints is
    the whole integral."""
    grid = (np.arange(sum(weights)) + 0.5) / sum(weights)
    counts = np.array([copies(weights, "systematic", Fixed(u)) for u in grid])
    expected = len(weights) * np.array(weights) / sum(weights)
    np.testing.assert_allclose(counts.mean(axis=0), expected)
    assert (np.abs(counts - expected) < 1).all()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_copies_are_as_many_as_weights_say(scheme):
    weights, rng = [5, 0, 1, 3, 0], np.random.default_rng(8)
    counts = np.array([copies(weights, scheme, rng) for _ in range(4000)])
    error = counts.std(axis=0) / np.sqrt(len(counts))
    expected = len(weights) * np.array(weights) / sum(weights)
    assert (np.abs(counts.mean(axis=0) - expected) <= 4.5 * error).all()
    assert error[0] > 0


@examples(40)
@given(WEIGHTS, st.sampled_from(sorted(SCHEMES)), st.sampled_from((0.0, 1 - 2**-53)))
def test_nothing_without_weight_is_chosen(weights, scheme, u):
    counts = copies(weights, scheme, Fixed(u))
    assert counts.sum() == len(weights)
    assert not counts[np.array(weights) == 0].any()


def test_a_point_that_rounds_up_to_the_end():
    almost_one = Fixed(1 - 2**-53)
    assert copies([5, 0], "systematic", almost_one).tolist() == [2, 0]
    assert copies([1, 2, 0, 0], "stratified", almost_one).tolist() == [1, 3, 0, 0]


def test_even_points_add_less_noise():
    weights, rng = [5, 1, 1, 3, 2, 7], np.random.default_rng(3)
    spread = {
        scheme: np.var([copies(weights, scheme, rng) for _ in range(2000)], axis=0).sum()
        for scheme in SCHEMES
    }
    assert spread["systematic"] < spread["stratified"] < spread["multinomial"]
