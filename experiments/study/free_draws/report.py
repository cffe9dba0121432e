"""Tables, figure and facts of the free draws, from their rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import xlogy

from experiments import statistics
from experiments.answers.methods import OUR_METHODS
from experiments.answers.targets import COMPLETE, PREFIX, SEQUENCE
from experiments.models import labels
from experiments.run.executors import Row
from experiments.run.report import Figure, panels
from experiments.run.tables import Column, Table, fixed, percent, records, small, table, whole
from experiments.shared.shown import CANONICAL, LIFT, model_notes
from experiments.statistics import clopper_pearson

OUTCOMES = {
    "complete": "an answer, then the end",
    "goes on": "ids that spell one, then others",
    "past": "an id runs past its end",
}
"""Of a draw whose text begins with an answer, and what they mean."""
ACCEPTED = {SEQUENCE: ("complete", "goes on"), PREFIX: (*OUTCOMES,), COMPLETE: ("complete",)}
"""By target, the draws that rejection sampling keeps."""
SIMULATED = 100_000
"""Draws of the test of fit; with fewer no p, times the number of tests, could be below `ALPHA`."""
KNOWN = 0.01
"""Of a target's mass, what may be missing at most where it is said to be exact."""
ALPHA = 1e-3
"""A corrected p below it is wrong. Of a thousand runs of right numbers one has such a p, at
most."""

TITLE = "What the models' own `generate` writes, and what the exact numbers say"


def points(rows: pd.DataFrame) -> list[Row]:
    """A line for each model and prompt that was drawn from. p: of the test of fit."""
    drawn = [row for row in records(rows) if row.get("draws")]
    return [_point(row) for row in drawn]


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
        "cost": _cost(row),
        "p": fit(row),
    }


def _accepted(row: Row, target: str) -> int:
    return sum(sum(row["counts"][outcome]) for outcome in ACCEPTED[target])


def _cost(row: Row) -> Row:
    """Ids that rejection sampling reads for one accepted text, by target: those of a draw over the
    exact share of draws that are accepted; None where that share is not known. The id behind an
    answer that is spelled exactly is only needed to see whether the sequence ends."""
    n, exact = row["draws"], row["exact"]
    behind = {COMPLETE: 0, SEQUENCE: _accepted(row, SEQUENCE), PREFIX: _accepted(row, SEQUENCE)}
    return {
        target: (row["read"] - behind[target]) / n / 10 ** exact["log10_mass"][target]
        if exact["slack"][target] <= KNOWN
        else None
        for target in ACCEPTED
    }


def fit(row: Row) -> float:
    """p of the exact test that the counts of all outcomes of all answers, and of none of them, come
    from the exact probabilities: the share of `SIMULATED` multinomial draws whose likelihood ratio
    is no less than that of the counts. 0 where something came that has probability 0."""
    counts = [k for outcome in OUTCOMES for k in row["counts"][outcome]]
    shares = [p for outcome in OUTCOMES for p in row["exact"]["probability"][outcome]]
    return _fit(tuple(counts), tuple(shares), row["draws"])


@lru_cache(maxsize=256)
def _fit(counts: tuple[int, ...], shares: tuple[float, ...], n: int) -> float:
    p = np.clip([*shares, 1 - sum(shares)], 0.0, 1.0)
    observed = np.array([*counts, n - sum(counts)])
    if (observed[p == 0] > 0).any():
        return 0.0
    there = p > 0
    simulated = np.random.default_rng(0).multinomial(n, p[there] / p[there].sum(), SIMULATED)
    expected = n * p[there]
    as_far = _ratio(simulated, expected) >= _ratio(observed[there], expected) - 1e-9
    return float((1 + as_far.sum()) / (1 + SIMULATED))


