"""Tables, figure and facts of the free draws, from their rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from experiments.answers.methods import OUR_METHODS
from experiments.answers.targets import COMPLETE, PREFIX, SEQUENCE
from experiments.run import statistics
from experiments.run.executors import Row
from experiments.run.report import Figure, panels
from experiments.run.statistics import clopper_pearson
from experiments.run.tables import Column, Table, fixed, percent, records, small, table, whole
from experiments.shared.models import labels
from experiments.shared.shown import model_notes

OUTCOMES = ("complete", "goes on", "past")
"""Of a draw whose text begins with an answer."""
ACCEPTED = {SEQUENCE: ("complete", "goes on"), PREFIX: OUTCOMES, COMPLETE: ("complete",)}
"""By target, the draws that rejection sampling keeps."""
LEAST_EXPECTED = 5.0
"""Outcomes that are expected less often are counted together."""
ALPHA = 1e-3
"""A corrected p below it is wrong: of a thousand runs of right numbers, one at most has any."""

TITLE = "What the models' own `generate` writes, and what the exact numbers say"


def points(rows: pd.DataFrame) -> list[Row]:
    """A line for each model and prompt that was drawn from. p: of the test of fit."""
    drawn = [row for row in records(rows) if row.get("draws")]
    return [point | _cost(point) for point in map(_point, drawn)]


def _point(row: Row) -> Row:
    n, exact = row["draws"], row["exact"]
    counts = {target: _accepted(row, target) for target in ACCEPTED}
    spelled = counts[SEQUENCE]
    return {
        "model": row["model"],
        "prompt": row["prompt"],
        "draws": n,
        "mass": {target: 10**log for target, log in exact["log10_mass"].items()},
        "drawn": {target: [k / n, *clopper_pearson(k, n, 0.05)] for target, k in counts.items()},
        "canonical": exact["canonical"],
        "drawn_canonical": row["canonical"] / spelled if spelled else None,
        "tv": exact["tv"],
        "slack": exact["slack"],
        "read": row["read"] / n,
        "p": fit(row),
    }


def _accepted(row: Row, target: str) -> int:
    return sum(sum(row["counts"][outcome]) for outcome in ACCEPTED[target])


def _cost(point: Row) -> Row:
    """Ids that are read for one accepted text, by target; None where none was accepted."""
    drawn = {target: found[0] for target, found in point["drawn"].items()}
    return {"cost": {t: point["read"] / share if share else None for t, share in drawn.items()}}


def fit(row: Row) -> float | None:
    """p of the chi-squared test that the counts of all outcomes come from the exact probabilities;
    None where all are expected together."""
    n = row["draws"]
    counts = np.concatenate([row["counts"][outcome] for outcome in OUTCOMES])
    shares = np.concatenate([row["exact"]["probability"][outcome] for outcome in OUTCOMES])
    counts = np.append(counts, n - counts.sum())
    shares = np.append(shares, 1 - shares.sum()).clip(0)
    often = n * shares >= LEAST_EXPECTED
    observed = np.append(counts[often], counts[~often].sum())
    expected = np.append(shares[often], shares[~often].sum()) * n
    if expected[-1] < LEAST_EXPECTED and len(expected) > 1:
        observed = np.append(observed[:-2], observed[-2:].sum())
        expected = np.append(expected[:-2], expected[-2:].sum())
    if len(expected) < 2:
        return None
    return float(stats.chisquare(observed, expected * n / expected.sum()).pvalue)


def corrected(found: Sequence[Row]) -> float | None:
    """The least p, times how many there are (Bonferroni)."""
    each = [point["p"] for point in found if point["p"] is not None]
    return min(1.0, min(each) * len(each)) if each else None


def _of(field: str, *path: str) -> Callable[[pd.DataFrame], Any]:
    def of(group: pd.DataFrame) -> Any:
        value = group[field].iloc[0]
        for name in path:
            value = value[name]
        return value

    return of


def _drawn(target: str) -> Callable[[pd.DataFrame], str]:
    def of(group: pd.DataFrame) -> str:
        return "{:.4f} [{:.4f}, {:.4f}]".format(*group["drawn"].iloc[0][target])

    return of


def tables(rows: pd.DataFrame, manifest: Row) -> list[Table]:
    """Masses, canonical ids and costs; distances of the methods from each target."""
    found, names = pd.DataFrame(points(rows)), labels(manifest)
    head = [
        Column("model", lambda one: names[one["model"].iloc[0]].partition(" ")[0]),
        Column("prompt", "prompt"),
    ]
    masses = [
        *head,
        Column("draws", "draws", whole),
        *(
            column
            for target in ACCEPTED
            for column in (
                Column(f"{target}\nexact", _of("mass", target), small),
                Column(f"{target}\ndrawn", _drawn(target)),
            )
        ),
        Column("canonical\nexact", "canonical", percent(2)),
        Column("canonical\ndrawn", "drawn_canonical", percent(2)),
        Column("p", "p", small),
    ]
    costs = [
        *head,
        Column("ids read\na draw", "read", fixed(2)),
        *(Column(f"ids for one\n{t}", _of("cost", t), fixed(1)) for t in ACCEPTED),
    ]
    distances = [
        *head,
        *(
            Column(f"{method}\n{target}", _of("tv", target, method), fixed(4))
            for method in OUR_METHODS
            for target in ACCEPTED
        ),
        Column("slack of\ncomplete", _of("slack", COMPLETE), small),
    ]
    least = manifest["config"]["least_mass"]
    out = [row for row in records(rows) if row.get("exact") and not row.get("draws")]
    said = [
        "sequence: ids that spell an answer exactly; prefix: texts that begin with one; complete: "
        "an answer, then the end; intervals: 95 %, Clopper-Pearson",
        "canonical: of draws that spelled an answer exactly, those by the tokenizer's own ids",
        "p: chi-squared, of the counts of every answer as complete, gone on from or gone past, and "
        f"of none; the least of {len(found)}, times their number: "
        f"{_shown(corrected(points(rows)))}",
        f"not drawn from, for their answers have less than {least:g}: {_left_out(out, names)}",
        *model_notes(manifest, set(names.values())),
    ]
    return [
        table(TITLE, found, masses, said),
        table(
            "What rejection sampling costs",
            found,
            costs,
            ["a draw is read until it can begin with no answer any more, or has ended one"],
        ),
        table(
            "Total variation distance to each target",
            found,
            distances,
            [
                "complete: over the tokenizations that were read; slack: what the others might be "
                "of it, at most"
            ],
        ),
    ]


def _shown(p: float | None) -> str:
    return "-" if p is None else small(p)


def _left_out(rows: Sequence[Row], names: dict[str, str]) -> str:
    model = {name: label.partition(" ")[0] for name, label in names.items()}
    return ", ".join(f"{row['prompt']} ({model[row['model']]})" for row in rows) or "none"


def facts(rows: pd.DataFrame, manifest: Row) -> Row:
    """points: models and prompts; least_p: corrected for their number; the furthest that a drawn
    share of texts that begin with an answer is from the exact one."""
    found = points(rows)
    gaps = [abs(p["drawn"][PREFIX][0] - p["mass"][PREFIX]) for p in found]
    return {
        "points": len(found),
        "prompts": len({point["prompt"] for point in found}),
        "draws": sum(point["draws"] for point in found),
        "least_p": corrected(found),
        "largest_gap": max(gaps, default=None),
        "cost": {
            target: [c for p in found if (c := p["cost"][target]) is not None]
            for target in ACCEPTED
        },
    }


def readme(facts: Row) -> str:
    """What the report says of it."""
    if not facts.get("points"):
        return ""
    costs = {target: sorted(found) for target, found in facts["cost"].items()}
    told = [
        f"{statistics.median(found):,.0f} ids in the median for one {name} (at most "
        f"{found[-1]:,.0f}, in {len(found)} of {facts['points']})"
        for target, name in (
            (SEQUENCE, "that spells an answer exactly"),
            (PREFIX, "that begins with one"),
            (COMPLETE, "that ends with it"),
        )
        if (found := costs[target])
    ]
    return (
        f"Of the 18 prompts, {facts['prompts']} have answers of a mass over 0.01 under one of the "
        f"models at least, {facts['points']} prompts and models in all. {facts['draws']:,} texts "
        "were drawn with `generate`, which knows no mask. The share that begins with an answer is "
        f"nowhere more than {facts['largest_gap']:.3f} from the exact one, and of the tests of all "
        f"outcomes the least has p = {facts['least_p']:.2g}, corrected for their number: the exact "
        "numbers are the model's. Rejection sampling, which needs no mask either, reads "
        f"{'; '.join(told)}."
    )


def wrong(rows: pd.DataFrame, manifest: Row) -> list[str]:
    """Where the draws contradict the exact numbers."""
    least = corrected(points(rows))
    if least is None or least >= ALPHA:
        return []
    return [f"the draws do not fit the exact probabilities: corrected p = {least:.1e}"]


def figures(rows: pd.DataFrame, manifest: Row) -> list[Figure]:
    """Drawn against exact, of each answer and outcome."""
    each = [row for row in records(rows) if row.get("draws")]
    if not each:
        return []
    drawn, axes = panels(1, len(OUTCOMES), (11, 4.2), "both", sharex=True, sharey=True)
    for axis, outcome in zip(axes[0], OUTCOMES, strict=True):
        axis.plot([0, 1], [0, 1], color="#bbbbbb", linewidth=1, zorder=0)
        for name, color in zip(manifest["config"]["models"], ("#1f77b4", "#d95f02"), strict=False):
            some = [row for row in each if row["model"] == name]
            exact = [p for row in some for p in row["exact"]["probability"][outcome]]
            shares = [k / row["draws"] for row in some for k in row["counts"][outcome]]
            label = labels(manifest)[name].partition(" ")[0]
            axis.scatter(exact, shares, s=14, color=color, label=label, alpha=0.8)
        axis.set_xscale("symlog", linthresh=1e-3)
        axis.set_yscale("symlog", linthresh=1e-3)
        axis.set_xlim(0, 1)
        axis.set_ylim(0, 1)
        axis.set_title(outcome, loc="left", fontsize=10)
        axis.set_xlabel("exact probability")
    axes[0][0].set_ylabel("share of the draws")
    axes[0][0].legend(fontsize=8, frameon=False)
    draws = sum(row["draws"] for row in each)
    note = (
        f"{draws:,} draws of {len(each)} prompts and models; each point an answer. Axes are linear "
        "below 0.001."
    )
    return [Figure("free_draws", drawn, "Free draws fall where the exact numbers are", note)]
