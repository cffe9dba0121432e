"""Single cases of the study in full: the worst ones both ways, other engines, what was sampled."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.run.cells import FAILURE, Row
from experiments.run.tables import Table
from experiments.study.study_report_points import (
    SETTLED,
    Point,
    at_draws,
    groups,
    label,
    number_cell,
)

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
            there = [point for point in points if method in point.at["methods"]]
            other = [point for point in there if method not in point.row["as_lift"]]
            nearer = sum(point.tv(method) < point.lift - SETTLED for point in other)
            farther = sum(point.tv(method) > point.lift + SETTLED for point in other)
            lost = [point.at["methods"][method]["lost"] for point in there]
            lines.append(
                [
                    f"{label(model)}: {method}",
                    str(len(there)),
                    str(len(other)),
                    str(nearer),
                    str(farther),
                    number_cell(max(lost, default=0.0)),
                ]
            )
    columns = [
        "method",
        "cases",
        "other\nsequences",
        "nearer by\nover 0.01",
        "farther by\nover 0.01",
    ]
    columns.append("most\nlost")
    notes = [
        "other sequences: cases in which it allows other ids than the lift; nearer, farther: to "
        "the free law than the lift; lost: probability of running into a dead end",
        *absent(found),
    ]
    return Table("Engines beside the lift", columns, lines, notes)


def absent(found: Sequence[Point]) -> list[str]:
    """Why methods are missing, once for each reason."""
    reasons: dict[tuple[str, str], int] = {}
    for point in at_draws(found):
        for method, reason in point.row["absent"].items():
            reasons[method, reason] = reasons.get((method, reason), 0) + 1
    return [f"{method} is absent in {n} cases: {why}" for (method, why), n in reasons.items()]


def large(rows: Sequence[Row]) -> Table:
    """The sampled cases, one line each."""
    lines = []
    for row in rows:
        if row.get(FAILURE) or row["kind"] != "large":
            continue
        lift, canonical = row["methods"]["lift"], row["methods"]["canonical"]
        lines.append(
            [
                f"{label(row['model'])}: {row['name']}",
                f"{lift['ended']}, {canonical['ended']}",
                _plus_minus(row["not_canonical"]),
                _plus_minus(row["canonical_share"]),
                f"{lift['effective']:.1f}",
                f"{canonical['effective']:.1f}",
                _log_z(lift),
                _log_z(canonical),
                *_feature_cells(row, "first"),
                *_feature_cells(row, "length"),
            ]
        )
    columns = ["case", "whole", "lift not\ncanonical", "free mass\ncanonical", "ESS\nlift"]
    columns += ["ESS\ncanonical", "log Z\nlift", "log Z\ncanonical"]
    for name in ("first", "length"):
        columns += [f"TV {name}\nlift", f"TV {name}\ncanonical"]
    n = next((row["samples"] for row in rows if row.get("kind") == "large"), 0)
    notes = [
        f"{n} samples of each method; whole: texts of either that came to their end; lift not "
        "canonical: share of its samples that the tokenizer would not write so; free mass "
        "canonical: from both methods' weights; ±: standard errors",
        "ESS: effective sample size, of the whole texts; Z: the model's probability of the "
        "method's sequences, its natural log with the standard error. The lift's cannot be less "
        "than canonical's: where it comes out so, its samples missed nearly all of the mass",
        "TV first, TV length: between the law of the first character, or of the length in classes "
        "of four bytes, and the free one by both methods' weights, with 95 % bootstrap intervals; "
        "few effective samples make all of these unreliable",
    ]
    return Table("Large languages, by sampling", columns, lines, notes)


def _plus_minus(found: Row | None) -> str:
    return "-" if found is None else f"{found['value']:.3f} ± {found['error']:.3f}"


def _log_z(found: Row) -> str:
    if found["log_z"] is None:
        return "-"
    error = found["log_z_error"]
    return f"{found['log_z']:.2f}" + ("" if error is None else f" ± {error:.2f}")


def _feature_cells(row: Row, name: str) -> list[str]:
    found = row["features"].get(name)
    if found is None:
        return ["-", "-"]
    return [
        f"{at['value']:.2f} [{at['low']:.2f}, {at['high']:.2f}]"
        for at in (found["tv"]["lift"], found["tv"]["canonical"])
    ]


def unsettled(found: Sequence[Point]) -> Table:
    """Points that enter no summary."""
    lines = [
        [
            f"{label(point.model)}: {point.row['name']}, {point.temperature:g}",
            str(point.row["asked"]),
            number_cell(point.at["free_slack"]),
            number_cell(point.at["methods"]["lift"]["slack"]),
            number_cell(point.at["methods"]["canonical"]["slack"]),
        ]
        for point in found
        if not point.is_settled()
    ]
    columns = ["case, temperature", "positions", "free", "lift", "canonical"]
    notes = [f"left out of all summaries: more than {SETTLED} of a law belongs to no answer yet"]
    return Table("Cases that are too large for their budget", columns, lines, notes)
