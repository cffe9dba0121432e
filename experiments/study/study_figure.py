"""The three figures of the study: case by case, by family, and by how the question is put."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.run.files import require
from experiments.run.report import Figure
from experiments.study.distortion_figure import CANONICAL, LIFT, PALE
from experiments.study.study_report_points import (
    SETTLED,
    Point,
    Summary,
    at_draws,
    at_every_temperature,
    difference,
    groups,
    label,
    questions,
    summary,
)
from experiments.study.study_report_tables import CLEARLY, PARTS, farther, pairs_of

STYLE = {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
REST, MYOPIA = "#8d6a9f", "#edae49"
BOTH = {"lift": LIFT, "canonical": CANONICAL}
COLORS = {"tokenization": LIFT, "myopia": MYOPIA, "rest": REST}
CLEAR = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8}
"""Behind text that may lie on marks."""
MARKERS = ("o", "s", "^", "D")
"""Of the models, in their order."""


def figures(found: Sequence[Point]) -> list[Figure]:
    """None where there is no point."""
    if not found:
        return []
    require("matplotlib").use("Agg")
    with require("matplotlib.pyplot").rc_context(STYLE):
        return [by_case(found), by_family(found), by_way(found)]


def by_case(found: Sequence[Point]) -> Figure:
    """A mark for each case: how far the lift and canonical are from the free distribution."""
    models = groups(at_draws(found), lambda point: point.model)
    drawn, axes = _panels(len(models), (5.6, 5.8))
    for panel, (model, points) in zip(axes, models.items(), strict=True):
        panel.axline((0, 0), (1, 1), color=PALE, linewidth=1)
        panel.scatter(
            [point.lift for point in points],
            [point.canonical for point in points],
            s=26,
            c=[_side_color(point) for point in points],
            alpha=0.7,
            linewidths=0,
            zorder=2,
        )
        lift, canonical = farther(points)
        panel.text(1, 0.5, f"lift farther:\n{lift} cases", ha="right", color=LIFT, bbox=CLEAR)
        told = f"canonical farther:\n{canonical} cases"
        panel.text(0.35, 0.9, told, color=CANONICAL, bbox=CLEAR)
        panel.set_title(f"{label(model)}, {len(points)} cases", loc="left", fontsize=11)
        panel.set_xlim(-0.02, 1.02)
        panel.set_ylim(-0.02, 1.02)
        panel.set_aspect("equal")
        panel.set_xlabel("lift: total variation distance to the free distribution")
    axes[0].set_ylabel("canonical: total variation distance to the free distribution")
    lift, canonical = farther(at_draws(found))
    n = len(at_draws(found))
    headline = (
        f"Of {n} cases the lift bends the distribution clearly more in {lift}, "
        f"canonical in {canonical}"
    )
    note = (
        f"A mark is a case: one of {questions(at_draws(found))} questions under one model. "
        f"Clearly: by more than {CLEARLY}; the other cases are grey.\n"
        f"Temperature {_heat(found)}; exact, or each distance within {SETTLED} of it."
    )
    return Figure("distortion_study_cases", drawn, headline, note)


def _side_color(point: Point) -> str:
    if abs(point.tokenization) <= CLEARLY:
        return PALE
    return LIFT if point.tokenization > 0 else CANONICAL


def by_family(found: Sequence[Point]) -> Figure:
    """Mean error of the lift, taken apart, for each family of constraints."""
    models = groups(at_draws(found), lambda point: point.model)
    families = sorted({point.row["family"] for point in at_draws(found)}, reverse=True)
    drawn, axes = _panels(len(models), (6.2, 1.6 + 0.55 * len(families)), sharex=True, sharey=True)
    for panel, (model, points) in zip(axes, models.items(), strict=True):
        each = groups(points, lambda point: point.row["family"])
        for height, family in enumerate(families):
            _family_marks(panel, height, each.get(family, []))
        panel.axvline(0, color=PALE, linewidth=1)
        panel.set_title(f"{label(model)}, {len(points)} cases", loc="left", fontsize=11)
        panel.set_xlabel("mean part of the total variation distance")
        panel.grid(axis="x", color="#eeeeee")
        panel.set_axisbelow(True)
    counts = groups(at_draws(found), lambda point: point.row["family"])
    names = [f"{family.replace('_', ' ')} ({len(counts[family])})" for family in families]
    axes[0].set_yticks(range(len(families)), names)
    axes[0].tick_params(axis="y", length=0)
    line = require("matplotlib.lines").Line2D
    handles = [
        line([], [], marker="o", linestyle="", color=color, label=name)
        for name, color in COLORS.items()
    ]
    axes[-1].legend(handles=handles, loc="lower right", frameon=False)
    made = {name: summary(at_draws(found), PARTS[name]).mean for name in COLORS}
    whole = sum(made.values()) or 1.0
    share = {name: f"{mean / whole:.0%}" for name, mean in made.items()}
    headline = (
        f"Of the lift's error, {whole:.3f} on average, {share['tokenization']} is tokenization, "
        f"{share['myopia']} myopia of masking, {share['rest']} the rest"
    )
    note = (
        "tokenization: TV lift - TV canonical; myopia: TV canonical - TV canonical weighted; rest: "
        f"TV canonical weighted. Temperature {_heat(found)}.\nLines: 95 % intervals by drawing "
        "questions with replacement; in brackets: cases of all models"
    )
    return Figure("distortion_study_families", drawn, headline, note)


def _family_marks(panel: Any, height: int, points: Sequence[Point]) -> None:
    if not points:
        return
    for shift, (name, color) in zip((0.22, 0.0, -0.22), COLORS.items(), strict=True):
        made = summary(points, PARTS[name])
        panel.plot(made.mean_interval, [height + shift] * 2, color=color, linewidth=1.6)
        panel.scatter(made.mean, height + shift, s=30, color=color, zorder=3)


def by_way(found: Sequence[Point]) -> Figure:
    """Mean errors of both by temperature, and differences by style and boundary in pairs."""
    drawn, axes = _panels(3, (4.4, 5.2))
    steady = at_every_temperature(found)
    _temperatures(axes[0], steady)
    for panel, (attribute, reference) in zip(
        axes[1:], (("style", "plain"), ("boundary", "space")), strict=True
    ):
        _differences(panel, found, attribute, reference)
    line = require("matplotlib.lines").Line2D
    handles = [
        line([], [], marker=MARKERS[k % len(MARKERS)], linestyle="", color=PALE, label=label(model))
        for k, model in enumerate(groups(found, lambda point: point.model))
    ]
    handles += [line([], [], color=color, label=name) for name, color in BOTH.items()]
    axes[0].set_ylim(top=1.25 * axes[0].get_ylim()[1])  # room for what the marks are
    axes[0].legend(handles=handles, frameon=False, fontsize=9, ncols=2, loc="upper left")
    note = (
        f"Left: means over the {len(at_draws(steady))} cases of {len(at_draws(found))} that are "
        f"within {SETTLED} of exact at every temperature. Middle, right: mean difference to the "
        "same question asked the\nother way, in pairs. Lines: 95 % intervals by drawing questions "
        "with replacement; in brackets: pairs of all models"
    )
    return Figure("distortion_study_ways", drawn, _way_headline(steady), note)


def _way_headline(found: Sequence[Point]) -> str:
    """found: the same cases at every temperature."""
    heats = sorted({point.temperature for point in found})
    if not heats:
        return "No case is settled at every temperature"
    ends = [[p for p in found if p.temperature == heat] for heat in (heats[0], heats[-1])]
    lift, canonical = (
        [summary(points, PARTS[name]).mean for points in ends] for name in ("lift", "canonical")
    )
    return (
        f"From temperature {heats[0]:g} to {heats[-1]:g} the lift's mean error goes from "
        f"{lift[0]:.2f} to {lift[1]:.2f}, canonical's from {canonical[0]:.2f} to {canonical[1]:.2f}"
    )


def _temperatures(panel: Any, found: Sequence[Point]) -> None:
    for k, (_, points) in enumerate(groups(found, lambda point: point.model).items()):
        each = sorted(groups(points, lambda point: point.temperature).items())
        for name, color in BOTH.items():
            made = [summary(some, PARTS[name]) for _, some in each]
            places = [heat + 0.02 * (k - 0.5) for heat, _ in each]
            panel.plot(places, [one.mean for one in made], color=color, alpha=0.4)
            for place, one in zip(places, made, strict=True):
                _mark(panel, place, one, color, k)
    panel.set_ylim(bottom=0)
    panel.set_xticks(sorted({point.temperature for point in found}))
    panel.set_xlabel("temperature")
    panel.set_ylabel("mean total variation distance to the free distribution")
    panel.set_title("Temperature", loc="left", fontsize=11)


def _differences(panel: Any, found: Sequence[Point], attribute: str, reference: str) -> None:
    """Against the reference way of asking."""
    pairs = pairs_of(at_draws(found), attribute, reference)
    models = list(groups(found, lambda point: point.model))
    ways = list(dict.fromkeys(way for _, way in pairs))
    for (model, way), some in pairs.items():
        k = models.index(model)
        for side, (name, color) in enumerate(BOTH.items()):
            place = ways.index(way) + 0.14 * (2 * k + side - 1.5)
            _mark(panel, place, difference(some, PARTS[name]), color, k)
    panel.axhline(0, color=PALE, linewidth=1)
    counts = {way: sum(len(some) for (_, w), some in pairs.items() if w == way) for way in ways}
    panel.set_xticks(
        range(len(ways)), [f"{way.replace('_', ' ')}\n({counts[way]})" for way in ways]
    )
    panel.set_xlabel(attribute)
    panel.set_ylabel(f"difference to {reference}")
    panel.set_title(f"{attribute.capitalize()}, against {reference}", loc="left", fontsize=11)


def _mark(panel: Any, place: float, made: Summary, color: str, model: int) -> None:
    """A mean with its interval."""
    panel.plot([place] * 2, made.mean_interval, color=color, linewidth=1.6)
    marker = MARKERS[model % len(MARKERS)]
    panel.scatter(place, made.mean, s=34, color=color, marker=marker, zorder=3)


def _panels(count: int, size: tuple[float, float], **options: Any) -> tuple[Any, list[Any]]:
    pyplot = require("matplotlib.pyplot")
    drawn, axes = pyplot.subplots(
        1,
        count,
        figsize=(size[0] * max(count, 1.6), size[1]),
        layout="constrained",
        squeeze=False,
        **options,
    )
    return drawn, list(axes[0])


def _heat(found: Sequence[Point]) -> str:
    return ", ".join(f"{heat:g}" for heat in sorted({p.temperature for p in at_draws(found)}))
