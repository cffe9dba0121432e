"""What the words of a run have in common: medians, means and quantiles at each distance.

Intervals of 95 % come from drawing words again (bootstrap): the ways to spell one word depend on
one another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from experiments.run.cells import FAILURE, Row
from experiments.study.poisoning_cases import WAYS
from experiments.study.poisoning_laws import OWN

ALL_WAYS = "all three"
LEVELS, DRAWS = (0.025, 0.975), 400


class Estimate(NamedTuple):
    """float64 [places] each: a statistic, and the ends of its interval."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray


def words_of(rows: Sequence[Row], model: str, category: str | None = None) -> list[Row]:
    """The rows of words that were measured."""
    return [
        row
        for row in rows
        if not row.get(FAILURE)
        and "found" in row
        and row["model"] == model
        and category in (None, row["category"])
    ]


def table(words: Sequence[Row], way: str, key: str) -> np.ndarray | None:
    """float64 [words, ways, places]: the values of a key; nan where a word has no such ids. None if
    no word has. way: one of WAYS, ALL_WAYS, or the name of a control."""
    ways = WAYS if way == ALL_WAYS else (way,)
    found = [[word["found"].get(one, {}).get(key) for one in ways] for word in words]
    places = next((len(v) for values in found for v in values if v is not None), None)
    if places is None:
        return None
    empty = [np.nan] * places
    return np.array([[empty if v is None else v for v in values] for values in found])


def excess(words: Sequence[Row], way: str) -> np.ndarray | None:
    """The same for the loss of the token that follows, less that after the word's own ids; nats."""
    lost, own = table(words, way, "loss"), table(words, OWN, "loss")
    return None if lost is None or own is None else lost - own


def medians(values: np.ndarray) -> Estimate:
    """Over words and ways. values: float64 [words, ways, places]."""
    return _estimate(values, _median)


def _median(values: np.ndarray) -> np.ndarray:
    """float64 [places]; several times faster than np.nanmedian. All places lack the same values."""
    flat = np.sort(values.reshape(-1, values.shape[-1]), axis=0)  # nan come last
    count = int(np.count_nonzero(~np.isnan(flat[:, 0])))
    return (flat[(count - 1) // 2] + flat[count // 2]) / 2


def means(values: np.ndarray) -> Estimate:
    """Over words and ways."""
    return _estimate(values, lambda v: np.nanmean(v, axis=(0, 1)))


def _estimate(values: np.ndarray, statistic: Callable[[np.ndarray], np.ndarray]) -> Estimate:
    values = values[~np.isnan(values).all(axis=(1, 2))]
    rng = np.random.default_rng(0)
    again = [statistic(values[rng.integers(0, len(values), len(values))]) for _ in range(DRAWS)]
    low, high = np.quantile(again, LEVELS, axis=0)
    return Estimate(statistic(values), low, high)


def quantiles(values: np.ndarray, levels: Sequence[float]) -> np.ndarray:
    """float64 [levels, places], over words and ways."""
    found: np.ndarray = np.nanquantile(values, levels, axis=(0, 1))
    return found
