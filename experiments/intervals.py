"""Exact confidence intervals for a proportion (Clopper & Pearson, Biometrika 1934)."""

from __future__ import annotations

import math

import numpy as np


def log_binomial(n: int, p: float) -> np.ndarray:
    """float64[n + 1]: log P(k successes in n trials), 0 < p < 1."""
    k = np.arange(n + 1)
    lgamma = np.array([math.lgamma(i + 1) for i in range(n + 1)])
    return lgamma[n] - lgamma - lgamma[::-1] + k * math.log(p) + (n - k) * math.log1p(-p)


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
