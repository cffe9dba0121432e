"""The figure of total variation against distance from the word: a panel per model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.run.executors import Row
from experiments.run.files import require
from experiments.run.report import Figure
from experiments.study import poisoning_numbers
from experiments.study.poisoning_cases import CUT, RANDOM, SMALLEST
from experiments.study.poisoning_laws import ANOTHER
from experiments.study.poisoning_numbers import ALL_WAYS, words_of

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
        values = poisoning_numbers.table(words, way, "tv")
        if values is None:
            continue
        low, middle, high = poisoning_numbers.quantiles(values, (BAND[0], 0.5, BAND[1]))
        axes.fill_between(far, low, high, color=color, alpha=0.15, linewidth=0)
        axes.plot(far, middle, color=color, linewidth=2.2, marker="o", markersize=4, label=text)
    for way, (color, dashes) in LINES.items():
        values = poisoning_numbers.table(words, way, "tv")
        if values is not None:
            middle = poisoning_numbers.quantiles(values, (0.5,))[0]
            axes.plot(far, middle, color=color, linestyle=dashes, linewidth=1.2, label=way)
    axes.set_ylim(0, 1)
    axes.set_xlabel("distance: tokens of the sentence after the word")
    axes.grid(axis="y", color="#eeeeee")
    axes.set_axisbelow(True)
