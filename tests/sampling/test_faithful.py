"""Each sampler converges to the model's own distribution given the language, which is computed by
trying all sequences."""

from collections import Counter
from functools import cache
from itertools import combinations, permutations

import numpy as np
import pytest
from exact_distribution import LONGEST, TableModel, constraint_of, exact

from bpe_automata.sampling import (
    adaptive,
    distribution,
    effective_sample_size,
    estimate,
    log_normaliser,
    log_weights,
    rejection,
    smc,
    weighted,
)
from bpe_automata.sampling._rejection import first_allowed
from experiments.statistics import clopper_pearson

SIGMAS = 4.5  # about 7 in a million; a seed is fixed, so a test that passes passes always
CASES = [
    ("lift", (4,), (), 1.0),
    ("canonical", (4, 5), (2, 1), 1.0),
    ("lift", (), (), 0.7),
    ("canonical", (4,), (), 2.0),
]
case = pytest.mark.parametrize(("method", "eos", "prompt", "temperature"), CASES)


@cache
def problem(method, eos, prompt, temperature):
    """(model, constraint, exact distribution given the language, Z)."""
    model = TableModel(7, padding=1, prompt=prompt)
    truth = exact(model, method, eos, prompt=prompt, temperature=temperature)
    z = sum(truth.values())
    return model, constraint_of(method, eos), {ids: p / z for ids, p in truth.items()}, z


@case
@pytest.mark.parametrize(
    ("sampler", "options"),
    [(weighted, {"n": 1500}), *((adaptive, {"n": 600, "accepts": n}) for n in (1, 3))],
)
def test_weights_are_proper(method, eos, prompt, temperature, sampler, options):
    """The mean weight is Z, and each sequence has its probability, to a few standard errors."""
    model, constraint, truth, z = problem(method, eos, prompt, temperature)
    options = {"max_new_tokens": LONGEST, "temperature": temperature, "seed": 4, **options}
    found = sampler(model, constraint, prompt, **options).generations
    logs = log_weights(found)
    normaliser = log_normaliser(logs)
    assert abs(normaliser.value - np.log(z)) < SIGMAS * normaliser.standard_error
    value, error = estimate([[g.ids == ids for ids in truth] for g in found], logs)
    seen = {ids: p for ids, p in zip(truth, value.tolist(), strict=True) if p}
    assert distribution(found) == pytest.approx(seen)
    expected = np.array(list(truth.values()))
    # What is too rare to be seen has no standard error; then that of a count of zero.
    floor = np.sqrt(expected * (1 - expected) / effective_sample_size(logs))
    assert (np.abs(value - expected) <= SIGMAS * np.maximum(error, floor)).all()


@case
def test_rejection(method, eos, prompt, temperature):
    model, constraint, truth, z = problem(method, eos, prompt, temperature)
    options = {"max_new_tokens": LONGEST, "temperature": temperature, "seed": 7}
    found = rejection(model, constraint, prompt, n=300, max_tries=10**6, **options)
    counts = Counter(generation.ids for generation in found.generations)
    assert len(found.generations) == 300
    assert set(counts) <= set(truth)
    for ids, p in truth.items():
        low, high = clopper_pearson(counts[ids], 300, 1e-4 / len(truth))
        assert low <= p <= high
    low, high = clopper_pearson(300, found.tries, 1e-5)
    assert low <= z <= high
    assert found.probability == 299 / (found.tries - 1)


@case
def test_many_small_populations_are_unbiased(method, eos, prompt, temperature):
    """E[mean of w 1{x = a}] = p(a) for each a, and so E[mean weight] = Z, with 6 particles and
    resampling at nearly every step."""
    model, constraint, truth, z = problem(method, eos, prompt, temperature)
    rng = np.random.default_rng(9)
    options = {"max_new_tokens": LONGEST, "temperature": temperature, "seed": rng}
    rows, often = [], 0
    for _ in range(100):
        found = smc(model, constraint, prompt, particles=6, threshold=1.0, **options)
        often += len(found.resampled)
        row = dict.fromkeys(truth, 0.0)
        for generation in found.generations:
            row[generation.ids] = row.get(generation.ids, 0.0) + np.exp(generation.log_weight) / 6
        assert sum(row.values()) == pytest.approx(np.exp(found.log_normaliser))
        rows.append([*(row[ids] for ids in truth), sum(row.values())])
    rows = np.array(rows)
    expected = np.array([*truth.values(), 1.0]) * z
    # What is rare may not have been seen; E[row^2] <= E[row] max(row) bounds its deviation.
    rare = expected < 0.05 * z
    bound = np.where(rare, np.sqrt(expected * rows[:, -1].max()), 0)
    error = np.maximum(rows.std(axis=0, ddof=1), bound) / np.sqrt(len(rows))
    assert (np.abs(rows.mean(axis=0) - expected) <= SIGMAS * error).all()
    assert often > 100


# Adaptive rejection: the id has the distribution under the mask, and the mass estimate is unbiased
# given it, by going through every order in which ids can be drawn.

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
