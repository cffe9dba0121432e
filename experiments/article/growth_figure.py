"""The growth figure: a column per family; seconds above, integers to keep below; log scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.article.canvas import in_lines, subplots
from experiments.article.fork import DONE, MEMORY, TIME
from experiments.article.growth_methods import CARTESIAN, DIRECT, EXPLICIT, LAZY
from experiments.article.mistral import name_of
from experiments.run.executors import Row
from experiments.run.report import Figure

STYLE: dict[str, tuple[str, str, str]] = {
    DIRECT: ("DirectMerge (reference)", "#d1495b", "s"),
    CARTESIAN: ("CartesianMerge (reference)", "#edae49", "^"),
    EXPLICIT: ("package, all states written out", "#7fc4cc", "o"),
    LAZY: ("package, to the first mask", "#00798c", "o"),
}
"""Name in the legend, color, marker; later ones are drawn on top."""
QUANTITIES = {"seconds": "seconds", "integers": "integers to keep"}


def draw(cells: Sequence[Row], config: Row) -> Figure:
    """The figure of some cells, at least one; config: of their run."""
    families = [*dict.fromkeys(row["family"] for row in cells)]
    width = max(3.1 * len(families), 6.2)
    figure, grid = subplots(2, len(families), figsize=(width, 6.6), sharex="col", sharey="row")
    for column, family in zip(grid.T, families, strict=True):
        of_family = [row for row in cells if row["family"] == family]
        for axes, quantity in zip(column, QUANTITIES, strict=True):
            lines(axes, of_family, quantity)
        give_up(column[0], of_family, config)
        column[0].set_title(family, loc="left", fontsize=11)
        column[1].set_xlabel("n")
    for axes, label in zip(grid[:, 0], QUANTITIES.values(), strict=True):
        axes.set_ylabel(f"{label} (log scale)")
    # There is room: JSON objects have few integers to keep.
    grid[1, -1].legend(*legend(grid[0]), loc="upper left", frameon=False, fontsize=9)
    head = in_lines(headline(cells, config), width)
    return Figure("growth", figure, head, note(config))


def lines(axes: Any, of_family: Sequence[Row], quantity: str) -> None:
    """A line per method over the sizes that it finished."""
    for order, (method, (label, color, marker)) in enumerate(STYLE.items()):
        done = [row for row in of_family if row["method"] == method and row["status"] == DONE]
        points = [(row["n"], row[quantity]) for row in done if row[quantity]]
        if points:
            style = {"color": color, "marker": marker, "markersize": 5, "zorder": 2 + order}
            axes.plot(*zip(*points, strict=True), label=label, **style)
    sizes = sorted({row["n"] for row in of_family})
    axes.set_yscale("log")
    if sizes[-1] > 2 * len(sizes):
        axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(n) for n in sizes])
    axes.minorticks_off()
    axes.grid(axis="y", color="#eeeeee")
    axes.set_axisbelow(True)


def give_up(axes: Any, of_family: Sequence[Row], config: Row) -> None:
    """The limit of time, and a cross where a method was stopped by it or by its memory."""
    limit = config["limit_seconds"]
    axes.axhline(limit, color="#bbbbbb", linewidth=0.8, linestyle=":")
    for method, (_, color, _) in STYLE.items():
        of_method = [row for row in of_family if row["method"] == method]
        stopped = [row for row in of_method if row["status"] in (TIME, MEMORY)]
        before = [row for row in of_method if row["status"] == DONE]
        for row in stopped:
            axes.plot(row["n"], limit, "x", color=color, markersize=9, markeredgewidth=2, zorder=9)
            if before:
                ends = zip(
                    *((before[-1]["n"], before[-1]["seconds"]), (row["n"], limit)), strict=True
                )
                axes.plot(*ends, color=color, linewidth=0.9, linestyle="--", zorder=1)


def headline(cells: Sequence[Row], config: Row) -> str:
    """The message, with the numbers of these rows."""
    ends = []
    for family in dict.fromkeys(row["family"] for row in cells):
        of_method = [r for r in cells if r["family"] == family and r["method"] == DIRECT]
        if any(row["status"] in (TIME, MEMORY) for row in of_method):
            done = [row["n"] for row in of_method if row["status"] == DONE]
            ends.append(f"at n = {max(done, default=0)} for {family}")
    seconds, memory = limits(config)
    if not ends:
        tried = [row for row in cells if row["method"] == DIRECT]
        done = [row for row in tried if row["status"] == DONE]
        return f"DirectMerge finished {len(done)} of {len(tried)} regexes, each within {seconds}"
    first = [r["seconds"] for r in cells if r["method"] == LAZY and r["status"] == DONE]
    return (
        f"DirectMerge stops being practical: within {seconds} and {memory} it ends "
        f"{' and '.join(ends)};\n"
        f"the package makes the first mask of each regex in at most {max(first, default=0):.2g} s"
    )


def limits(config: Row) -> tuple[str, str]:
    """What a cell may take: time, memory."""
    return f"{config['limit_seconds']:g} s", f"{config['limit_mb'] / 1e3:g} GB"


def note(config: Row) -> str:
    """What the crosses and the numbers are."""
    return (
        f"{name_of(config['merges'])}. x: given up, over {' or '.join(limits(config))}. "
        "Integers: 1 a state, 2 a transition; CartesianMerge "
        "(reference) keeps the lift and its relevant pairs, besides the forbidden sets of all "
        "texts, which regexes share. The reference is the published algorithms in plain Python. "
        "Each construction was timed once."
    )


def legend(row_of_axes: Any) -> tuple[list[Any], list[str]]:
    """Handles and labels of all of them, each once."""
    found: dict[str, Any] = {}
    for axes in row_of_axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    return [*found.values()], [*found]
