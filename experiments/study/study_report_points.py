"""The rows of the study as points: one case under one model at one temperature."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from experiments.run.executors import FAILURE, Row
from experiments.run.statistics import Statistic, bootstrap, weighted_mean, weighted_quantile
from experiments.study.study_laws_tree import tv_between

SETTLED = 0.01
"""How far at most a distance may be from exact to enter a summary."""
WEIGHTED = "weighted_"
"""Before the names of what a row says of a method with weights."""
Item = TypeVar("Item")
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
        """Of the law of one draw from a weighted population, where nothing is drawn if no particle
        came to an answer; None at other temperatures than that of the draws, or where the method
        was not simulated. Methods that are the lift have its."""
        name = "lift" if method in self.row["as_lift"] else method
        if self.temperature != self.row["draws_at"] or name not in self.row["draws"]:
            return None
        law = self.row["draws"][name][kind][str(particles)]["law"]
        return tv_between(law, self.at["free"], max(0.0, 1.0 - sum(law)))

    def kl(self, method: str, prefix: str = "") -> float:
        """KL(free || law) in nats, inf where the law lacks an answer that the model gives. What is
        not assigned counts as nothing, so it is an upper bound up to the slack of the free law.
        prefix: `WEIGHTED` for the method with weights."""
        found = self.at["methods"][method][f"{prefix}kl"]
        return math.inf if found is None else float(found)

    def known(self, method: str, prefix: str = "") -> dict[str, Any] | None:
        """What the row says of a method that is there, and whose distance, masked or weighted, is
        within `SETTLED` of exact; else None.

        A law that lacks s of its probability is off by s / 2 in a distance; the free law and
        weighted laws are scaled to 1, where it is s.
        """
        part: dict[str, Any] | None = self.at["methods"].get(method)
        if part is None:
            return None
        own = part["weighted_slack"] if prefix else part["slack"] / 2
        return part if self.at["free_slack"] + own <= SETTLED else None

    def is_settled(self) -> bool:
        """Is what a point is taken apart into within `SETTLED` of exact? Other methods than these
        are judged one by one: see `known`."""
        needed = (("lift", ""), ("canonical", ""), ("canonical", WEIGHTED))
        return all(self.known(method, prefix) for method, prefix in needed)


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


def at_every_temperature(found: Sequence[Point]) -> list[Point]:
    """Those of cases that are there at every temperature: others would change what is compared."""
    each = groups(found, _case)
    return [point for point in found if len(each[_case(point)]) == len(point.row["temperatures"])]


def _case(point: Point) -> tuple[str, str]:
    return point.model, str(point.row["name"])


def questions(found: Sequence[Point]) -> int:
    """How many different cases, whatever model and temperature."""
    return len({point.row["name"] for point in found})


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


@dataclass(frozen=True)
class Share:
    """Of a sum in another sum, with a 95 % interval (bases are drawn); nan of nothing."""

    value: float
    interval: tuple[float, float]

    def cell(self) -> str:
        if math.isnan(self.value):
            return "-"
        ends = ", ".join("-" if math.isnan(end) else f"{end:.0%}" for end in self.interval)
        return f"{self.value:.0%} [{ends}]"


def share(
    found: Sequence[Point], part: Callable[[Point], float], whole: Callable[[Point], float]
) -> Share:
    """Of the sum of `part` in that of `whole`: ratios of single points are wild where both are
    next to nothing."""
    parts = [part(point) for point in found]
    wholes = np.array([whole(point) for point in found])
    if not wholes.sum() > 0:
        return Share(math.nan, (math.nan, math.nan))

    def ratio(values: np.ndarray, taken: np.ndarray) -> np.ndarray:
        sums = taken @ wholes
        return np.divide(taken @ values, sums, out=np.full(len(sums), np.nan), where=sums > 0)

    bases = [str(point.row["base"]) for point in found]
    return Share(float(sum(parts) / wholes.sum()), bootstrap(parts, bases, ratio))


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


def groups(found: Sequence[Item], key: Callable[[Item], Any]) -> dict[Any, list[Item]]:
    """Points, or rows, by a key, in the order in which keys come."""
    result: dict[Any, list[Item]] = {}
    for item in found:
        result.setdefault(key(item), []).append(item)
    return result
