"""Confidence intervals: of a proportion and of a median, exactly, and of a mean or a quantile, by
resampling.

Sources: Clopper and Pearson, Biometrika 1934; Efron, *Bootstrap methods*, 1979, and for values that
come in groups Field and Welsh, *Bootstrapping clustered data*, 2007.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache

import numpy as np

Statistic = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""(values [n], how often each is taken [count, n]) -> [count]."""
RESAMPLES = 1000


def log_binomial(n: int, p: float) -> np.ndarray:
    """float64[n + 1]: log P(k successes in n trials), 0 < p < 1."""
    k = np.arange(n + 1)
    factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])  # its log
    choices = factorial[n] - factorial - factorial[::-1]
    found: np.ndarray = choices + k * math.log(p) + (n - k) * math.log1p(-p)
    return found


def clopper_pearson(k: int, n: int, alpha: float) -> tuple[float, float]:
    """The interval that holds the true proportion with probability at least 1 - alpha.

    `k` successes in `n` trials. The ends are where the tail that holds k has mass alpha / 2.
    """
    low = 0.0 if k == 0 else _where_upper_tail_is(k, n, alpha / 2)
    high = 1.0 if k == n else 1.0 - _where_upper_tail_is(n - k, n, alpha / 2)
    return low, high


def _where_upper_tail_is(k: int, n: int, mass: float) -> float:
    """The p with P(X >= k) = mass, by bisection: the tail grows with p."""
    below, above, goal = 0.0, 1.0, math.log(mass)
    for _ in range(50):
        middle = (below + above) / 2
        if np.logaddexp.reduce(log_binomial(n, middle)[k:]) < goal:
            below = middle
        else:
            above = middle
    return below


def median_interval(values: Sequence[float], alpha: float = 0.05) -> tuple[float, float] | None:
    """The narrowest pair of order statistics that holds the median of what the values are drawn
    from with probability at least 1 - alpha, whatever that is (the interval of the sign test); None
    where the values are too few for any (5 or less for 0.05).

    P(X_(k) <= median <= X_(n+1-k)) >= 1 - 2 P(Binomial(n, 1/2) < k)
    """
    ordered, n, below, k = sorted(values), len(values), 0, 0
    while 2 * (below + math.comb(n, k)) <= alpha * 2**n:
        below += math.comb(n, k)
        k += 1
    return (ordered[k - 1], ordered[n - k]) if k else None


def bootstrap(
    values: Sequence[float],
    groups: Sequence[Hashable],
    statistic: Statistic,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[float, float]:
    """The percentile interval of a statistic where whole groups are drawn with replacement: values
    of one group (variants of one question) say less than as many unrelated ones. (nan, nan) of
    nothing."""
    if not len(values):
        return math.nan, math.nan
    found = statistic(np.asarray(values, dtype=np.float64), _taken(tuple(groups), seed))
    low, high = np.quantile(found, ((1 - level) / 2, (1 + level) / 2))
    return float(low), float(high)


@lru_cache(maxsize=2)
def _taken(groups: tuple[Hashable, ...], seed: int) -> np.ndarray:
    """float64 [RESAMPLES, n]: how often each value is taken. Kept, for many statistics are asked of
    the same groups."""
    number = {group: k for k, group in enumerate(dict.fromkeys(groups))}
    m = len(number)
    drawn = np.random.default_rng(seed).multinomial(m, np.full(m, 1 / m), size=RESAMPLES)
    return drawn[:, [number[group] for group in groups]].astype(np.float64)


def weighted_mean(values: np.ndarray, taken: np.ndarray) -> np.ndarray:
    """A `Statistic`."""
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
