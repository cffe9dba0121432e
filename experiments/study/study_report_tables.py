"""Where the error comes from, and what it depends on, as tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from experiments.run.executors import Row
from experiments.run.tables import Table
from experiments.study.study_report_points import (
    SETTLED,
    Point,
    at_draws,
    at_every_temperature,
    difference,
    groups,
    label,
    number_cell,
    share,
    summary,
)

CLEARLY = 0.01
"""A difference of two distances that is counted."""
SAME = f"The cases are those within {SETTLED} of exact at every temperature"
INTERVALS = "[ ]: 95 % intervals by drawing questions with replacement, variants together"


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
                *(made[key].mean_cell() for key in THREE),
                *(share(points, PARTS[key], PARTS["lift"]).cell() for key in THREE),
                _sides(points),
            ]
        )
    columns = [name, "cases", "TV lift\nmedian", "TV canonical\nmedian", "TV lift\nmean"]
    columns += [f"{key}\nmean" for key in THREE]
    columns += [f"{key}\nshare" for key in THREE]
    columns.append("lift : canonical\nfarther")
    notes = [
        "TV lift = tokenization (TV lift - TV canonical) + myopia (TV canonical - TV canonical "
        "weighted) + rest (TV canonical weighted); means add up, medians do not",
        "share: of the sum of TV lift over the cases, so that cases without error weigh nothing; "
        "below 0 where canonical, or the weights, make it worse",
        f"farther: in how many cases either is farther from the free distribution by more than "
        f"{CLEARLY}. "
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
THREE = ("tokenization", "myopia", "rest")
"""What the lift's error is taken apart into."""


def farther(points: Sequence[Point]) -> tuple[int, int]:
    """(cases in which the lift is clearly farther from the free distribution, in which canonical
    is)."""
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
        for model, some in groups(at_every_temperature(found), lambda point: point.model).items()
        for temperature, points in sorted(groups(some, lambda point: point.temperature).items())
    }
    note = f"the free distribution is the model's own at that temperature. {SAME}"
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


def variants(
    found: Sequence[Point],
    attribute: str,
    reference: str,
    title: str,
    more: Sequence[str] = (),
) -> Table:
    """Of questions that are asked in several ways: each way against the reference, in pairs. more:
    notes."""
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
        *more,
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
    every = [point for point in at_draws(found) if point.row["healing"]]
    healed = [point for point in every if _unhealed_error(point) <= SETTLED]
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
        "total variation distance to the free distribution of the same answers once the prompt's "
        "last ids "
        "are given back; free: no mask at all, so it is the prompt alone that does it. "
        f"{INTERVALS}",
        f"{len(every) - len(healed)} cases are left out: they may be off by more than {SETTLED}",
    ]
    return Table("Prompts that end inside a token", columns, lines, notes)


def _unhealed(key: str) -> Callable[[Point], float | None]:
    return lambda point: _kept(point)[key]


def _unhealed_error(point: Point) -> float:
    """How far such a distance may be from exact."""
    return float(point.at["free_slack"] + _kept(point)["slack"])


def _kept(point: Point) -> Row:
    """What the row says of the prompt as it stands, at the point's temperature."""
    found: Row = point.row["healing"]["temperatures"][_name(point)]
    return found


def _name(point: Point) -> str:
    return next(name for name, at in point.row["temperatures"].items() if at is point.at)


def canonical_share(found: Sequence[Point]) -> Table:
    """How much of the answers' free mass is canonical."""
    lines = []
    for model, some in groups(at_every_temperature(found), lambda point: point.model).items():
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
    notes = [
        f"share of the free probability of a case's answers that is canonically tokenized. {SAME}"
    ]
    return Table("How much of the free mass is canonical", columns, lines, notes)


_QUANTILES = (0.5, 0.9, 0.99)


def _not_canonical(point: Point) -> float:
    return max(0.0, 1.0 - float(point.at["methods"]["canonical"]["share"]))