def _ratio(counts: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """The log-likelihood ratio of each row, sum k log(k / expected)."""
    total: np.ndarray = xlogy(counts, counts / expected).sum(axis=-1)
    return total


def corrected(found: Sequence[Row]) -> float | None:
    """The least p, times how many there are (Bonferroni)."""
    return min(1.0, min(point["p"] for point in found) * len(found)) if found else None


def _of(field: str, *path: str) -> Callable[[pd.DataFrame], Any]:
    def of(group: pd.DataFrame) -> Any:
        value = group[field].iloc[0]
        for name in path:
            value = value[name]
        return value

    return of


def _mass(target: str) -> Callable[[pd.DataFrame], str]:
    def of(group: pd.DataFrame) -> str:
        is_known = group["slack"].iloc[0][target] <= KNOWN
        return ("" if is_known else "over ") + small(group["mass"].iloc[0][target])

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
                Column(f"{target}\nexact", _mass(target)),
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
        "an answer, then the end; intervals: 95 %, Clopper-Pearson, each for itself: of all of "
        "them some miss (p is of all counts together)",
        "canonical: of draws that spelled an answer exactly, those by the tokenizer's own ids",
        "p: exact multinomial test (likelihood ratio, simulated) of the counts of every answer as "
        f"complete, gone on from or gone past, and of none; the least of {len(found)}, times their "
        "number: "
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
            [
                "ids of a draw until it can begin with no answer any more, or has spelled one "
                "(and, for complete, the id behind it), over the exact probability; -: that is not "
                "known"
            ],
        ),
        table(
            "Total variation distance to each target",
            found,
            distances,
            [
                "complete: over the tokenizations that were read; slack: how far a distance to it "
                "may be from exact, at most (at 1, nothing is known of it)"
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
        "pairs": sum(map(bool, rows["exact"])) if "exact" in rows else 0,
        "least_mass": manifest["config"]["least_mass"],
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
        f"Of {facts['pairs']} pairs of a prompt and a model, {facts['points']} have answers of a "
        f"mass over {facts['least_mass']:g}; {facts['draws']:,} texts were drawn after these with "
        "`generate`, which knows no mask. They show no disagreement: the smallest p-value of the "
        "tests of all outcomes, Bonferroni-corrected, is "
        f"{facts['least_p']:.2g}, and no share of texts that begin with an answer is off by more "
        f"than {facts['largest_gap']:.3f}."
    ]
    prices = [
        f"{statistics.median(found):,.0f} ids for a text that {name} (at most {found[-1]:,.0f})"
        for target, name in ((SEQUENCE, "spells an answer exactly"), (PREFIX, "begins with one"))
        if (found := costs[target])
    ]
    if prices:
        told.append(f"Rejection sampling needs a median of {' and of '.join(prices)}.")
    return " ".join(told)


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
    drawn, axes = panels(1, len(OUTCOMES), (9, 3.6), "both", sharex=True, sharey=True)
    for axis, (outcome, meaning) in zip(axes[0], OUTCOMES.items(), strict=True):
        axis.plot([0, 1], [0, 1], color="#bbbbbb", linewidth=1, zorder=0)
        for number, name in enumerate(manifest["config"]["models"]):
            some = [row for row in each if row["model"] == name]
            exact = [p for row in some for p in row["exact"]["probability"][outcome]]
            shares = [k / row["draws"] for row in some for k in row["counts"][outcome]]
            label = labels(manifest)[name].partition(" ")[0]
            color, marker = (CANONICAL, LIFT)[number % 2], "os^D"[number % 4]
            axis.scatter(exact, shares, s=14, color=color, marker=marker, label=label, alpha=0.8)
        axis.set_xscale("symlog", linthresh=1e-3)
        axis.set_yscale("symlog", linthresh=1e-3)
        axis.set_xlim(0, 1)
        axis.set_ylim(0, 1)
        axis.set_title(meaning, loc="left", fontsize=10)
        axis.set_xlabel("exact probability")
    axes[0][0].set_ylabel("share of the draws")
    axes[0][0].legend(fontsize=8, frameon=False)
    draws = sum(row["draws"] for row in each)
    note = (
        f"{draws:,} draws of {len(each)} prompts and models; each point an answer. Axes are linear "
        "below 0.001."
    )
    return [Figure("free_draws", drawn, "Free draws fall where the exact numbers are", note)]
