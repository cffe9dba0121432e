"""The figure of the speed-up: what forced ids save by family, and how long their runs are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from experiments.run.executors import Row
from experiments.run.files import require
from experiments.run.report import Figure
from experiments.serving.speedup_summary import (
    ALL,
    LEVEL,
    Middle,
    by_schema,
    families,
    in_runs,
    middle,
    saved,
    wall,
)

STYLE: dict[str, tuple[str, str, str, float]] = {
    "chop": ("lift with chop (heuristic)", "#9a9a9a", "D", 0.22),
    "lift forced": ("lift: any tokenization", "#d1495b", "s", 0.0),
    "canonical forced": ("canonical: its own", "#00798c", "o", -0.22),
}
"""Way: name in the legend, color, marker, how far below the middle of its line."""
LONGEST = 32
"""The last length of a run that is shown."""


def figures(rows: Sequence[Row], manifest: Row) -> list[Figure]:
    """The one figure; none without rows."""
    if not rows:
        return []
    require("matplotlib").use("Agg")
    pyplot = require("matplotlib.pyplot")
    some = families(rows)
    look = {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
    with pyplot.rc_context(look):
        size = (12, 1.9 + 0.5 * len(some))
        drawn, axes = pyplot.subplots(
            1, 3, figsize=size, layout="constrained", width_ratios=[4, 4, 4]
        )
        _dots(axes[0], some, lambda way: lambda row: 100 * saved(way)(row))
        axes[0].set_xlabel("forward passes saved (%)")
        _dots(axes[1], some, wall)
        axes[1].set_xlabel("wall time with forced ids / without")
        axes[1].axvline(1, color="#bbbbbb", linewidth=1, zorder=0)
        axes[1].set_yticklabels([])
        _runs(axes[2], rows)
        handles, labels = axes[0].get_legend_handles_labels()
        axes[2].legend(handles[::-1], labels[::-1], frameon=False)
    return [Figure("speedup", drawn, headline(rows), _note(rows, manifest))]


def headline(rows: Sequence[Row]) -> str:
    """The message, with the numbers of these rows."""
    own, lift = (middle(by_schema(rows, saved(way))) for way in ("canonical forced", "lift forced"))
    return (
        f"Under a schema, the tokenizer's own ids leave {100 * own.value:.0f} % of the forward "
        f"passes out; any tokenization, {100 * lift.value:.0f} %"
    )


def _note(rows: Sequence[Row], manifest: Row) -> str:
    schemas = len(by_schema(rows, lambda row: 0.0))
    return (
        f"{manifest.get('model')} on {manifest.get('device')}, {manifest['config']['dtype']}; "
        f"n = {schemas} schemas, {len(rows)} texts of each way, of at most "
        f"{manifest['config']['most_ids']} ids. Medians over schemas, lines: exact "
        f"{100 * LEVEL:.0f} % intervals (sign test).\nWall time: the same text in the same process;"
        " of chop, seconds an id against the lift without it. Right: all families together."
    )


def _dots(
    axes: Any, some: dict[str, list[Row]], number: Callable[[str], Callable[[Row], float]]
) -> None:
    """A line per family, all of them last; a mark and an interval per way."""
    names = list(some)
    heights = [-k - 0.5 * (name == ALL) for k, name in enumerate(names)]
    for way, (label, color, marker, lower) in STYLE.items():
        found = [middle(by_schema(some[name], number(way))) for name in names]
        at = [height - lower for height in heights]
        axes.scatter(
            [one.value for one in found], at, s=36, color=color, marker=marker, label=label
        )
        for height, one in zip(at, found, strict=True):
            _interval(axes, one, height, color)
    axes.set_yticks(heights, [f"{name}\n(n = {_schemas(some[name])})" for name in names])
    axes.axhline(heights[-1] + 0.75, color="#cccccc", linewidth=1)
    axes.set_ylim(heights[-1] - 0.5, 0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#eeeeee")
    axes.set_axisbelow(True)


def _interval(axes: Any, found: Middle, height: float, color: str) -> None:
    if found.low is not None:
        axes.plot([found.low, found.high], [height, height], color=color, linewidth=2, alpha=0.6)


def _schemas(rows: Sequence[Row]) -> int:
    return len({(row["family"], row["schema"]) for row in rows})


def _runs(axes: Any, rows: Sequence[Row]) -> None:
    """The share of all ids in runs of at least so many ids."""
    lengths = range(1, LONGEST + 1)
    for way, (_, color, _, _) in STYLE.items():
        shares = [100 * in_runs(rows, way, least) for least in lengths]
        axes.step(lengths, shares, where="mid", color=color, linewidth=2)
    axes.set_xscale("log", base=2)
    axes.set_xticks([1, 2, 4, 8, 16, 32], ["1", "2", "4", "8", "16", "32"])
    axes.set_xlabel("ids in a run, at least (log scale)")
    axes.set_ylabel("ids in such runs (% of all)")
    axes.set_ylim(0, 1.3 * max(1.0, axes.get_ylim()[1]))  # room for the legend
    axes.grid(color="#eeeeee")
