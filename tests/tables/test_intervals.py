"""Clopper-Pearson intervals keep their promise, computed exactly."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.intervals import clopper_pearson, log_binomial


def test_log_binomial_is_a_law():
    law = np.exp(log_binomial(50, 0.3))
    assert law.sum() == pytest.approx(1)
    assert law @ np.arange(51) == pytest.approx(15)


def test_no_success_and_no_failure():
    assert clopper_pearson(0, 40, 0.02) == pytest.approx((0.0, 1 - 0.01 ** (1 / 40)))
    assert clopper_pearson(40, 40, 0.02) == pytest.approx((0.01 ** (1 / 40), 1.0))


@pytest.mark.parametrize("p", [0.003, 0.1, 0.5, 0.77, 0.999])
def test_coverage_is_at_least_the_level(p):
    n, alpha = 60, 0.05
    inside = [
        low <= p <= high for low, high in (clopper_pearson(k, n, alpha) for k in range(n + 1))
    ]
    assert np.exp(log_binomial(n, p))[inside].sum() >= 1 - alpha
