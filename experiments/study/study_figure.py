"""The three figures of the study: case by case, by family, and by how the question is put."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from experiments.run.files import require
from experiments.run.report import Figure
from experiments.study.distortion_report import CANONICAL, LIFT, PALE
from experiments.study.study_points import (
    CLEARLY,
    SETTLED,
    THREE,
    Points,
    at_draws,
    at_every_temperature,
    farther,
    label,
    mean,
    pairs_of,
)

STYLE = {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
REST, MYOPIA = "#8d6a9f", "#edae49"
BOTH = {"lift": LIFT, "canonical": CANONICAL}
COLORS = dict(zip(THREE, (LIFT, MYOPIA, REST), strict=True))
CLEAR = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8}
"""Behind text that may lie on marks."""
DISTANCE = "total variation distance to the free distribution"
MARKERS = ("o", "s", "^", "D")
"""Of the models, in their order."""


def figures(found: Points) -> list[Figure]:
    """None where there is no point."""
    if found.empty:
        return []
    require("matplotlib").use("Agg")
    with require("matplotlib.pyplot").rc_context(STYLE):
        return [by_case(at_draws(found)), by_family(at_draws(found)), by_way(found)]


def by_case(drawn: Points) -> Figure:
    """A mark for each case: how far the lift and canonical are from the free distribution."""
    figure, axes = _panels(drawn["model"].nunique(), (5.6, 5.8))
    for panel, (model, points) in zip(axes, _models(drawn), strict=True):
        panel.axline((0, 0), (1, 1), color=PALE, linewidth=1)
        colors = points["tokenization"].map(_side_color)
        marks = {"s": 26, "c": colors, "alpha": 0.7, "linewidths": 0, "zorder": 2}
        panel.scatter(points["lift"], points["canonical"], **marks)
        lift, canonical = farther(points)
        panel.text(1, 0.5, f"lift farther:\n{lift} cases", ha="right", color=LIFT, bbox=CLEAR)
        told = f"canonical farther:\n{canonical} cases"
        panel.text(0.35, 0.9, told, color=CANONICAL, bbox=CLEAR)
        panel.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        _named(panel, f"{label(model)}, {len(points)} cases", f"lift: {DISTANCE}")
    axes[0].set_ylabel(f"canonical: {DISTANCE}")
    lift, canonical = farther(drawn)
    headline = (
        f"Of {len(drawn)} cases the lift bends the distribution clearly more in {lift}, "
        f"canonical in {canonical}"
    )
    note = (
        f"A mark is a case: one of {drawn['name'].nunique()} questions under one model. "
        f"Clearly: by more than {CLEARLY}; the other cases are grey.\n"
        f"Temperature {_temperature(drawn)}; exact, or each distance within {SETTLED} of it."
    )
    return Figure("distortion_study_cases", figure, headline, note)


def _models(found: Points) -> pd.api.typing.DataFrameGroupBy[Any, Any]:
    return found.groupby("model", observed=True)


def _side_color(more: float) -> str:
    if abs(more) <= CLEARLY:
        return PALE
    return LIFT if more > 0 else CANONICAL


def by_family(drawn: Points) -> Figure:
    """Mean error of the lift, taken apart, for each family of constraints."""
    families = sorted(drawn["family"].unique(), reverse=True)
    size = (6.2, 1.6 + 0.55 * len(families))
    figure, axes = _panels(drawn["model"].nunique(), size, sharex=True, sharey=True)
    for panel, (model, points) in zip(axes, _models(drawn), strict=True):
        for family, some in points.groupby("family"):
            for shift, (part, color) in zip((0.22, 0.0, -0.22), COLORS.items(), strict=True):
                height = families.index(family) + shift
                _mark(panel, height, mean(part)(some), color, is_flat=True)
        panel.axvline(0, color=PALE, linewidth=1)
        title = f"{label(model)}, {len(points)} cases"
        _named(panel, title, "mean part of the total variation distance")
        panel.grid(axis="x", color="#eeeeee")
        panel.set_axisbelow(True)
    counts = drawn["family"].value_counts()
    names = [f"{family.replace('_', ' ')} ({counts[family]})" for family in families]
    axes[0].set_yticks(range(len(families)), names)
    axes[0].tick_params(axis="y", length=0)
    handles = [_legend_mark("o", color, name) for name, color in COLORS.items()]
    axes[-1].legend(handles=handles, loc="lower right", frameon=False)
    note = (
        "tokenization: TV lift - TV canonical; myopia: TV canonical - TV canonical weighted; rest: "
        f"TV canonical weighted. Temperature {_temperature(drawn)}.\nLines: 95 % intervals by "
        "drawing questions with replacement; in brackets: cases of all models"
    )
    return Figure("distortion_study_families", figure, _family_headline(drawn), note)


def _family_headline(drawn: Points) -> str:
    means = drawn[list(THREE)].mean()
    share = means / (means.sum() or 1.0)
    return (
        f"Of the lift's error, {means.sum():.3f} on average, {share['tokenization']:.0%} is "
        f"tokenization, {share['myopia']:.0%} myopia of masking, {share['rest']:.0%} the rest"
    )


def by_way(found: Points) -> Figure:
    """Mean errors of both by temperature, and differences by style and boundary in pairs."""
    figure, axes = _panels(3, (4.4, 5.2))
    complete, drawn = at_every_temperature(found), at_draws(found)
    markers = {model: MARKERS[k % len(MARKERS)] for k, (model, _) in enumerate(_models(found))}
    _temperatures(axes[0], complete, markers)
    _differences(axes[1], drawn, "style", "plain", markers)
    _differences(axes[2], drawn, "boundary", "space", markers)
    handles = [_legend_mark(mark, PALE, label(model)) for model, mark in markers.items()]
    line = require("matplotlib.lines").Line2D
    handles += [line([], [], color=color, label=name) for name, color in BOTH.items()]
    axes[0].set_ylim(top=1.25 * axes[0].get_ylim()[1])  # room for the legend
    axes[0].legend(handles=handles, frameon=False, fontsize=9, ncols=2, loc="upper left")
    note = (
        f"Left: means over the {len(at_draws(complete))} cases of {len(drawn)} that are within "
        f"{SETTLED} of exact at every temperature. Middle, right: mean difference to the same "
        "question asked the\nother way, in pairs. Lines: 95 % intervals by drawing questions with "
        "replacement; in brackets: pairs of all models"
    )
    return Figure("distortion_study_ways", figure, _way_headline(complete), note)


def _way_headline(found: Points) -> str:
    """found: the same cases at every temperature."""
    means = found.groupby("temperature")[["lift", "canonical"]].mean()
    if means.empty:
        return "No case is settled at every temperature"
    first, last = means.iloc[0], means.iloc[-1]
    return (
        f"From temperature {first.name:g} to {last.name:g} the lift's mean error goes from "
        f"{first['lift']:.2f} to {last['lift']:.2f}, canonical's from {first['canonical']:.2f} to "
        f"{last['canonical']:.2f}"
    )


def _temperatures(panel: Any, found: Points, markers: Mapping[str, str]) -> None:
    for k, (model, points) in enumerate(_models(found)):
        each = points.groupby("temperature")
        for part, color in BOTH.items():
            means = each[part].mean()
            panel.plot(means.index + 0.02 * (k - 0.5), means, color=color, alpha=0.4)
            for temperature, some in each:
                place = temperature + 0.02 * (k - 0.5)
                _mark(panel, place, mean(part)(some), color, markers[model])
    panel.set_ylim(bottom=0)
    panel.set_xticks(sorted(found["temperature"].unique()))
    _named(panel, "Temperature", "temperature", f"mean {DISTANCE}")


def _differences(
    panel: Any, drawn: Points, attribute: str, reference: str, markers: Mapping[str, str]
) -> None:
    """Against the reference's way of asking."""
    pairs, models = pairs_of(drawn, attribute, reference), list(markers)
    ways = sorted(pairs[attribute].unique())
    for (model, way), some in pairs.groupby(["model", attribute], observed=True):
        for side, (part, color) in enumerate(BOTH.items()):
            place = ways.index(way) + 0.14 * (2 * models.index(model) + side - 1.5)
            _mark(panel, place, mean(f"{part}_difference")(some), color, markers[model])
    panel.axhline(0, color=PALE, linewidth=1)
    counts = pairs[attribute].value_counts()
    panel.set_xticks(
        range(len(ways)), [f"{way.replace('_', ' ')}\n({counts[way]})" for way in ways]
    )
    title = f"{attribute.capitalize()}, against {reference}"
    _named(panel, title, attribute, f"difference to {reference}")


