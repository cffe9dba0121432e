"""The summaries of the study as tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from experiments.run.tables import Table
from experiments.study.distortion_config import PARTICLES
from experiments.study.study_methods import METHODS
from experiments.study.study_report_points import (
    Point,
    at_draws,
    difference,
    groups,
    label,
    number_cell,
    summary,
)

CLEARLY = 0.01
"""A difference of two distances that is counted."""
INTERVALS = "[ ]: 95 % intervals by drawing questions with replacement, variants together"


def methods(found: Sequence[Point]) -> Table:
    """How far each method is from the free law, by model, at the temperature of the draws."""
    lines = []
    for model, points in groups(at_draws(found), lambda point: point.model).items():
        for name, value in _values().items():
            made = summary(points, value)
            if not made.n:
                continue
            far = sum((value(point) or 0) > 0.1 for point in points)
            lines.append(
                [
                    f"{label(model)}: {name}",
                    str(made.n),
                    made.median_cell(4),
                    made.mean_cell(),
                    f"{made.upper:.3f}",
                    f"{made.highest:.3f}",
                    f"{far / made.n:.0%}",
                ]
            )
    columns = ["method", "cases", "median", "mean", "90 %", "worst", "over 0.1"]
    notes = [
        f"total variation distance to the free law. {INTERVALS}",
        "weighted: what importance weights and SMC converge to (the lift's is the free law itself)",
        f"of {' or '.join(map(str, PARTICLES))}: the law of one draw from a weighted population of "
        f"so many, simulated: an error of up to {_simulation_error(found):.3f} in each distance, "
        "which makes small ones larger",
        "outlines: the index of outlines-core; chop: the lift with the published heuristic for "
        "forced text",
    ]
    return Table("Distance to the model's own law", columns, lines, notes)


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


def _values() -> dict[str, Callable[[Point], float | None]]:
    """Name -> distance, None where a point has none."""
    found: dict[str, Callable[[Point], float | None]] = {}
    for method in METHODS:
        found[method] = _of_method(method)
    found["canonical, weighted"] = lambda point: point.rest
    for method in ("lift", "canonical", "chop"):
        for kind in ("importance", "smc"):
            for k in PARTICLES:
                found[f"{method}, {kind} of {k}"] = _of_draws(method, kind, k)
    return found


def _of_method(method: str) -> Callable[[Point], float | None]:
    return lambda point: point.tv(method) if method in point.at["methods"] else None


def _of_draws(method: str, kind: str, k: int) -> Callable[[Point], float | None]:
    return lambda point: point.drawn_tv(method, kind, k)


def parts(title: str, name: str, each: dict[str, list[Point]], notes: Sequence[str] = ()) -> Table:
    """The error taken apart, a line for each group of points."""
    lines = []
    for group, points in each.items():
        made = {key: summary(points, value) for key, value in PARTS.items()}
        lines.append(
            [
                group,
                str(len(points)),
                made["lift"].median_cell(4),
                made["canonical"].median_cell(4),
                made["lift"].mean_cell(),
                *(made[key].mean_cell() for key in ("tokenization", "myopia", "rest")),
                _sides(points),
            ]
        )
    columns = [name, "cases", "TV lift\nmedian", "TV canonical\nmedian", "TV lift\nmean"]
    columns += ["tokenization\nmean", "myopia\nmean", "rest\nmean", "lift : canonical\nfarther"]
    notes = [
        "TV lift = tokenization (TV lift - TV canonical) + myopia (TV canonical - TV canonical "
        "weighted) + rest (TV canonical weighted); means add up, medians do not",
        f"farther: in how many cases either is farther from the free law by more than {CLEARLY}. "
        f"{INTERVALS}",
        *notes,
    ]
    return Table(title, columns, lines, notes)


PARTS: dict[str, Callable[[Point], float]] = {
    "lift": lambda point: point.lift,
    "canonical": lambda point: point.canonical,
    "tokenization": lambda point: point.tokenization,
    "myopia": lambda point: point.myopia,
    "rest": lambda point: point.rest,
}


def farther(points: Sequence[Point]) -> tuple[int, int]:
    """(cases in which the lift is clearly farther from the free law, in which canonical is)."""
    return (
        sum(point.tokenization > CLEARLY for point in points),
        sum(point.tokenization < -CLEARLY for point in points),
    )


def _sides(points: Sequence[Point]) -> str:
    lift, canonical = farther(points)
    return f"{lift} : {canonical}"


def by_family(found: Sequence[Point]) -> Table:
    """At the temperature of the draws, all families of a model together first."""
    each: dict[str, list[Point]] = {}
    for model, points in groups(at_draws(found), lambda point: point.model).items():
        each[f"{label(model)}: all"] = points
        for family, some in sorted(groups(points, lambda point: point.row["family"]).items()):
            each[f"{label(model)}: {family}"] = some
    return parts("Where the error comes from, by family", "model: family", each)


def by_temperature(found: Sequence[Point]) -> Table:
    """Of each model."""
    each = {
        f"{label(model)}: {temperature:g}": points
        for model, some in groups(found, lambda point: point.model).items()
        for temperature, points in sorted(groups(some, lambda point: point.temperature).items())
    }
    note = "the free law is the model's own at that temperature"
    return parts("The effect of temperature", "model: temperature", each, [note])


def by_length(found: Sequence[Point]) -> Table:
    """Whether a step of masking can go wrong depends on how many steps there are."""

    def longest(point: Point) -> str:
        tokens = max(point.row["canonical_tokens"])
        return str(tokens) if tokens < 4 else "4 or more"

    each = {
        f"{label(model)}: {length}": points
        for model, some in groups(at_draws(found), lambda point: point.model).items()
        for length, points in sorted(groups(some, longest).items())
    }
    name = "model: ids"
    return parts("The effect of length: ids of the longest answer, canonically", name, each)


def variants(found: Sequence[Point], attribute: str, reference: str, title: str) -> Table:
    """Of questions that are asked in several ways: each way against the reference, in pairs."""
    lines = []
    for (model, way), pairs in pairs_of(at_draws(found), attribute, reference).items():
        points = [point for point, _ in pairs]
        cells = []
        for key in ("lift", "canonical", "rest"):
            cells.append(f"{summary(points, PARTS[key]).mean:.3f}")
            cells.append(difference(pairs, PARTS[key]).mean_cell())
        given_back = sum(point.row["healing"] is not None for point in points)
        lines.append([f"{label(model)}: {way}", str(len(points)), *cells, str(given_back)])
    columns = [f"model: {attribute}", "pairs"]
    for name in ("lift", "canonical", "rest"):
        columns += [f"TV {name}\nmean", f"against\n{reference}"]
    columns.append("healed")
    notes = [
        f"against {reference}: mean difference to the same question with it. {INTERVALS}",
        "healed: cases in which ids at the end of the prompt had to be given back, for all "
        "methods; what happens if they are not has a table of its own",
    ]
    return Table(title, columns, lines, notes)


def pairs_of(
    found: Sequence[Point], attribute: str, reference: str
) -> dict[tuple[str, str], list[tuple[Point, Point]]]:
    """(model, way of asking) -> (point, the point of the same question in the reference's way)."""
    known = {
        (point.model, point.row["base"]): point
        for point in found
        if point.row[attribute] == reference
    }
    result: dict[tuple[str, str], list[tuple[Point, Point]]] = {}
    for point in found:
        other = known.get((point.model, point.row["base"]))
        if other is not None and other is not point and point.row[attribute] != reference:
            key = (point.model, point.row[attribute])
            result.setdefault(key, []).append((point, other))
    return dict(sorted(result.items()))


def healing(found: Sequence[Point]) -> Table:
    """What a prompt does to the answer that ends where no tokenizer would cut."""
    lines = []
    healed = [point for point in at_draws(found) if point.row["healing"]]
    for model, points in groups(healed, lambda point: point.model).items():
        for name, key in (("free", "tv_free"), ("lift", "tv_lift")):
            made = summary(points, _unhealed(key))
            lines.append(
                [
                    f"{label(model)}: {name}",
                    str(made.n),
                    made.median_cell(),
                    made.mean_cell(),
                    f"{made.highest:.3f}",
                ]
            )
    columns = ["as the prompt stands", "cases", "median", "mean", "worst"]
    notes = [
        "total variation distance to the free law of the same answers once the prompt's last ids "
        f"are given back; free: no mask at all, so it is the prompt alone that does it. {INTERVALS}"
    ]
    return Table("Prompts that end inside a token", columns, lines, notes)


def _unhealed(key: str) -> Callable[[Point], float | None]:
    return lambda point: point.row["healing"]["temperatures"][_name(point)][key]


def _name(point: Point) -> str:
    return next(name for name, at in point.row["temperatures"].items() if at is point.at)


def canonical_share(found: Sequence[Point]) -> Table:
    """How much of the answers' free mass is canonical."""
    lines = []
    for model, some in groups(found, lambda point: point.model).items():
        for temperature, points in sorted(groups(some, lambda p: p.temperature).items()):
            made = summary(points, _not_canonical)
            shares = sorted(_not_canonical(point) for point in points)
            lines.append(
                [
                    f"{label(model)}: {temperature:g}",
                    str(made.n),
                    *(number_cell(1 - shares[int(q * (len(shares) - 1))]) for q in _QUANTILES),
                    number_cell(1 - made.highest),
                    str(sum(share > 0.1 for share in shares)),
                ]
            )
    columns = ["model: temperature", "cases", "median", "10 %", "1 %", "least", "under 0.9"]
    notes = ["share of the free probability of a case's answers that is canonically tokenized"]
    return Table("How much of the free mass is canonical", columns, lines, notes)


_QUANTILES = (0.5, 0.9, 0.99)


def _not_canonical(point: Point) -> float:
    return max(0.0, 1.0 - float(point.at["methods"]["canonical"]["share"]))


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
    for method in METHODS:
        found[method] = _part(method)
    found["canonical, weighted"] = _weighted
    return found


def _part(method: str) -> _Judged:
    return lambda point: point.at["methods"].get(method)


def _weighted(point: Point) -> dict[str, Any] | None:
    part = point.at["methods"]["canonical"]
    return {key: part[f"weighted_{key}"] for key in ("p_right", "is_right", "same_answer")}


def _field(judged: _Judged, name: str) -> Callable[[Point], float | None]:
    return lambda point: (judged(point) or {}).get(name)


def _above_free(judged: _Judged) -> Callable[[Point], float | None]:
    return lambda point: (judged(point) or {})["p_right"] - point.at["p_right"]


def _percent(points: Sequence[Point], judged: _Judged, name: str) -> str:
    flags = [(judged(point) or {})[name] for point in points]
    return f"{sum(flags) / len(flags):.1%}"
