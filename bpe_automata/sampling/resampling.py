"""Resampling: n weighted particles become n that weigh the same.

    E[copies of particle i] = n W_i,  so no weighted mean changes on average

All three place n points on [0, 1) and take, for each, the particle whose piece it falls into. The
more evenly the points lie, the less noise is added.

Source: Douc, Cappe, Moulines, *Comparison of Resampling Schemes for Particle Filtering*, 2005.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

Resampling = Literal["systematic", "stratified", "multinomial"]


def resample(weights: np.ndarray, scheme: Resampling, rng: np.random.Generator) -> np.ndarray:
    """Indices of the particles that go on, ascending, int64 [n]; weights: [n], adding up to 1."""
    pieces = np.cumsum(weights)
    points = SCHEMES[scheme](len(weights), rng) * pieces[-1]
    found = np.searchsorted(pieces, points, side="right")
    # A point may round up to the very end: then the last particle with any weight is meant.
    last = np.searchsorted(pieces, pieces[-1], side="left")
    return np.minimum(found, last)


def systematic(n: int, rng: np.random.Generator) -> np.ndarray:
    """One point in each n-th part, all at the same place in it."""
    return (np.arange(n) + rng.random()) / n


def stratified(n: int, rng: np.random.Generator) -> np.ndarray:
    """One point in each n-th part, each anywhere in it."""
    return (np.arange(n) + rng.random(n)) / n


def multinomial(n: int, rng: np.random.Generator) -> np.ndarray:
    """n points anywhere."""
    return np.sort(rng.random(n))


SCHEMES: dict[str, Callable[[int, np.random.Generator], np.ndarray]] = {
    "systematic": systematic,
    "stratified": stratified,
    "multinomial": multinomial,
}
