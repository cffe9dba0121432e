"""All methods beside one another: how far from the free law, and how often right."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from experiments.run.tables import Table
from experiments.study.study_case import PARTICLES
from experiments.study.study_methods import METHODS
from experiments.study.study_report_points import (
    SETTLED,
    WEIGHTED,
    Point,
    at_draws,
    groups,
    label,
    summary,
)
from experiments.study.study_report_tables import INTERVALS

Value = Callable[[Point], float | None]
"""None where a point has none."""


def methods(found: Sequence[Point]) -> Table:
    """By model, at the temperature of the draws."""
    lines = []
    for model, points in groups(at_draws(found), lambda point: point.model).items():
        for name, (distance, divergence) in _values().items():
            made = summary(points, distance)
            if made.n:
                far = sum(value > 0.1 for value in made.values)
                lines.append(
                    [
                        f"{label(model)}: {name}",
                        str(made.n),
                        made.median_cell(4),
                        made.mean_cell(),
                        f"{made.upper:.3f}",
                        f"{made.highest:.3f}",
                        f"{far / made.n:.0%}",
                        *divergence_cells(points, divergence),
                    ]
                )
    columns = ["method", "cases", "TV median", "TV mean", "TV 90 %", "TV worst", "TV over\n0.1"]
    columns += ["KL median", "KL mean", "KL infinite\ncases"]
    notes = [
        'TV: total variation distance to the free law, with "no answer" as an outcome where a '
        f"method has dead ends; cases: where it is within {SETTLED} of exact. {INTERVALS}",
        "KL: divergence of the method's law from the free one, KL(free || method), in nats; median "
        "and mean over the cases where it is finite. It is infinite where an answer that the model "
        "gives was not found under the method",
        "weighted: what importance weights and SMC converge to, the free law given what the method "
        "can write. The lift's is the free law itself, at a distance of 0; the others cannot reach "
        'it where their sequences lack free mass (see "Engines beside the lift")',
        f"of {' or '.join(map(str, PARTICLES))}: the law of one draw from a weighted population of "
        f"so many, simulated. On average each of these distances is off by at most "
        f"{_simulation_error(found):.3f} (half the sum of its standard errors, in the worst case), "
        "which makes small ones larger; a KL of simulated laws says nothing",
        "outlines: the index of outlines-core; chop: the lift with the published heuristic for "
        "forced text",
    ]
    return Table("Distance to the model's own law", columns, lines, notes)


def divergence_cells(points: Sequence[Point], value: Value) -> list[str]:
    """Median and mean of the finite ones, and how many are infinite of how many."""
    found = [point for point in points if value(point) is not None]
    finite = [point for point in found if math.isfinite(value(point) or 0)]
    if not found:
        return ["-", "-", "-"]
    made = summary(finite, value)
    return [made.median_cell(4), made.mean_cell(), str(len(found) - len(finite))]


def _simulation_error(found: Sequence[Point]) -> float:
    """The largest."""
    return max(
        (
            part["error"]
            for point in found
            for kinds in point.row["draws"].values()
            for each in kinds.values()
            for part in each.values()
        ),
        default=0.0,
    )


def _values() -> dict[str, tuple[Value, Value]]:
    """Name -> distance and divergence."""
    found = {method: (distance(method), divergence(method)) for method in METHODS}
    for method in METHODS[1:]:
        limit = distance(method, WEIGHTED), divergence(method, WEIGHTED)
        found[f"{method}, weighted"] = limit
    for method in METHODS:
        for kind in ("importance", "smc"):
            for k in PARTICLES:
                found[f"{method}, {kind} of {k}"] = (_of_draws(method, kind, k), _nothing)
    return found


def distance(method: str, prefix: str = "") -> Value:
    """Total variation, of what is known well enough."""
    return lambda point: (point.known(method, prefix) or {}).get(f"{prefix}tv")


def divergence(method: str, prefix: str = "") -> Value:
    """KL in nats, inf included."""
    return lambda point: point.kl(method, prefix) if point.known(method, prefix) else None


def _of_draws(method: str, kind: str, k: int) -> Value:
    return lambda point: point.drawn_tv(method, kind, k) if point.known(method) else None


def _nothing(point: Point) -> None:
    del point


def accuracy(found: Sequence[Point]) -> Table:
    """Where right answers are known."""
    lines = []
    known = [point for point in at_draws(found) if point.row["truth"]]
    for model, points in groups(known, lambda point: point.model).items():
        for name, judged in _judged().items():
            some = [point for point in points if judged(point) is not None]
            if not some:
                continue
            made = summary(some, _field(judged, "p_right"))
            lines.append(
                [
                    f"{label(model)}: {name}",
                    str(made.n),
                    made.mean_cell(),
                    summary(some, _above_free(judged)).mean_cell(),
                    _percent(some, judged, "is_right"),
                    _percent(some, judged, "same_answer"),
                ]
            )
    columns = ["method", "cases", "P(right)\nmean", "above free", "likeliest\nis right"]
    columns += ["likeliest is\nthe free one"]
    return Table("Right answers", columns, lines, [f"above free: in pairs. {INTERVALS}"])


_Judged = Callable[[Point], dict[str, Any] | None]


def _judged() -> dict[str, _Judged]:
    """Name -> p_right, is_right, same_answer of a point."""
    found: dict[str, _Judged] = {"free": lambda point: point.at}
    found |= {method: _part(method, "") for method in METHODS}
    found |= {f"{method}, weighted": _part(method, WEIGHTED) for method in METHODS[1:]}
    return found


def _part(method: str, prefix: str) -> _Judged:
    def judged(point: Point) -> dict[str, Any] | None:
        part = point.known(method, prefix)
        keys = ("p_right", "is_right", "same_answer")
        return part and {key: part[f"{prefix}{key}"] for key in keys}

    return judged


def _field(judged: _Judged, name: str) -> Value:
    return lambda point: (judged(point) or {}).get(name)


def _above_free(judged: _Judged) -> Value:
    return lambda point: (judged(point) or {})["p_right"] - point.at["p_right"]


def _percent(points: Sequence[Point], judged: _Judged, name: str) -> str:
    flags = [(judged(point) or {})[name] for point in points]
    return f"{sum(flags) / len(flags):.1%}"
