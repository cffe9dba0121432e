"""The figure of masks: how many take longer than so much, a line for each engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from experiments.run.executors import Row
from experiments.run.files import require
from experiments.run.report import Figure
from experiments.run.statistics import quantile
from experiments.serving.masks_numbers import Measured, firsts, pooled, shared, shown_of

STYLE: dict[str, tuple[str, str, float]] = {
    "outlines_core": ("outlines-core", "#6a4c93", 1.4),
    "xgrammar": ("xgrammar", "#d1495b", 1.4),
    "glrmask": ("glrmask", "#5b5b5b", 1.4),
    "llguidance": ("llguidance", "#edae49", 1.8),
    "lift": ("this package: any ids (lift)", "#7fc4cc", 1.8),
    "canonical": ("this package: own ids (canonical)", "#00798c", 2.6),
}
"""Name, color, width; later ones are drawn on top."""
TICKS = {1: "0", 2: "p50", 10: "p90", 100: "p99", 1000: "p99.9"}


def figures(groups: Mapping[str, Sequence[Measured]], manifest: Row) -> list[Figure]:
    """A column for each tokenizer; a row for masks of constraints, and two for schemas."""
    if not groups:
        return []
    require("matplotlib").use("Agg")
    pyplot = require("matplotlib.pyplot")
    rows = _rows(groups)
    shape = {"figsize": (1.2 + 3.1 * len(groups), 1.7 + 2.3 * len(rows)), "squeeze": False}
    plain = {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
    with pyplot.rc_context(plain):
        figure, grid = pyplot.subplots(
            1 + len(rows),
            len(groups),
            height_ratios=[0.2, *(1 for _ in rows)],
            layout="constrained",
            **shape,
        )
        for line, (label, values) in zip(grid[1:], rows.items(), strict=True):
            for axes, (tokenizer, measured) in zip(line, groups.items(), strict=True):
                drawn = [one for one in measured if one.engine in STYLE]
                for one in sorted(drawn, key=lambda one: list(STYLE).index(one.engine)):
                    _line(axes, values(one), one.engine)
                axes.set_title(tokenizer, loc="left", fontsize=10)
                axes.set_xlabel(label, fontsize=9)
            _scale(line)
        _legend(grid[0])
    n = max(len(one.constraints) for measured in groups.values() for one in measured)
    note = (
        f"Cumulative: p99 is what 99 of 100 do not exceed; logarithmic. {n} constraints, each "
        "engine over those that it answers; schemas of MaskBench, over texts that all engines "
        "which came to them read. Cold: each place of a text for the first time, the constraint "
        "new, the tokenizer known."
    )
    return [Figure("masks", figure, headline(groups), note)]


def headline(groups: Mapping[str, Sequence[Measured]]) -> str:
    """The message, with the numbers of one tokenizer."""
    tokenizer = shown_of(groups)
    cold = {one.engine: pooled(one.constraints, "cold", None) for one in groups[tokenizer]}
    drawn = {name: us for name, us in cold.items() if us and name in STYLE}
    shown = [f"{quantile(us, 0.99):,.0f} µs {name}" for name, us in drawn.items()]
    told = f"Of 100 masks at new places of constraints ({tokenizer}), 99 take at most"
    return f"{told}\n{', '.join(shown[:4])}"


def _rows(groups: Mapping[str, Sequence[Measured]]) -> dict[str, Callable[[Measured], list[float]]]:
    """What each row of panels shows."""
    found: dict[str, Callable[[Measured], list[float]]] = {
        "a cold mask of a constraint": lambda one: pooled(one.constraints, "cold", None),
    }
    if any(one.schemas for measured in groups.values() for one in measured):
        only = {tokenizer: shared(measured) for tokenizer, measured in groups.items()}
        found["a cold mask of a schema"] = lambda one: pooled(
            one.schemas, "cold", only[one.tokenizer]
        )
        found["from a schema to its first mask"] = lambda one: firsts(
            one.schemas, only[one.tokenizer]
        )
    return found


def _line(axes: Any, values: list[float], engine: str) -> None:
    """Each value, by the share of those that are not smaller."""
    name, color, width = STYLE[engine]
    n, ordered = len(values), sorted(values)
    heights = [n / (n - k) for k in range(n)]
    axes.plot(ordered, heights, color=color, linewidth=width, label=name, drawstyle="steps-post")


def _scale(line: Sequence[Any]) -> None:
    """Panels side by side have the same scale."""
    for axes in line:
        axes.set_xscale("log")
        axes.set_yscale("log")
    low, high = zip(*(axes.get_xlim() for axes in line), strict=True)
    top = max(axes.get_ylim()[1] for axes in line)
    for axes in line:
        axes.set_yticks(list(TICKS), list(TICKS.values()))
        axes.minorticks_off()
        axes.set_xlim(min(low), max(high))
        axes.set_ylim(0.9, top)
        axes.xaxis.set_major_formatter(lambda us, _: _duration(us))
        axes.tick_params(axis="x", labelsize=8)
        axes.grid(color="#eeeeee")
        axes.set_axisbelow(True)


def _duration(us: float) -> str:
    """Of a power of ten."""
    names = ((1e5, 1e6, "s"), (1e2, 1e3, "ms"), (0.0, 1.0, "µs"))
    factor, name = next((factor, name) for least, factor, name in names if us >= least)
    return f"{us / factor:.10g} {name}"


def _legend(line: Sequence[Any]) -> None:
    """In the room above the panels."""
    for axes in line:
        axes.axis("off")
    for name, color, width in reversed(STYLE.values()):
        line[0].plot([], [], color=color, linewidth=width, label=name)
    place = {"loc": "center left", "bbox_to_anchor": (0, 0.5), "borderaxespad": 0}
    legend = line[0].legend(ncols=3, frameon=False, fontsize=9, **place)
    legend.set_in_layout(False)
