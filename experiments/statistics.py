"""Quantiles, and confidence intervals: exact for a proportion and a median, by resampling for a
mean and a quantile.

Sources: Clopper and Pearson, Biometrika 1934; Efron, *Bootstrap methods*, 1979; for values that
come in groups Field and Welsh, *Bootstrapping clustered data*, 2007, and in groups of several kinds
that cross each other Owen, *The pigeonhole bootstrap*, 2007.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache

import numpy as np
import pandas as pd
from scipy import stats

Statistic = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""(values [n], how often each is taken [count, n]) -> [count]."""
RESAMPLES = 1000


def clopper_pearson(k: int, n: int, alpha: float) -> tuple[float, float]:
    """The interval from `k` successes in `n` trials that covers the true proportion with
    probability at least 1 - alpha."""
    found = stats.binomtest(k, n).proportion_ci(1 - alpha, method="exact")
    return float(found.low), float(found.high)


def median_interval(values: Sequence[float], alpha: float = 0.05) -> tuple[float, float] | None:
    """The narrowest pair of order statistics that covers the median of the values' distribution,
    whatever it is, with probability at least 1 - alpha (the interval of the sign test); None if
    there are too few values (5 or less for 0.05)."""
    if len(values) < 2:
        return None
    found = stats.quantile_test(values, p=0.5).confidence_interval(1 - alpha)
    return None if math.isnan(found.low + found.high) else (float(found.low), float(found.high))


def quantile(values: Sequence[float], q: float) -> float:
    """The smallest value that at least the share `q` does not exceed; nan of nothing."""
    if not len(values):
        return math.nan
    # 0.07 * 100 is a little more than 7
    return float(np.quantile(values, max(0.0, q - 1e-12), method="inverted_cdf"))


def bootstrap(
    values: Sequence[float],
    crossed: Sequence[Sequence[Hashable]],
    statistic: Statistic,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[float, float]:
    """The percentile interval of a statistic when whole groups are drawn with replacement, as
    values of one group (variants of one question) are not independent; (nan, nan) without values.
    crossed: for each kind of groups (words, templates), the group of each value. The kinds are
    drawn independently, and a value counts with the product of how often its groups were drawn. For
    means this is conservative: with two kinds, variance of single values counts up to three times,
    so the interval is too wide if there is little other variance. If some pairs of groups have no
    value, a draw may have none; such draws are skipped."""
    if not len(values):
        return math.nan, math.nan
    taken = _taken(tuple(map(tuple, crossed)), seed)
    found = statistic(np.asarray(values, dtype=np.float64), taken)
    low, high = np.quantile(found, ((1 - level) / 2, (1 + level) / 2))
    return float(low), float(high)


@lru_cache(maxsize=2)
def _taken(crossed: tuple[tuple[Hashable, ...], ...], seed: int) -> np.ndarray:
    """float64 [RESAMPLES at most, n]: how often each value is taken. Cached, as many statistics
    have the same groups."""
    rng = np.random.default_rng(seed)
    taken = np.ones((RESAMPLES, 1))
    for groups in crossed:
        number = {group: k for k, group in enumerate(dict.fromkeys(groups))}
        m = len(number)
        drawn = rng.multinomial(m, np.full(m, 1 / m), size=RESAMPLES)
        taken = taken * drawn[:, [number[group] for group in groups]]
    return taken[taken.any(axis=1)]


def weighted_mean(values: np.ndarray, taken: np.ndarray) -> np.ndarray:
    """A `Statistic`: the mean of the values, as often as each is taken."""
    mean: np.ndarray = taken @ values / taken.sum(axis=1)
    return mean


def weighted_quantile(q: float) -> Statistic:
    """The smallest value that at least the share `q` of those taken does not exceed."""

    def statistic(values: np.ndarray, taken: np.ndarray) -> np.ndarray:
        order = np.argsort(values, kind="stable")
        below = np.cumsum(taken[:, order], axis=1)
        found: np.ndarray = values[order][(below >= q * below[:, -1:]).argmax(axis=1)]
        return found

    return statistic


def estimate(
    group: pd.DataFrame, statistic: Statistic, field: str, *by: str, level: float = 0.95
) -> tuple[float, float, float] | None:
    """(value, low, high) with an interval, over the rows that have the field; None if none has it.
    The interval comes from resampling the groups that the columns `by` name, each kind
    independently, with all their rows (`bootstrap`)."""
    there = group[group[field].notna()]
    if there.empty:
        return None
    values = there[field].to_numpy(dtype=np.float64)
    value = float(statistic(values, np.ones((1, len(values))))[0])
    groups = [there[one].tolist() for one in by]
    return value, *bootstrap(values.tolist(), groups, statistic, level)
