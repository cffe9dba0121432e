"""Intervals keep their promise: the sign test computed exactly, the bootstrap by its laws, that of
crossed groups by all draws; a quantile is the smallest value that enough do not exceed."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from experiments.statistics import bootstrap, median_interval, quantile, weighted_mean


def test_bootstrap_of_a_mean_is_as_wide_as_theory_says(rng):
    """Values of one group, here each eight times, say less than unrelated ones."""
    values = rng.normal(size=400)
    for times, groups in ((1, range(400)), (8, np.repeat(np.arange(400), 8).tolist())):
        low, high = bootstrap(np.repeat(values, times), [groups], weighted_mean)
        assert low < values.mean() < high
        assert high - low == pytest.approx(2 * 1.96 * values.std() / 20, rel=0.1)


def test_the_interval_of_crossed_groups_against_all_draws_there_are():
    """Of 3 rows and 2 columns every draw, each as likely as any other."""
    values = np.array([[1.0, 4.0], [2.0, 16.0], [7.0, 3.0]])
    draws = product(product(range(3), repeat=3), product(range(2), repeat=2))
    means = [values[np.ix_(rows, columns)].mean() for rows, columns in draws]
    exact, groups = np.quantile(means, [0.1, 0.9]), np.indices(values.shape).reshape(2, -1).tolist()
    found = bootstrap(values.ravel(), groups, weighted_mean, level=0.8)
    assert found == pytest.approx(exact, rel=0.05)


@pytest.mark.parametrize("n", [1, 2, 7, 100, 300])
def test_a_quantile_is_the_smallest_value_that_enough_do_not_exceed(n):
    """Of 1 to n the share k / n does not exceed k, in whole numbers: percent * n <= 100 * k."""
    for percent in range(101):
        expected = max(1, -(-percent * n // 100))
        assert quantile(range(n, 0, -1), percent / 100) == expected


@pytest.mark.parametrize("n", range(40))
def test_the_interval_holds_the_median_often_enough_and_no_narrower_one_does(n):
    """Over the order statistics of n values: the k-th is below the median with a binomial
    distribution."""

    def misses(k):
        return 2 * stats.binom.cdf(k - 1, n, 0.5)

    found = median_interval(range(1, n + 1))
    if found is None:
        assert misses(1) > 0.05
        return
    low, high = found
    assert low + high == n + 1
    assert misses(low) <= 0.05 < misses(low + 1)
