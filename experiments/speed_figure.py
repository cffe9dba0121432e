"""The speed figure: regex to first mask, one line per regex, one mark per engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.figures import finish
from experiments.optional import require
from experiments.speed_goals import of_kind, ratios, to_first_mask
from experiments.speed_timing import median

Row = dict[str, Any]

STYLE: dict[str, tuple[str, str, str]] = {
    "outlines_core": ("outlines-core (index)", "#d1495b", "s"),
    "glrmask": ("glrmask", "#b8b8b8", "^"),
    "llguidance": ("llguidance", "#8c8c8c", "v"),
    "lift": ("ours, any tokenization", "#7fc4cc", "o"),
    "canonical": ("ours, its own tokenization", "#00798c", "o"),
}
"""Name in the legend, color, marker; later ones are drawn on top."""
BAR = "#e6e6e6"


def draw(rows: Sequence[Row], manifest: Row, folder: Path) -> list[Path]:
    """Write `speed.png` and `speed.pdf`; returns their paths. None without rows of regexes."""
    cases = sorted(of_kind(rows, "regex"), key=lambda row: _longest(row))
    if not cases:
        return []
    require("matplotlib").use("Agg")
    pyplot = require("matplotlib.pyplot")
    pyplot.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, axes = pyplot.subplots(figsize=(9, 0.9 + 0.33 * len(cases) + 1.2), layout="constrained")
    draw_cases(axes, cases)
    note = (
        f"{manifest['model']}, {manifest['config']['repeats']} rounds, medians, engines in turns. "
        "All but the last engine are inexact: they admit other tokenizations than the own one."
    )
    return finish(figure, headline(rows), note, folder, "speed")


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
    for order, (engine, (label, color, marker)) in enumerate(STYLE.items()):
        times = [to_first_mask(row, engine) * 1e3 for row in cases]
        style = {"color": color, "marker": marker, "s": 46 if engine == "canonical" else 34}
        if any(value == value for value in times):
            axes.scatter(times, range(len(cases)), label=label, zorder=2 + order, **style)
    axes.set_yticks(range(len(cases)), [row["name"] for row in cases])
    _scale(axes)


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
