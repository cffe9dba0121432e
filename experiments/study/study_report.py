"""The distortion study as a report, and what the README says of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from experiments.run.cells import FAILURE, Row
from experiments.run.report import Report
from experiments.study import study_figure, study_report_cases, study_report_tables
from experiments.study.study_report_points import Point, at_draws, groups, label, points, summary
from experiments.study.study_report_tables import PARTS, farther

TITLE = "How much a constraint distorts a model, where it comes from, and what removes it"


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """Nothing but a title where there is no row."""
    del manifest
    every = points(rows)
    found = [point for point in every if point.is_settled()]
    made = [
        study_report_tables.methods(found),
        study_report_tables.by_family(found),
        study_report_cases.lift_worse(found),
        study_report_cases.canonical_worse(found),
        study_report_tables.by_length(found),
        study_report_tables.by_temperature(found),
        study_report_tables.variants(found, "style", "plain", "The effect of the prompt's style"),
        study_report_tables.variants(found, "boundary", "space", "The effect of the boundary"),
        study_report_tables.healing(found),
        study_report_tables.canonical_share(found),
        study_report_tables.accuracy(found),
        study_report_cases.peers(found),
        study_report_cases.large(rows),
        study_report_cases.unsettled(every),
    ]
    tables = [table for table in made if table.rows]
    return Report(TITLE, tables, study_figure.figures(found), facts(rows, every, found))


def facts(rows: Sequence[Row], every: Sequence[Point], found: Sequence[Point]) -> Row:
    """By model, at the temperature of the draws; what the README needs and others may read."""
    done = [row for row in rows if not row.get(FAILURE)]
    return {
        "finite": sum(row["kind"] == "finite" for row in done),
        "large": sum(row["kind"] == "large" for row in done),
        "points": len(every),
        "settled": len(found),
        "models": {
            model: _model_facts(some)
            for model, some in groups(at_draws(found), lambda point: point.model).items()
        },
        "notes": {row["source"]: row["note"] for row in done if row["kind"] == "model"},
    }


def _model_facts(found: Sequence[Point]) -> Row:
    lift, canonical = farther(found)
    single = [point for point in found if max(point.row["canonical_tokens"]) == 1]
    worst = {
        "lift": max(found, key=lambda point: point.tokenization),
        "canonical": min(found, key=lambda point: point.tokenization),
    }
    return {
        "cases": len(found),
        "lift_farther": lift,
        "canonical_farther": canonical,
        "parts": {name: _part_facts(found, value) for name, value in PARTS.items()},
        "single": len(single),
        "single_parts": {name: _part_facts(single, value) for name, value in PARTS.items()},
        "worst": {
            name: {"case": p.row["name"], "lift": p.lift, "canonical": p.canonical}
            for name, p in worst.items()
        },
    }


def _part_facts(found: Sequence[Point], value: Callable[[Point], float]) -> Row:
    """Nothing of nothing."""
    if not found:
        return {}
    made = summary(found, value)
    return {
        "mean": made.mean,
        "mean_interval": made.mean_interval,
        "median": made.median,
        "upper": made.upper,
        "highest": made.highest,
        "over_0.1": float(np.mean([value(point) > 0.1 for point in found])),
    }


def readme(facts: Row) -> str:
    """A short paragraph."""
    sentences = [_sentence(model, found) for model, found in facts["models"].items()]
    return "\n".join(
        [
            f"`python -m experiments run distortion-study` asks {facts['finite']} questions of "
            f"listed answers exactly, and {facts['large']} of larger languages by sampling, under "
            f"{len(facts['models'])} models ([all tables](paper_figures/distortion-study.md)). The "
            "error is the total variation distance to the model's own law, given that it writes an "
            "answer. It is taken apart into *tokenization* (the lift's beyond canonical's), "
            "*myopia* of masking step by step (canonical's beyond that with importance weights), "
            "and the *rest* (free mass that is not canonical).",
            "",
            *sentences,
        ]
    )


def _sentence(model: str, found: Row) -> str:
    parts, worst = found["parts"], found["worst"]["canonical"]
    shares = ", ".join(f"{parts[name]['mean']:.3f} {name}" for name in list(PARTS)[2:])
    told = (
        f"- *{label(model)}*, {found['cases']} cases: the lift's error is "
        f"{parts['lift']['mean']:.3f} on average (median {parts['lift']['median']:.4f}), "
        f"canonical's {parts['canonical']['mean']:.3f} ({parts['canonical']['median']:.4f}); "
        f"{shares}. The lift is farther off in {found['lift_farther']} cases, canonical in "
        f"{found['canonical_farther']} (most in `{worst['case']}`: {worst['canonical']:.2f} "
        f"against {worst['lift']:.2f})."
    )
    single = found["single_parts"]
    if found["single"]:
        told += (
            f" Where each answer is one token ({found['single']} cases), the two are "
            f"{single['lift']['mean']:.3f} and {single['canonical']['mean']:.4f} off."
        )
    return told
