"""What the words of a run have in common: medians, means and quantiles at each distance.

Intervals of 95 % come from drawing words again (bootstrap): the ways to spell one word depend on
one another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments.run.executors import FAILURE, Row
from experiments.run.files import require
from experiments.run.report import Figure
from experiments.run.statistics import Statistic, bootstrap, weighted_mean, weighted_quantile
from experiments.study.poisoning_laws import ANOTHER, CUT, OWN, RANDOM, SMALLEST, WAYS

ALL_WAYS = "all three"


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
    """Over words and ways: the smallest value that at least half of them do not exceed. values:
    float64 [words, ways, places]."""
    return _estimate(values, weighted_quantile(0.5))


def quantile(q: float) -> Callable[[np.ndarray], Estimate]:
    """The same for any share `q` of them."""
    return lambda values: _estimate(values, weighted_quantile(q))


def means(values: np.ndarray) -> Estimate:
    """Over words and ways."""
    return _estimate(values, weighted_mean)


def _estimate(values: np.ndarray, statistic: Statistic) -> Estimate:
    """At each place by itself."""
    words = np.nonzero(_there(values))[0].tolist()
    found = []
    for some in _flat(values):
        value = statistic(some, np.ones((1, len(some))))[0]
        found.append((value, *bootstrap(some.tolist(), words, statistic)))
    return Estimate(*np.array(found).T)


def quantiles(values: np.ndarray, levels: Sequence[float]) -> np.ndarray:
    """float64 [levels, places], over words and ways, as `quantile` has them."""
    statistics = [weighted_quantile(q) for q in levels]
    places = _flat(values)
    return np.array([[s(some, np.ones((1, len(some))))[0] for some in places] for s in statistics])


def _there(values: np.ndarray) -> np.ndarray:
    """bool [words, ways]: which have values; all places lack the same ones."""
    found: np.ndarray = ~np.isnan(values[..., 0])
    return found


def _flat(values: np.ndarray) -> np.ndarray:
    """float64 [places, n]: those that are there, word by word."""
    return values[_there(values)].T


# The figure of total variation against distance from the word: a panel per model.

OURS, CONTROL = "#d1495b", "#00798c"
LINES = {CUT: ("#edae49", ":"), RANDOM: ("#e07a5f", "--"), SMALLEST: ("#8d2f3a", "-.")}
BAND = (0.1, 0.9)


def figure(
    rows: Sequence[Row], names: Mapping[str, str], far: Sequence[int], headline: str
) -> Figure:
    """names: what models are called, by their names in the rows; far: the distances."""
    require("matplotlib").use("Agg")
    pyplot = require("matplotlib.pyplot")
    style = {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
    with pyplot.rc_context(style):
        drawn = _panels(pyplot, rows, names, far)
    note = (
        "Lines: medians; bands: 10 % to 90 % of words and ways. Another word: of the same "
        "category, in its own tokenization. All over the whole vocabulary."
    )
    return Figure("poisoning", drawn, headline, note)


def _panels(pyplot: Any, rows: Sequence[Row], names: Mapping[str, str], far: Sequence[int]) -> Any:
    """One for each model."""
    drawn, grid = pyplot.subplots(
        1,
        len(names),
        figsize=(max(6.5, 5.4 * len(names)), 5.0),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for axes, (name, label) in zip(grid.flat, names.items(), strict=True):
        words = words_of(rows, name)
        _panel(axes, words, far)
        axes.set_title(f"{label}, {len(words)} words", loc="left", fontsize=11)
    grid[0, 0].set_ylabel("total variation to the law after its own ids")
    grid[0, 0].legend(frameon=False, fontsize=8.5, loc="upper right")
    return drawn


def _panel(axes: Any, words: Sequence[Row], far: Sequence[int]) -> None:
    for way, color, text in ((ALL_WAYS, OURS, "other ids, all ways"), (ANOTHER, CONTROL, ANOTHER)):
        values = table(words, way, "tv")
        if values is None:
            continue
        low, middle, high = quantiles(values, (BAND[0], 0.5, BAND[1]))
        axes.fill_between(far, low, high, color=color, alpha=0.15, linewidth=0)
        axes.plot(far, middle, color=color, linewidth=2.2, marker="o", markersize=4, label=text)
    for way, (color, dashes) in LINES.items():
        values = table(words, way, "tv")
        if values is not None:
            middle = quantiles(values, (0.5,))[0]
            axes.plot(far, middle, color=color, linestyle=dashes, linewidth=1.2, label=way)
    axes.set_ylim(0, 1)
    axes.set_xlabel("distance: tokens of the sentence after the word")
    axes.grid(axis="y", color="#eeeeee")
    axes.set_axisbelow(True)
