"""The speed figure: regex to first mask, one line per regex, one mark per engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.run.cells import Row
from experiments.run.optional import require
from experiments.run.report import Figure
from experiments.serving.speed_goals import of_kind, ratios, to_first_mask, to_first_mask_ends
from experiments.shared.timing import median

STYLE: dict[str, tuple[str, str, str]] = {
    "outlines_core": ("outlines-core (index)", "#d1495b", "s"),
    "glrmask": ("glrmask", "#b8b8b8", "^"),
    "llguidance": ("llguidance", "#8c8c8c", "v"),
    "lift": ("ours, any tokenization", "#7fc4cc", "o"),
    "canonical": ("ours, its own tokenization", "#00798c", "o"),
}
"""Name in the legend, color, marker; later ones are drawn on top."""
BAR = "#e6e6e6"


def figures(rows: Sequence[Row], manifest: Row) -> list[Figure]:
    """The one figure; none without rows of regexes."""
    cases = sorted(of_kind(rows, "regex"), key=_longest)
    if not cases:
        return []
    require("matplotlib").use("Agg")
    pyplot = require("matplotlib.pyplot")
    size, look = (9, 0.9 + 0.33 * len(cases) + 1.2), {"axes.spines.top": False}
    with pyplot.rc_context({"font.size": 10, "axes.spines.right": False, **look}):
        figure, axes = pyplot.subplots(figsize=size, layout="constrained")
        draw_cases(axes, cases)
    note = (
        f"{manifest.get('model')}, n = {len(cases)} regexes, {manifest['config']['repeats']} "
        "rounds each: medians, lines from the least to the most; engines in turns.\nAll but the "
        "last engine are inexact: they admit other tokenizations than the own one."
    )
    return [Figure("speed", figure, headline(rows), note)]


def headline(rows: Sequence[Row]) -> str:
    """The message, with the numbers of these rows."""
    faster = list(ratios(rows).values())
    if not faster:
        return "From a regex to its first mask"
    return (
        f"From a regex to its first exact mask: {median(faster):.0f} times faster than "
        f"Outlines' index\n(median of {len(faster)} regexes; from {min(faster):.1f} to "
        f"{max(faster):.0f} times)"
    )


def draw_cases(axes: Any, cases: Sequence[Row]) -> None:
    """A line per regex from the canonical mark to that of outlines_core, the longest on top."""
    for height, row in enumerate(cases):
        ends = [to_first_mask(row, e) * 1e3 for e in ("canonical", "outlines_core")]
        axes.plot(ends, [height, height], color=BAR, linewidth=5, zorder=1, solid_capstyle="round")
    for order, engine in enumerate(STYLE):
        _marks(axes, cases, engine, order)
    axes.set_yticks(range(len(cases)), [row["name"] for row in cases])
    _scale(axes)


def _marks(axes: Any, cases: Sequence[Row], engine: str, order: int) -> None:
    """One engine's medians, and lines from its least to its most; nothing if it has no times."""
    label, color, marker = STYLE[engine]
    times = [to_first_mask(row, engine) * 1e3 for row in cases]
    if all(value != value for value in times):
        return
    low, high = zip(*(to_first_mask_ends(row, engine) for row in cases), strict=True)
    ends = [[1e3 * value for value in some] for some in (low, high)]
    axes.hlines(range(len(cases)), *ends, color=color, linewidth=1, zorder=2 + order)
    size = 46 if engine == "canonical" else 34
    places = range(len(cases))
    style = {"color": color, "marker": marker, "s": size, "label": label}
    axes.scatter(times, places, zorder=2 + order, **style)


def _scale(axes: Any) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel("milliseconds from the regex to its first mask (log scale)")
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#eeeeee")
    axes.set_axisbelow(True)
    axes.margins(y=0.04)
    axes.legend(loc="lower right", frameon=True, framealpha=0.9, edgecolor="none", fontsize=9)


def _longest(row: Row) -> float:
    value = to_first_mask(row, "outlines_core")
    return value if value == value else to_first_mask(row, "canonical")
