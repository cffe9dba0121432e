"""The rows of the study as points: one case under one model at one temperature."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from experiments.run.cells import FAILURE, Row
from experiments.shared.intervals import Statistic, bootstrap, weighted_mean, weighted_quantile
from experiments.study.study_laws import tv_between

SETTLED = 0.01
"""Most probability that may be unassigned in a law for it to enter a summary."""
LABELS = {"smollm2": "SmolLM2", "gemma-3-270m": "Gemma-3"}


@dataclass(frozen=True)
class Point:
    """row: of the case; temperature; at: what the row says at that temperature."""

    row: Row
    temperature: float
    at: Row

    @property
    def model(self) -> str:
        return str(self.row["model"])

    @property
    def lift(self) -> float:
        """Total variation distance of the lift to the free law."""
        return self.tv("lift")

    @property
    def canonical(self) -> float:
        """Of canonical."""
        return self.tv("canonical")

    @property
    def rest(self) -> float:
        """Of what canonical with weights converges to."""
        return float(self.at["methods"]["canonical"]["weighted_tv"])

    @property
    def tokenization(self) -> float:
        """What the lift has above canonical."""
        return self.lift - self.canonical

    @property
    def myopia(self) -> float:
        """What canonical has above canonical with weights."""
        return self.canonical - self.rest

    def tv(self, method: str) -> float:
        """Of any method that is there."""
        return float(self.at["methods"][method]["tv"])

    def drawn_tv(self, method: str, kind: str, particles: int) -> float | None:
        """Of the law of one draw from a weighted population; None at other temperatures than that
        of the draws, or where the method was not simulated. Methods that are the lift have its."""
        name = "lift" if method in self.row["as_lift"] else method
        if self.temperature != self.row["draws_at"] or name not in self.row["draws"]:
            return None
        return tv_between(self.row["draws"][name][kind][str(particles)]["law"], self.at["free"])

    def is_settled(self) -> bool:
        """Is nearly all probability assigned to an answer?"""
        methods = self.at["methods"]
        slacks = [self.at["free_slack"], methods["canonical"]["weighted_slack"]]
        slacks += [methods[method]["slack"] for method in ("lift", "canonical")]
        return max(slacks) <= SETTLED


def points(rows: Sequence[Row]) -> list[Point]:
    """Of all finite cases that are no failures."""
    return [
        Point(row, float(temperature), at)
        for row in rows
        if not row.get(FAILURE) and row["kind"] == "finite"
        for temperature, at in row["temperatures"].items()
    ]


def at_draws(found: Sequence[Point]) -> list[Point]:
    """Those at the temperature of the draws, the one that most is said of."""
    return [point for point in found if point.temperature == point.row["draws_at"]]


def label(model: str) -> str:
    """How a model is called in tables."""
    return LABELS.get(model, model)


@dataclass(frozen=True)
class Summary:
    """Of some values, with the base that each belongs to: mean and median with 95 % intervals
    (bases are drawn, not cases), the 90 % quantile and the highest. All nan of nothing."""

    values: tuple[float, ...]
    bases: tuple[str, ...]

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def mean(self) -> float:
        return self._of(weighted_mean)

    @property
    def median(self) -> float:
        return self._of(MEDIAN)

    @property
    def upper(self) -> float:
        return self._of(weighted_quantile(0.9))

    @property
    def highest(self) -> float:
        return max(self.values, default=math.nan)

    @cached_property
    def mean_interval(self) -> tuple[float, float]:
        return bootstrap(self.values, self.bases, weighted_mean)

    def mean_cell(self, digits: int = 3) -> str:
        return interval_cell(self.mean, self.mean_interval, digits)

    def median_cell(self, digits: int = 3) -> str:
        return interval_cell(self.median, bootstrap(self.values, self.bases, MEDIAN), digits)

    def _of(self, statistic: Statistic) -> float:
        if not self.values:
            return math.nan
        return float(statistic(np.array(self.values), np.ones((1, self.n)))[0])


MEDIAN = weighted_quantile(0.5)


def summary(found: Sequence[Point], value: Callable[[Point], float | None]) -> Summary:
    """Points for which there is no value are left out."""
    each = [(str(point.row["base"]), value(point)) for point in found]
    return summarised([(base, v) for base, v in each if v is not None])


def difference(pairs: Sequence[tuple[Point, Point]], value: Callable[[Point], float]) -> Summary:
    """Of value(first) - value(second)."""
    return summarised([(one.row["base"], value(one) - value(other)) for one, other in pairs])


def summarised(pairs: Sequence[tuple[str, float]]) -> Summary:
    """Of (base, value)."""
    return Summary(tuple(v for _, v in pairs), tuple(base for base, _ in pairs))


def interval_cell(value: float, interval: tuple[float, float], digits: int = 3) -> str:
    """`0.123 [0.101, 0.150]`; a dash for nan."""
    if math.isnan(value):
        return "-"
    low, high = interval
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def number_cell(value: float | None, digits: int = 4) -> str:
    """Decimals, or an exponent where they would say nothing."""
    if value is None or math.isnan(value):
        return "-"
    if value == 0 or abs(value) >= 5 * 10.0 ** -(digits + 1):
        return f"{value:.{digits}f}"
    return f"{value:.0e}"


def groups(found: Sequence[Point], key: Callable[[Point], Any]) -> dict[Any, list[Point]]:
    """Points by a key, in the order in which keys come."""
    result: dict[Any, list[Point]] = {}
    for point in found:
        result.setdefault(key(point), []).append(point)
    return result