def _mark(
    panel: Any,
    place: float,
    made: Sequence[float] | None,
    color: str,
    marker: str = "o",
    is_flat: bool = False,
) -> None:
    """A mean with its interval, which is upright unless `is_flat`."""
    if made is None:
        return
    value, *ends = made
    order = -1 if is_flat else 1
    panel.plot(*([place] * 2, ends)[::order], color=color, linewidth=1.6)
    panel.scatter(*(place, value)[::order], s=32, color=color, marker=marker, zorder=3)


def _named(panel: Any, title: str, x: str, y: str = "") -> None:
    panel.set_title(title, loc="left", fontsize=11)
    panel.set(xlabel=x, ylabel=y)


def _legend_mark(marker: str, color: str, name: str) -> Any:
    line = require("matplotlib.lines").Line2D
    return line([], [], marker=marker, linestyle="", color=color, label=name)


def _panels(count: int, size: tuple[float, float], **options: Any) -> tuple[Any, list[Any]]:
    pyplot = require("matplotlib.pyplot")
    figsize = (size[0] * max(count, 1.6), size[1])
    options |= {"figsize": figsize, "layout": "constrained", "squeeze": False}
    figure, axes = pyplot.subplots(1, count, **options)
    return figure, list(axes[0])


def _temperature(drawn: Points) -> str:
    return ", ".join(f"{value:g}" for value in sorted(drawn["temperature"].unique()))
