"""Importance weights: the formulas, and that the mean weight is the mass of the language."""

import math
from fractions import Fraction

import numpy as np
import pytest
from exact_distribution import LONGEST, TableModel, constraint_of, exact, logs
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax
from support import examples

from bpe_automata.errors import ArgumentError
from bpe_automata.sampling import (
    decode,
    effective_sample_size,
    estimate,
    log_normaliser,
    normalised,
)
from bpe_automata.sampling._smc import resample

EOS = [(4,), (4, 5), ()]
WHOLE = st.lists(st.integers(0, 9), min_size=1, max_size=8).filter(any)


# ---------------------------------------------------------------- E[w] = Z


def masked_paths(constraint, model, longest):
    """(ids, q(ids), product of the masses) of every path under the masks that ends."""
    stack = [(constraint.matcher(), 1.0, 1.0)]
    while stack:
        matcher, q, w = stack.pop()
        if matcher.is_finished:
            yield matcher.ids, q, w
        elif len(matcher.ids) < longest:
            p = softmax(model(matcher.ids))[: constraint.n_ids]
            mass = p[matcher.mask()].sum()
            for token in matcher.allowed_ids().tolist():
                after = matcher.copy()
                after.advance(token)
                stack.append((after, q * p[token] / mass, w * mass))


@pytest.mark.parametrize("eos", EOS)
@pytest.mark.parametrize("method", ["lift", "canonical"])
def test_the_mean_weight_is_the_mass_of_the_language(method, eos):
    model = TableModel(3, padding=2)
    constraint = constraint_of(method, eos)
    truth = exact(model, method, eos)
    paths = list(masked_paths(constraint, model, LONGEST))
    assert sum(q * w for _, q, w in paths) == pytest.approx(sum(truth.values()), rel=1e-12)
    assert sum(q for _, q, _ in paths) == pytest.approx(1)
    assert {tuple(i for i in ids if i not in eos) for ids, _, _ in paths} == set(truth)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("prompt", [(), (2, 2)])
def test_the_weight_of_a_generation_is_what_its_masks_left(prompt, temperature):
    model = TableModel(5, padding=1, prompt=prompt)
    constraint = constraint_of("canonical", (4,))
    for seed in range(20):
        found = decode(model, constraint, prompt, temperature=temperature, seed=seed)
        matcher, expected = constraint.matcher(prompt), 0.0
        for token in (*found.ids, 4):
            p = softmax(model((*prompt, *matcher.ids)) / temperature)
            expected += math.log(p[: constraint.n_ids][matcher.mask()].sum())
            matcher.advance(token)
        assert found.log_weight == pytest.approx(expected, abs=1e-12)


# ---------------------------------------------------------------- formulas


@examples(60)
@given(WHOLE, st.data())
def test_estimates_are_their_formulas(weights, data):
    values = data.draw(st.lists(st.integers(-5, 5), min_size=len(weights), max_size=len(weights)))
    total = sum(weights)
    share = [Fraction(w, total) for w in weights]
    mean = sum(s * v for s, v in zip(share, values, strict=True))
    spread = sum(s**2 * (v - mean) ** 2 for s, v in zip(share, values, strict=True))
    size = Fraction(total**2, sum(w**2 for w in weights))
    shift = data.draw(st.sampled_from((0.0, -9000.0, 700.0)))
    given_logs = logs(weights) + shift
    np.testing.assert_allclose(normalised(given_logs), np.array(share, dtype=float), rtol=1e-9)
    found = estimate(values, given_logs)
    assert found.value == pytest.approx(float(mean), abs=1e-9)
    assert found.standard_error == pytest.approx(math.sqrt(spread), abs=1e-9)
    assert effective_sample_size(given_logs) == pytest.approx(float(size))
    normaliser = log_normaliser(given_logs)
    assert normaliser.value == pytest.approx(math.log(total / len(weights)) + shift)
    if len(weights) > 1:
        deviation = np.std(weights, ddof=1) / math.sqrt(len(weights))
        expected = deviation / np.mean(weights)
        assert normaliser.standard_error == pytest.approx(expected, abs=1e-9)


def test_no_weight_at_all():
    none = [-np.inf, -np.inf]
    assert effective_sample_size(none) == 0.0
    assert log_normaliser(none) == (-math.inf, math.inf)
    with pytest.raises(ArgumentError, match="all 2 weights are zero"):
        normalised(none)
    with pytest.raises(ArgumentError, match="zero"):
        estimate([1, 2], none)


@pytest.mark.parametrize("wrong", [[], [np.nan], [np.inf, 0.0], [[0.0]], 0.0])
def test_weights_that_are_none(wrong):
    for function in (normalised, effective_sample_size, log_normaliser):
        with pytest.raises(ArgumentError, match="log weights"):
            function(wrong)


# Resampling keeps every weighted mean: E[copies of i] = n W_i.


class Fixed:
    """A generator whose uniform numbers are given."""

    def __init__(self, u):
        self.u = u

    def random(self, size=None):
        return self.u if size is None else np.full(size, self.u)


def copies(weights, rng):
    share = np.array(weights) / sum(weights)
    found = resample(share, rng)
    assert found.shape == (len(weights),)
    assert (np.diff(found) >= 0).all()
    return np.bincount(found, minlength=len(weights))


@examples(40)
@given(WHOLE)
def test_systematic_is_exact_over_all_its_points(weights):
    """n W_i changes by whole multiples of 1 / sum(weights), so a grid of that many midpoints is
    the whole integral."""
    grid = (np.arange(sum(weights)) + 0.5) / sum(weights)
    counts = np.array([copies(weights, Fixed(u)) for u in grid])
    expected = len(weights) * np.array(weights) / sum(weights)
    np.testing.assert_allclose(counts.mean(axis=0), expected)
    assert (np.abs(counts - expected) < 1).all()


@examples(40)
@given(WHOLE, st.sampled_from((0.0, 1 - 2**-53)))
def test_nothing_without_weight_is_chosen(weights, u):
    counts = copies(weights, Fixed(u))
    assert counts.sum() == len(weights)
    assert not counts[np.array(weights) == 0].any()
