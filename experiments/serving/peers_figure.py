"""The figure of peers: how soon the first mask is there, what each mask costs, and how many of the
ids that are not the tokenizer's own are admitted. A line for each engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from experiments.run.files import require
from experiments.run.report import Figure
from experiments.run.statistics import clopper_pearson, median, quantile
from experiments.serving.peers_numbers import LISTED, Asked, exact, tokenizers

ADMITS, KEEPS = "#d1495b", "#00798c"
MARKERS = "os^Dvp"
SPREAD = 0.6
"""What the tokenizers of an engine share, where engines are 1 apart."""


class Mark(NamedTuple):
    """value, and from where to where its line goes."""

    value: float
    low: float
    high: float


def figures(asked: Sequence[Asked]) -> list[Figure]:
    """The one figure; none where no engine was asked anything."""
    shown = [one for one in asked if one.seconds("cold") and one.offered]
    if not shown:
        return []
    require("matplotlib").use("Agg")
    pyplot = require("matplotlib.pyplot")
    names = list(dict.fromkeys(one.name for one in shown))
    size = {"figsize": (10.5, 1.9 + 0.42 * len(names)), "sharey": True, "layout": "constrained"}
    with pyplot.rc_context({"axes.spines.top": False, "axes.spines.right": False}):
        figure, axes = pyplot.subplots(1, 3, width_ratios=(1, 1, 0.8), **size)
    _panel(axes[0], shown, _to_first, "from a regex to its first mask, ms", log=True)
    _panel(axes[1], shown, _at_new, "a mask at a new place, µs", log=True)
    _panel(axes[2], shown, _admitted, "other ids that are admitted, %", log=False)
    axes[0].set_yticks(range(len(names)), names)
    axes[0].invert_yaxis()
    _legend(axes[2], _markers(shown))
    offered = sum(one.offered for one in shown)
    note = (
        f"n = {medians_over(shown)} constraints that all engines answered; {offered:,} sequences "
        "of ids offered (of all constraints that an engine answered), which spell a text of the "
        f"language and are not `encode` of it. {LISTED}: over those that it answered.\n"
        "Marks: medians over constraints, over masks, and shares; lines: least to most, median to "
        "99th of 100, 95 % intervals (Clopper and Pearson).\n"
        "Hollow: blocks some of the tokenizer's own ids."
    )
    return [Figure("peers", figure, headline(shown), note)]


def headline(asked: Sequence[Asked]) -> str:
    """The message, with the names of these rows."""
    names, keeping = {one.engine for one in asked}, exact(asked)
    if not keeping:
        return (
            f"Each of {len(names)} engines admits ids that are not the tokenizer's, or blocks some"
        )
    return (
        f"{len(keeping)} of {len(names)} engines admitted the tokenizer's own ids, all of them and "
        f"none else:\n{', '.join(keeping)}"
    )


def medians_over(asked: Sequence[Asked]) -> str:
    """Over how many constraints medians are, by tokenizer where that differs."""
    found: dict[str, int] = {}
    for one in asked:
        if one.exams and (one.engine != LISTED or one.tokenizer not in found):
            found[one.tokenizer] = len(one.shared)
    if len(set(found.values())) < 2:
        return str(next(iter(found.values()), 0))
    return ", ".join(f"{n} ({tokenizer})" for tokenizer, n in found.items())


def _to_first(one: Asked) -> Mark:
    each = [1e3 * seconds for seconds in one.shared_to_first_mask()]
    return Mark(median(each), min(each), max(each))


def _at_new(one: Asked) -> Mark:
    seconds = [1e6 * value for value in one.seconds("cold")]
    return Mark(median(seconds), median(seconds), quantile(seconds, 0.99))


def _admitted(one: Asked) -> Mark:
    low, high = clopper_pearson(one.admitted, one.offered, 0.05)
    return Mark(100 * one.admitted / one.offered, 100 * low, 100 * high)


def _markers(asked: Sequence[Asked]) -> dict[str, str]:
    return dict(zip(tokenizers(asked), MARKERS, strict=False))


def _panel(axes: Any, asked: Sequence[Asked], mark: Any, label: str, log: bool) -> None:
    names = list(dict.fromkeys(one.name for one in asked))
    markers = _markers(asked)
    for one in asked:
        found, color = mark(one), ADMITS if one.admitted else KEEPS
        step = list(markers).index(one.tokenizer) if one.tokenizer in markers else 0
        y = names.index(one.name) + SPREAD * (step - (len(markers) - 1) / 2) / len(markers)
        axes.plot([found.low, found.high], [y, y], color=color, linewidth=1)
        style = {"color": color, "marker": markers.get(one.tokenizer, "o"), "s": 26, "zorder": 3}
        style |= {} if one.passes_own else {"facecolor": "white"}
        axes.scatter([found.value], [y], **style)
    if log:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(require("matplotlib.ticker").LogLocator(numticks=5))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axes.set_xlabel(label)
    axes.grid(axis="x", color="#eeeeee")
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)


def _legend(axes: Any, markers: dict[str, str]) -> None:
    for label, color in (("admits some", ADMITS), ("admits none", KEEPS)):
        axes.plot([], [], color=color, linewidth=4, label=label)
    for tokenizer, marker in markers.items():
        axes.scatter([], [], color="#888888", marker=marker, label=tokenizer)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8, frameon=False)
