"""The distortion study as a report, and what the README says of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from experiments.run.executors import FAILURE, Row
from experiments.run.report import Report
from experiments.run.tables import Table, markdown
from experiments.study import (
    study_figure,
    study_report_large,
    study_report_methods,
    study_report_tables,
)
from experiments.study.chat import PLAIN
from experiments.study.study_report_points import (
    SETTLED,
    WEIGHTED,
    Point,
    at_draws,
    groups,
    label,
    number_cell,
    points,
    questions,
    share,
    summarised,
    summary,
)
from experiments.study.study_report_tables import CLEARLY, INTERVALS, PARTS, THREE, farther

# Single cases of the study in full: the worst ones both ways, other engines, the unsettled.

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
    for model, own in groups(at_draws(found), lambda point: point.model).items():
        for method in ("outlines", "chop"):
            there = [point for point in own if point.known(method)]
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


TITLE = "How much a constraint distorts a model, where it comes from, and what removes it"


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """Nothing but a title where there is no row."""
    del manifest
    every = points(rows)
    found = [point for point in every if point.is_settled()]
    made = [
        study_report_methods.methods(found),
        study_report_tables.by_family(found),
        lift_worse(found),
        canonical_worse(found),
        study_report_tables.by_length(found),
        study_report_tables.by_temperature(found),
        study_report_tables.variants(
            found, "style", "plain", "The effect of the prompt's style", plain_chats(rows)
        ),
        study_report_tables.variants(found, "boundary", "space", "The effect of the boundary"),
        study_report_tables.healing(found),
        study_report_tables.canonical_share(found),
        study_report_methods.accuracy(found),
        peers(found),
        *study_report_large.tables(rows),
        unsettled(every),
    ]
    tables = [table for table in made if table.rows]
    return Report(TITLE, tables, study_figure.figures(found), facts(rows, every, found))


def plain_chats(rows: Sequence[Row]) -> list[str]:
    """A note on models whose chats are none."""
    done = [row for row in rows if not row.get(FAILURE) and row["kind"] == "model"]
    return [
        f"no chat format is known for {label(row['source'])}: its chats are asked in plain text"
        for row in done
        if row["chat_format"] == PLAIN
    ]


def facts(rows: Sequence[Row], every: Sequence[Point], found: Sequence[Point]) -> Row:
    """By model, at the temperature of the draws; what the README needs and others may read. finite,
    large: different cases, under however many models; finite: that are settled."""
    done = [row for row in rows if not row.get(FAILURE)]
    return {
        "finite": questions(at_draws(found)),
        "large": len({row["name"] for row in done if row["kind"] == "large"}),
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
        "shares": {name: _share_facts(found, PARTS[name]) for name in THREE},
        "kl": {
            "lift": _kl_facts(found, "lift"),
            "canonical": _kl_facts(found, "canonical"),
            "canonical, weighted": _kl_facts(found, "canonical", WEIGHTED),
        },
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


def _share_facts(found: Sequence[Point], value: Callable[[Point], float]) -> Row:
    """Of the lift's error, summed up over the cases; None for what nothing can be said of."""
    made = share(found, value, PARTS["lift"])
    value_, *ends = (None if np.isnan(v) else v for v in (made.value, *made.interval))
    return {"value": value_, "interval": ends}


def _kl_facts(found: Sequence[Point], method: str, prefix: str = "") -> Row:
    """In nats; None where no case is finite."""
    each = [(point.row["base"], point.kl(method, prefix)) for point in found]
    finite = [(base, value) for base, value in each if np.isfinite(value)]
    made = summarised(finite)
    return {
        "median": made.median if finite else None,
        "mean": made.mean if finite else None,
        "infinite": len(each) - len(finite),
    }


def readme(facts: Row) -> dict[str, str]:
    """A line of a table for each model, and the whole of it in a paragraph."""
    columns = "model", "questions", "lift: mean", "median", "canonical: mean", "median"
    lines = []
    for model, found in facts["models"].items():
        errors = [found["parts"][way] for way in ("lift", "canonical")]
        shown = [f"{error[kind]:.3f}" for error in errors for kind in ("mean", "median")]
        lines.append((label(model), str(found["cases"]), *shown))
    table = markdown(columns, lines)
    return {"distortion-study": _paragraph(facts), "distortion-study in short": table}


def _paragraph(facts: Row) -> str:
    sentences = [_sentence(model, found) for model, found in facts["models"].items()]
    return "\n".join(
        [
            f"`python -m experiments run distortion-study` asks {facts['finite']} questions of "
            f"listed answers exactly (or within {SETTLED}), and {facts['large']} of larger "
            f"languages by sampling, under {len(facts['models'])} models "
            "([all tables](paper_figures/distortion-study.md)). The "
            "error is the total variation distance to the model's own law, given that it writes an "
            "answer. It is taken apart into *tokenization* (the lift's beyond canonical's), "
            "*myopia* of masking step by step (canonical's beyond that with importance weights), "
            "and the *rest* (free mass that is not canonical).",
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
