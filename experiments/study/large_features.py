"""Distances between laws that are known from samples alone, with intervals that may hold 0.

The total variation distance of two empirical laws is biased upwards: two samples of one law differ.
Resampling adds that bias once more, so quantiles of resampled distances do not cover a small truth.
What is resampled here is the difference of the laws, a mean like any other:

    D   the difference of the laws; d: its estimate; d*: that of resampled samples
    r   the 0.95 quantile of |d* - d| / 2, which stands for that of |d - D| / 2  (| |: l1)
    v - r <= TV <= v + r     with v = |d| / 2, for | |d| - |D| | <= |d - D|

These d hold D in a ball with confidence 0.95, and the interval is what the norm makes of that ball:
it covers at least as often (conservative, most where the truth is not 0). 0 lies in it exactly
where the bootstrap test of D = 0 keeps it at the 0.05 level. The mean of |d* - d| / 2 is the noise:
what samples of these sizes and weights show where nothing differs.

Source: Hall, *The Bootstrap and Edgeworth Expansion*, 1992, section 4.2 (confidence regions).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.run.executors import Row

RESAMPLES = 1000
LEVEL = 0.95
LEAST = 1e-300


@dataclass(frozen=True)
class Part:
    """What independent units of one source (texts, or whole populations) add to a law.

    source: units of the same source are the same draws; added: float64 [units, values].
    """

    source: str
    added: np.ndarray


Law = Sequence[Part]
"""The sum over parts of the mean over units, divided by its total."""


def one_hot(codes: np.ndarray, masses: np.ndarray, n: int) -> np.ndarray:
    """float64 [units, n]: the mass of each at its value."""
    added = np.zeros((len(codes), n))
    added[np.arange(len(codes)), codes] = masses
    return added


def distances(laws: Mapping[str, Law], reference: Law, rng: np.random.Generator) -> Row:
    """Of each law to the reference. value, noise: see above; low, high: the interval; None for them
    where a source has one unit, which cannot tell."""
    parts = [part for law in (*laws.values(), reference) for part in law]
    sizes = {part.source: len(part.added) for part in parts}
    taken = {source: _resampled(n, rng) for source, n in sizes.items()}
    once = {source: np.ones((1, n)) for source, n in sizes.items()}
    found = {}
    for name, law in laws.items():
        value = estimated(law, once) - estimated(reference, once)
        again = estimated(law, taken) - estimated(reference, taken)
        known = min(sizes[part.source] for part in (*law, *reference)) > 1
        found[name] = _interval(value[0], again if known else None)
    return found


def _resampled(n: int, rng: np.random.Generator) -> np.ndarray:
    """float64 [RESAMPLES, n]: how often each of n units is drawn again."""
    drawn = rng.integers(n, size=(RESAMPLES, n)) + n * np.arange(RESAMPLES)[:, None]
    counts = np.bincount(drawn.ravel(), minlength=RESAMPLES * n)
    return counts.reshape(RESAMPLES, n).astype(np.float64)


def estimated(law: Law, taken: Mapping[str, np.ndarray]) -> np.ndarray:
    """float64 [count, values]. taken: float64 [count, units], how often each unit is counted."""
    parts = [taken[part.source] @ part.added / len(part.added) for part in law]
    total = np.sum(parts, axis=0)
    result: np.ndarray = total / np.maximum(total.sum(axis=1, keepdims=True), LEAST)
    return result


def _interval(difference: np.ndarray, again: np.ndarray | None) -> Row:
    value = float(np.abs(difference).sum() / 2)
    if again is None:
        return {"value": value, "noise": None, "low": None, "high": None}
    off = np.abs(again - difference).sum(axis=1) / 2
    radius = float(np.quantile(off, LEVEL))
    return {
        "value": value,
        "noise": float(off.mean()),
        "low": max(0.0, value - radius),
        "high": min(1.0, value + radius),
    }
