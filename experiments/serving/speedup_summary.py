"""What the rows of the speed-up say: a number per schema, and medians over schemas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from experiments.run.executors import Row
from experiments.run.statistics import median, median_interval

LEVEL = 0.95
ALL = "all"
"""The name of all families together."""
WAYS = {
    "canonical forced": "canonical",
    "lift forced": "lift",
    "chop": "lift",
}
"""Each way that knows ids, and the way without that it is held against. `chop` may write another
text than that one, and is compared by seconds for each id."""


@dataclass(frozen=True)
class Middle:
    """value: the median; low, high: an interval that holds the true median with a probability of
    at least LEVEL, None where there are too few values (fewer than 6); n."""

    value: float
    low: float | None
    high: float | None
    n: int


def middle(values: Sequence[float]) -> Middle:
    """The median with its interval."""
    low, high = median_interval(values, 1 - LEVEL) or (None, None)
    return Middle(median(values), low, high, len(values))


def by_schema(rows: Sequence[Row], number: Callable[[Row], float]) -> list[float]:
    """A number of each row, the mean over the seeds of a schema."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        found.setdefault((row["family"], row["schema"]), []).append(number(row))
    return [sum(values) / len(values) for values in found.values()]


def families(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each family, and of all."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["family"], []).append(row)
    return found | {ALL: list(rows)}


def saved(way: str) -> Callable[[Row], float]:
    """The share of the ids for which the model was not asked. Of forced ids these are the steps
    with one option; `chop` appends ids at other steps too."""
    return lambda row: 1 - row["ways"][way]["passes"] / row["ways"][way]["ids"]


def wall(way: str) -> Callable[[Row], float]:
    """Seconds an id, as a multiple of those without known ids in the same cell."""
    return lambda row: each(row, way, "seconds") / each(row, WAYS[way], "seconds")


def against_lift(way: str) -> Callable[[Row], float]:
    """Seconds for each byte of text, as a multiple of those of the lift, which asks the model for
    every id, in the same cell."""
    return lambda row: _per_byte(row, way) / _per_byte(row, "lift")


def each(row: Row, way: str, part: str) -> float:
    """Seconds of a part ("seconds": of all) for each id."""
    return float(row["ways"][way][part]) / row["ways"][way]["ids"]


def _per_byte(row: Row, way: str) -> float:
    written = row["ways"][way]
    return float(written["seconds"]) / max(1, written["bytes"])


def in_runs(rows: Sequence[Row], way: str, least: int) -> float:
    """The share of all ids that were known in runs of at least so many."""
    ids = sum(row["ways"][way]["ids"] for row in rows)
    long = sum(run for row in rows for run in row["ways"][way]["runs"] if run >= least)
    return long / ids if ids else float("nan")
