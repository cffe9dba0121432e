"""Intervals keep their promise: Clopper-Pearson and the sign test computed exactly, the bootstrap
by its laws, and those of crossed groups by how often they cover; a quantile is the smallest value
that enough do not exceed."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest
from scipy import stats

from experiments.statistics import (
    bootstrap,
    clopper_pearson,
    median_interval,
    quantile,
    weighted_mean,
)


@pytest.mark.parametrize("p", [0.003, 0.1, 0.5, 0.77, 0.999])
def test_coverage_is_at_least_the_level(p):
    n, alpha = 60, 0.05
    inside = [
        low <= p <= high for low, high in (clopper_pearson(k, n, alpha) for k in range(n + 1))
    ]
    assert stats.binom.pmf(np.arange(n + 1), n, p)[inside].sum() >= 1 - alpha


def test_bootstrap_of_a_mean_is_as_wide_as_theory_says(rng):
    values = rng.normal(size=400)
    low, high = bootstrap(values, [range(400)], weighted_mean)
    assert low < values.mean() < high
    assert high - low == pytest.approx(2 * 1.96 * values.std() / 20, rel=0.1)


def test_values_of_one_group_say_less_than_unrelated_ones(rng):
    values = np.repeat(rng.normal(size=50), 8)
    together = bootstrap(values, [np.repeat(np.arange(50), 8).tolist()], weighted_mean)
    apart = bootstrap(values, [range(400)], weighted_mean)
    widths = [high - low for low, high in (together, apart)]
    assert widths[0] / widths[1] == pytest.approx(8**0.5, rel=0.15)


# Crossed groups: values [rows, columns], in any order, some left out.


def crossed(values):
    rows, columns = np.indices(values.shape)
    return values.ravel(), [rows.ravel().tolist(), columns.ravel().tolist()]


def test_the_interval_of_crossed_groups_against_all_draws_there_are():
    """Of 3 rows and 2 columns every draw, each as likely as any other."""
    values = np.array([[1.0, 4.0], [2.0, 16.0], [7.0, 3.0]])
    draws = product(product(range(3), repeat=3), product(range(2), repeat=2))
    means = [values[np.ix_(rows, columns)].mean() for rows, columns in draws]
    exact = np.quantile(means, [0.1, 0.9])
    assert bootstrap(*crossed(values), weighted_mean, level=0.8) == pytest.approx(exact, rel=0.05)


@pytest.mark.parametrize(("of_rows", "of_columns"), [(1.0, 1.0), (1.0, 0.1), (0.1, 1.0)])
def test_intervals_of_crossed_groups_cover(of_rows, of_columns, rng):
    """Each row meets 3 of the columns in turn, as words meet templates; the truth is 0."""
    repeats, rows, columns = 100, 60, 30
    row = np.repeat(np.arange(rows), 3)
    column = (row + np.tile(np.arange(3), rows)) % columns
    groups, covered = [row.tolist(), column.tolist()], 0
    for _ in range(repeats):
        values = of_rows * rng.normal(size=rows)[row] + 0.5 * rng.normal(size=len(row))
        values += of_columns * rng.normal(size=columns)[column]
        low, high = bootstrap(values, groups, weighted_mean)
        covered += low <= 0 <= high
    assert covered >= 0.9 * repeats


@pytest.mark.parametrize("n", [1, 2, 7, 100, 300])
def test_a_quantile_is_the_smallest_value_that_enough_do_not_exceed(n):
    """Of 1 to n the share k / n does not exceed k: in whole numbers, percent * n <= 100 * k."""
    values = list(range(n, 0, -1))
    for percent in range(101):
        smallest = next(k for k in range(1, n + 1) if 100 * k >= percent * n)
        assert quantile(values, percent / 100) == smallest


@pytest.mark.parametrize("n", range(40))
def test_the_interval_holds_the_median_often_enough_and_no_narrower_one_does(n):
    """Over the order statistics of n values: the k-th is below the median with a binomial
    distribution."""

    def misses(k):
        return 2 * sum(comb(n, i) for i in range(k)) / 2**n

    found = median_interval(range(1, n + 1))
    if n < 6:
        assert found is None
        assert misses(1) > 0.05
        return
    low, high = found
    assert low + high == n + 1
    assert misses(low) <= 0.05 < misses(low + 1)
