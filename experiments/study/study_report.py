"""The distortion study as tables, facts, and what the README says of them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from experiments.run import statistics
from experiments.run.executors import Row
from experiments.run.report import Figure
from experiments.run.tables import Table, markdown, records
from experiments.study import study_figure, study_large_tables, study_tables
from experiments.study.cases import PLAIN
from experiments.study.study_points import (
    CLEARLY,
    PARTS,
    SETTLED,
    THREE,
    Points,
    at_draws,
    farther,
    label,
    mean,
    of_methods,
    points,
    settled,
    share_of_lift,
)

TITLE = "How much a constraint distorts a model, where it comes from, and what removes it"


def tables(rows: pd.DataFrame, manifest: Row) -> list[Table]:
    """Those that have a line."""
    del manifest
    every, large = points(rows), records(rows[rows["kind"] == "large"])
    finite = [] if every.empty else study_tables.tables(every, plain_chats(rows))
    made = [*finite[:-1], *study_large_tables.tables(large), *finite[-1:]]
    return [table for table in made if table.rows]


def figures(rows: pd.DataFrame, manifest: Row) -> list[Figure]:
    """None where there is no point."""
    del manifest
    return study_figure.figures(settled(points(rows)))


def plain_chats(rows: pd.DataFrame) -> list[str]:
    """A note on models whose chats are none."""
    return [
        f"no chat format is known for {label(row['source'])}: its chats are asked in plain text"
        for row in records(rows[rows["kind"] == "model"])
        if row["chat_format"] == PLAIN
    ]


def facts(rows: pd.DataFrame, manifest: Row) -> Row:
    """By model, at the temperature of the draws; what the README needs and others may read. finite,
    large: different cases, under however many models; finite: that are settled."""
    del manifest
    every = points(rows)
    found = settled(every)
    kinds = {kind: records(group) for kind, group in rows.groupby("kind")}
    methods = of_methods(found)
    return {
        "finite": int(at_draws(found)["name"].nunique()),
        "large": len({row["name"] for row in kinds.get("large", [])}),
        "points": len(every),
        "settled": len(found),
        "models": {
            str(model): _model_facts(some, methods[methods["model"] == model])
            for model, some in at_draws(found).groupby("model", observed=True)
        },
        "notes": {row["source"]: row["note"] for row in kinds.get("model", [])},
    }


def _model_facts(drawn: Points, methods: pd.DataFrame) -> Row:
    lift, canonical = farther(drawn)
    single = drawn[drawn["ids"] == 1]
    worst = {"lift": drawn["tokenization"].idxmax(), "canonical": drawn["tokenization"].idxmin()}
    divergences = dict([*methods.groupby("method", observed=True)["kl"]])
    return {
        "cases": len(drawn),
        "lift_farther": lift,
        "canonical_farther": canonical,
        "parts": {name: _part_facts(drawn, name) for name in PARTS},
        "shares": {name: _share_facts(drawn, name) for name in THREE},
        "kl": {
            name: _kl_facts(divergences[name])
            for name in ("lift", "canonical", "canonical, weighted")
        },
        "single": len(single),
        "single_parts": {name: _part_facts(single, name) for name in PARTS},
        "worst": {
            name: {"case": p["name"], "lift": p["lift"], "canonical": p["canonical"]}
            for name, p in ((name, drawn.loc[place]) for name, place in worst.items())
        },
    }


def _part_facts(found: Points, part: str) -> Row:
    """Nothing of nothing."""
    made = mean(part)(found)
    if made is None:
        return {}
    value, low, high = made
    values = found[part].tolist()
    return {
        "mean": value,
        "mean_interval": (low, high),
        "median": statistics.quantile(values, 0.5),
        "upper": statistics.quantile(values, 0.9),
        "highest": max(values),
        "over_0.1": float(np.mean(found[part] > 0.1)),
    }


def _share_facts(found: Points, part: str) -> Row:
    """Of the lift's error, summed up over the cases; None for what nothing can be said of."""
    made = share_of_lift(part)(found) or (np.nan,) * 3
    value, *ends = (None if np.isnan(v) else v for v in made)
    return {"value": value, "interval": ends}


def _kl_facts(found: pd.Series[float]) -> Row:
    """In nats; None where no case is finite."""
    finite = found[np.isfinite(found)].tolist()
    return {
        "median": statistics.quantile(finite, 0.5) if finite else None,
        "mean": float(np.mean(finite)) if finite else None,
        "infinite": len(found) - len(finite),
    }


def readme(facts: Row) -> dict[str, str]:
    """A line of a table for each model, and the whole of it in a paragraph."""
    if not facts:
        return {}
    return {"distortion-study": _paragraph(facts), "distortion-study in short": _in_short(facts)}


def _in_short(facts: Row) -> str:
    columns = "model", "questions", "lift: mean", "median", "canonical: mean", "median"
    lines = []
    for model, found in facts["models"].items():
        errors = [found["parts"][way] for way in ("lift", "canonical")]
        shown = [f"{error[kind]:.3f}" for error in errors for kind in ("mean", "median")]
        lines.append((label(model), str(found["cases"]), *shown))
    return markdown(columns, lines)


def _paragraph(facts: Row) -> str:
    sentences = [_sentence(model, found) for model, found in facts["models"].items()]
    return "\n".join(
        [
            f"`python -m experiments run distortion-study` asks {facts['finite']} questions of "
            f"listed answers exactly (or within {SETTLED}), and {facts['large']} of larger "
            f"languages by sampling, under {len(facts['models'])} models "
            "([all tables](paper_figures/distortion-study.md)). The error is the total variation "
            "distance to the model's own distribution, given that it writes an answer. It is taken "
            "apart into *tokenization* (the lift's beyond canonical's), *myopia* of masking step "
            "by step (canonical's beyond that with importance weights), and the *rest* (free mass "
            "that is not canonical).",
            "",
            *sentences,
        ]
    )


def _sentence(model: str, found: Row) -> str:
    parts, kl = found["parts"], found["kl"]
    told = (
        f"- *{label(model)}*, {found['cases']} cases: the lift's error is "
        f"{parts['lift']['mean']:.3f} on average (median {parts['lift']['median']:.4f}), "
        f"canonical's {parts['canonical']['mean']:.3f} ({parts['canonical']['median']:.4f}). "
        f"{_shares(found['shares'])}The median KL divergence is {_nats(kl['lift'])} of the "
        f"lift, {_nats(kl['canonical'])} of canonical. By more than {CLEARLY}, the lift is farther "
        f"off in {found['lift_farther']} cases, canonical in {found['canonical_farther']}"
    )
    if found["canonical_farther"]:
        worst = found["worst"]["canonical"]
        told += (
            f" (most in `{worst['case']}`: {worst['canonical']:.2f} against {worst['lift']:.2f})"
        )
    told += "."
    single = found["single_parts"]
    if found["single"]:
        told += (
            f" Where each answer is one token ({found['single']} cases), the two are "
            f"{single['lift']['mean']:.3f} and {single['canonical']['mean']:.4f} off."
        )
    return told


def _shares(found: Row) -> str:
    """Nothing where there is no error."""
    if any(found[name]["value"] is None for name in THREE):
        return ""
    told = ", ".join(f"{found[name]['value']:.0%} {name}" for name in THREE)
    return f"The lift's errors, summed up, are {told}. "


def _nats(found: Row) -> str:
    if found["median"] is None:
        return "infinite"
    more = f" (infinite in {found['infinite']} cases)" if found["infinite"] else ""
    return f"{found['median']:.4f} nats{more}"
