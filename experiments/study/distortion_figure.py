"""The distortion figure: distances per prompt, and the article's example beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.run.executors import Row
from experiments.run.files import require
from experiments.run.report import Figure

LIFT, CANONICAL, FREE, PALE = "#d1495b", "#00798c", "#333333", "#bbbbbb"
FLOOR = 1e-6
"""Distances below it are drawn at it, on the axis' last tick, which says so."""


def figure(cases: Sequence[Row], model: Row) -> Figure:
    """Of one case or more."""
    require("matplotlib").use("Agg")
    pyplot = require("matplotlib.pyplot")
    style = {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
    with pyplot.rc_context(style):
        drawn, (left, right) = pyplot.subplots(
            1, 2, figsize=(11.5, 6.6), width_ratios=(1, 2.4), layout="constrained"
        )
        draw_example(left, cases[0])
        draw_distances(right, cases)
    note = f"{model['model']}; n = {len(cases)} prompts; exact probabilities, not samples.\n"
    return Figure("distortion", drawn, headline(cases), note + model["note"])


def headline(cases: Sequence[Row]) -> str:
    """The message, with the numbers of these rows."""
    single = [row for row in cases if is_single(row)]
    if not single:
        return "How far masking moves a model from its own distribution"
    lift, canonical = farthest(single)
    said = (
        "One-token answers: masking over any tokenization moves the model's distribution by up to "
        f"{lift:.2f},\nover its own tokenization by at most {canonical:.4f}."
    )
    longer = [row for row in cases if not is_single(row)]
    if not longer:
        return said
    lift, canonical = farthest(longer)
    return f"{said} Longer answers: up to {lift:.2f} and {canonical:.2f}."


def farthest(cases: Sequence[Row]) -> tuple[float, float]:
    """The greatest distances of some prompts: of the lift, and of canonical."""
    lift, canonical = (max(distance(row, m) for row in cases) for m in ("lift", "canonical"))
    return lift, canonical


def is_single(row: Row) -> bool:
    """Is each answer one token in its canonical tokenization?"""
    return max(row["canonical_tokens"]) == 1


def distance(row: Row, method: str) -> float:
    """Total variation distance to the free distribution."""
    return float(row["methods"][method]["total_variation"])


def draw_example(axes: Any, row: Row) -> None:
    """Probability of the first answer of the article's prompt, by method."""
    bars = [
        ("the model\nitself", row["free"][0], FREE),
        ("any\ntokenization\n(lift)", row["methods"]["lift"]["law"][0], LIFT),
        ("its own\ntokenization\n(canonical)", row["methods"]["canonical"]["law"][0], CANONICAL),
    ]
    for place, (_, value, color) in enumerate(bars):
        axes.bar(place, value, color=color, width=0.62)
        above = {"xytext": (0, 3), "textcoords": "offset points", "ha": "center"}
        axes.annotate(f"{value:.3f}", (place, value), **above)
    axes.set_xticks(range(len(bars)), [label for label, _, _ in bars])
    axes.set_ylim(0, 1)
    first, second = (answer.strip() for answer in row["answers"][:2])
    axes.set_ylabel(f"probability of “{first}” against “{second}”")
    which = "The article's prompt: which president?" if row["name"] == "president" else row["name"]
    axes.set_title(which, loc="left", fontsize=11)


def draw_distances(axes: Any, cases: Sequence[Row]) -> None:
    """A dumbbell per prompt: answers of one token above, longer ones below, each sorted."""
    ordered = sorted(cases, key=lambda row: (is_single(row), distance(row, "lift")))
    longer = sum(not is_single(row) for row in ordered)
    heights = [i + (i >= longer) for i in range(len(ordered))]
    for row, height in zip(ordered, heights, strict=True):
        lift, canonical = ends(row)
        axes.plot([lift, canonical], [height, height], color=PALE, linewidth=2, zorder=1)
        axes.scatter(lift, height, s=110, facecolor="white", edgecolor=LIFT, linewidth=2, zorder=2)
        axes.scatter(canonical, height, s=38, color=CANONICAL, zorder=3)
    axes.set_yticks(heights, [row["name"].replace("_", " ") for row in ordered])
    axes.set_ylim(-0.8, heights[-1] + 1.4)
    axes.set_title("All prompts", loc="left", fontsize=11)
    groups = {"longer answers": longer - 0.3} if longer else {}
    if longer < len(ordered):
        groups["answers of one token"] = heights[-1] + 0.7
    _name_groups(axes, groups)
    _name_methods(axes, ordered[-1], heights[-1])
    _scale(axes)


def ends(row: Row) -> tuple[float, float]:
    """Where the lift's and the canonical mark of a prompt are drawn."""
    return max(distance(row, "lift"), FLOOR), max(distance(row, "canonical"), FLOOR)


def _scale(axes: Any) -> None:
    axes.set_xscale("log")
    axes.set_xlim(FLOOR * 0.6, 1.6)
    axes.set_xticks([10.0**k for k in range(-6, 1)])
    axes.set_xticklabels(["≤ 0.000001", "0.00001", "0.0001", "0.001", "0.01", "0.1", "1"])
    axes.minorticks_off()
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#eeeeee")
    axes.set_axisbelow(True)
    axes.set_xlabel("total variation distance to the model's own distribution (log scale)")


def _name_groups(axes: Any, heights: dict[str, float]) -> None:
    for name, height in heights.items():
        axes.text(FLOOR * 0.7, height, name, fontsize=9, color="#555555", style="italic")


def _name_methods(axes: Any, row: Row, height: float) -> None:
    """Name the two marks of the topmost prompt; that is the legend."""
    lift, canonical = ends(row)
    style = {"y": height + 0.7, "fontweight": "bold", "fontsize": 9}
    axes.text(lift * 1.5, s="any tokenization", color=LIFT, ha="right", **style)
    axes.text(canonical, s="its own tokenization", color=CANONICAL, ha="center", **style)
