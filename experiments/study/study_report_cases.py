"""Single cases of the study in full: the worst ones both ways, other engines, the unsettled."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from experiments.run.tables import Table
from experiments.study.study_report_points import (
    SETTLED,
    Point,
    at_draws,
    groups,
    label,
    number_cell,
    summary,
)
from experiments.study.study_report_tables import CLEARLY, INTERVALS

WORST = 10
"""Cases in each of the two tables of worst ones."""


def lift_worse(found: Sequence[Point]) -> Table:
    """Where masking over any tokenization costs most, against canonical."""
    ordered = sorted(at_draws(found), key=lambda point: -point.tokenization)
    chosen = [point for point in ordered if point.tokenization > 0][:WORST]
    return in_full("Worst cases: the lift is farther from the model's law", chosen)


def canonical_worse(found: Sequence[Point]) -> Table:
    """Counter-examples: where masking over the own tokenization costs most, against the lift."""
    ordered = sorted(at_draws(found), key=lambda point: point.tokenization)
    chosen = [point for point in ordered if point.tokenization < 0][:WORST]
    return in_full("Worst cases: canonical is farther from the model's law", chosen)


def in_full(title: str, chosen: Sequence[Point]) -> Table:
    """Every answer of each case under every law; prompts are notes."""
    lines, notes = [], []
    for place, point in enumerate(chosen, start=1):
        methods = point.at["methods"]
        for k, answer in enumerate(point.row["answers"]):
            first = k == 0
            name = f"{place}. {label(point.model)}: {point.row['name']}" if first else ""
            right = " *" if answer in point.row["truth"] else ""
            lines.append(
                [
                    name,
                    f"{answer!r}{right}",
                    f"{point.at['free'][k]:.4f}",
                    f"{methods['lift']['law'][k]:.4f}",
                    f"{methods['canonical']['law'][k]:.4f}",
                    f"{methods['canonical']['weighted'][k]:.4f}",
                    str(point.row["canonical_tokens"][k]),
                    number_cell(point.lift) if first else "",
                    number_cell(point.canonical) if first else "",
                ]
            )
        healed = point.row["healing"]
        given = f", {healed['text']!r} given back" if healed else ""
        notes.append(f"{place}. after {point.row['prompt']!r} ({point.row['style']}{given})")
    columns = ["case", "answer", "free", "lift", "canonical", "canonical\nweighted", "ids"]
    columns += ["TV lift", "TV canonical"]
    return Table(title, columns, lines, ["*: a right answer; ids: of its own tokenization", *notes])


def peers(found: Sequence[Point]) -> Table:
    """Where outlines-core and chop are not the lift."""
    lines = []
    for model, points in groups(at_draws(found), lambda point: point.model).items():
        for method in ("outlines", "chop"):
            there = [point for point in points if point.known(method)]
            if not there:
                continue
            other = [point for point in there if method not in point.row["as_lift"]]
            nearer = sum(point.tv(method) < point.lift - CLEARLY for point in other)
            farther = sum(point.tv(method) > point.lift + CLEARLY for point in other)
            lost = [point.at["methods"][method]["lost"] for point in there]
            written = summary(there, _written(method))
            lines.append(
                [
                    f"{label(model)}: {method}",
                    str(len(there)),
                    str(len(other)),
                    str(nearer),
                    str(farther),
                    number_cell(max(lost)),
                    written.mean_cell(4),
                    number_cell(min(written.values)),
                ]
            )
    columns = [
        "method",
        "cases",
        "other\nsequences",
        f"nearer by\nover {CLEARLY}",
        f"farther by\nover {CLEARLY}",
        "most\nlost",
        "free mass it\ncan write, mean",
        "least",
    ]
    notes = [
        "other sequences: cases in which it allows other ids than the lift; nearer, farther: to "
        "the free law than the lift; lost: probability of running into a dead end",
        f"free mass it can write: what it lacks is out of reach of its weights too. {INTERVALS}",
        *absent(found),
    ]
    return Table("Engines beside the lift", columns, lines, notes)


def _written(method: str) -> Callable[[Point], float]:
    """Share of the free mass in what a method can write."""
    return lambda point: float(point.at["methods"][method]["share"])


def absent(found: Sequence[Point]) -> list[str]:
    """Why methods are missing, once for each reason."""
    reasons: dict[tuple[str, str], int] = {}
    for point in at_draws(found):
        for method, reason in point.row["absent"].items():
            reasons[method, reason] = reasons.get((method, reason), 0) + 1
    return [f"{method} is absent in {n} cases: {why}" for (method, why), n in reasons.items()]


def unsettled(found: Sequence[Point]) -> Table:
    """Points that enter no summary."""
    lines = [
        [
            f"{label(point.model)}: {point.row['name']}, {point.temperature:g}",
            str(point.row["asked"]),
            number_cell(point.at["free_slack"]),
            number_cell(point.at["methods"]["lift"]["slack"]),
            number_cell(point.at["methods"]["canonical"]["slack"]),
            number_cell(point.at["methods"]["canonical"]["weighted_slack"]),
        ]
        for point in found
        if not point.is_settled()
    ]
    columns = ["case, temperature", "positions", "free", "lift", "canonical"]
    columns.append("canonical\nweighted")
    notes = [
        "probability of each law that belongs to no answer yet. Left out of all summaries: a "
        f"distance may be off by more than {SETTLED}"
    ]
    return Table("Cases that are too large for their budget", columns, lines, notes)
