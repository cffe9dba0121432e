"""Percentiles of compiling and of masks: a column per quantity, a row per tokenizer; log scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.run.executors import Row
from experiments.run.files import require
from experiments.run.report import Figure
from experiments.schemas.comparison_rows import Unit
from experiments.schemas.engines import OURS
from experiments.schemas.histogram import Histogram

COLORS = {
    OURS: "#00798c",
    "llguidance": "#edae49",
    "xgrammar": "#d1495b",
    "outlines_core": "#6a4c93",
}
SHARES = [k / 200 for k in range(200)] + [1 - 10 ** (-k / 20) for k in range(47, 100)]
"""Of 0 to 0.99999, closer to one another near the end."""
TICKS = {0.5: "p50", 0.9: "p90", 0.99: "p99", 0.999: "p99.9", 0.9999: "p99.99"}


def draw(units: Sequence[Unit], manifest: Row) -> Figure | None:
    """None where nothing compiled."""
    tokenizers = [*dict.fromkeys(unit.tokenizer for unit in units if unit.compiled)]
    if not tokenizers:
        return None
    require("matplotlib").use("Agg")
    pyplot = require("matplotlib.pyplot")
    plain = {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
    with pyplot.rc_context(plain):
        shape = {"figsize": (9, 1 + 3.2 * len(tokenizers)), "sharex": "col", "squeeze": False}
        figure, grid = pyplot.subplots(len(tokenizers), 2, layout="constrained", **shape)
        for row, tokenizer in zip(grid, tokenizers, strict=True):
            here = [unit for unit in units if unit.tokenizer == tokenizer]
            for axes, what in zip(row, ("compile, to the first mask", "mask"), strict=True):
                _panel(axes, here, what)
                axes.set_title(f"{tokenizer}: {what}", loc="left", fontsize=11)
            row[0].set_ylabel("seconds (log scale)")
        for axes in grid[-1]:
            axes.set_xlabel("percentile")
        grid[0, 0].legend(frameon=False, fontsize=9, loc="lower right")
    return Figure("schemas", figure, headline(units), note(manifest))


def _panel(axes: Any, units: Sequence[Unit], what: str) -> None:
    for unit in units:
        histogram = unit.masks() if what == "mask" else unit.seconds("compile", "first")
        _line(axes, histogram, unit.engine)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks([1 / (1 - share) for share in TICKS], list(TICKS.values()))
    axes.minorticks_off()
    axes.grid(color="#eeeeee")
    axes.set_axisbelow(True)


def _line(axes: Any, histogram: Histogram, engine: str) -> None:
    """Quantiles as far as there are values beyond them."""
    shares = [share for share in SHARES if (1 - share) * histogram.n >= 1]
    if shares:
        points = [(1 / (1 - share), histogram.quantile(share)) for share in shares]
        style = {"color": COLORS.get(engine, "#888888"), "linewidth": 1.6}
        axes.plot(*zip(*points, strict=True), label=f"{engine} ({histogram.n})", **style)
        axes.plot(histogram.n, histogram.largest, "o", color=style["color"], markersize=4)


def headline(units: Sequence[Unit]) -> str:
    """What this package got wrong, with the numbers of these rows."""
    ours = [unit for unit in units if unit.engine == OURS]
    if not ours:
        return "Compiling and masking, by percentile"
    through = max(len(unit.let_through()) for unit in ours)
    rows = max(len(unit.rows) for unit in ours)
    done = min(len(unit.compiled) for unit in ours)
    return f"{done} of {rows} cases compiled; invalid instances accepted: {through}"


def note(manifest: Row) -> str:
    """What the lines are."""
    config, jobs = manifest["config"], manifest.get("jobs", "?")
    return (
        f"{config['regexes'] or config['schemas']}, style {config['whitespace']}. In brackets: how "
        "many; a dot: the largest. Masks: along the tokenizer's own ids of valid texts.\n"
        f"Each engine on the cases that it compiles; {jobs} processes at a time."
    )
