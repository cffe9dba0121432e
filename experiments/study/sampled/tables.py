"""The tables of the larger languages of the study, which are sampled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from experiments.answers.methods import OUR_METHODS
from experiments.run.executors import Row
from experiments.run.statistics import clopper_pearson
from experiments.run.tables import (
    Column,
    Group,
    Table,
    fixed,
    highest,
    interval,
    is_missing,
    median,
    several,
    table,
    whole,
)
from experiments.study.enumerated.points import in_order, label
from experiments.study.enumerated.tables import absent, by, named

METHODS = {
    "lift": "lift",
    "outlines": "outlines-core",
    "chop": "chop",
    "canonical": "canonical",
    "lift SMC": "lift, SMC",
    "canonical SMC": "canonical, SMC",
    "canonical weighted": "canonical, weighted",
}
"""In the order of the tables."""
FEATURES = ("first", "length", "right")
FEW = 10
"""Effective samples of the free distribution, below which intervals are not given."""
ALPHA = 0.05


def tables(rows: Sequence[Row]) -> list[Table]:
    """rows: of larger languages; none of no rows."""
    if not rows:
        return []
    found = [row | _said_of(row) for row in rows]
    cases = pd.json_normalize(found)
    return [distances(rows), accuracy(cases[cases["truth"].map(bool)]), in_full(cases)]


def _said_of(row: Row) -> Row:
    """shown: its name; p_right: the probability of a right answer by weights; shown_tv: distances
    with interval and noise."""
    features, healed = row["features"], " +" if row["healing"] else ""
    right, p_right = features.get("right"), {}
    if right:
        place = right["values"].index("right") if "right" in right["values"] else None
        each = {"free": right["free"], **right["laws"]}
        p_right = {name: 0.0 if place is None else one[place] for name, one in each.items()}
    shown_tv = {
        name: {method: _distance(features[name], method) for method in OUR_METHODS}
        for name in FEATURES[:2]
        if name in features
    }
    name = f"{label(row['model'])}: {row['name']}{healed}"
    return {"shown": name, "p_right": p_right, "shown_tv": shown_tv}


def _distance(made: Row, method: str) -> str:
    at = made["tv"][method]
    if at["noise"] is None or made["effective"] < FEW:
        return f"{at['value']:.2f} [?]"
    return f"{at['value']:.2f} [{at['low']:.2f}, {at['high']:.2f}], {at['noise']:.2f}"


def distances(rows: Sequence[Row]) -> Table:
    """By model, feature and method."""
    lines = in_order(pd.DataFrame(_feature_lines(rows)), "model")
    lines["few"] = lines["effective"] < FEW
    numbers = ["value", "noise", "low", "high"]
    lines[numbers] = lines[numbers].astype(float)
    lines.loc[lines["few"] | lines["noise"].isna(), numbers] = np.nan
    # a method is shown where some case says something of it
    shown = (
        lines.groupby(["model", "feature", "method"], observed=True)["noise"].transform("count") > 0
    )
    lines["name"] = lines["feature"] + ", " + lines["method"].map(METHODS)
    lines = in_order(in_order(lines, "feature", FEATURES), "method", tuple(METHODS))
    columns = [
        named("feature, method", "name"),
        Column("cases", lambda group: group["noise"].count(), whole),
        Column("too few\nsamples", lambda group: group["few"].sum(), whole),
        Column("median TV", median("value"), fixed(3)),
        Column("median\nnoise", median("noise"), fixed(3)),
        Column("interval\nabove 0", lambda group: (group["low"] > 0).sum(), whole),
        Column("greatest\nlower end", highest("low"), fixed(3)),
    ]
    return table(
        "Larger languages: distance to the model's own distribution",
        by(lines[shown], "feature", "method"),
        columns,
        _told(rows),
    )


def _feature_lines(rows: Sequence[Row]) -> list[Row]:
    """Of each case, for each of its features and each method, there or not."""
    nothing = dict.fromkeys(("value", "noise", "low", "high"))
    return [
        {
            "model": row["model"],
            "feature": feature,
            "method": method,
            "effective": made["effective"],
            **made["tv"].get(method, nothing),
        }
        for row in rows
        for feature, made in row["features"].items()
        for method in METHODS
    ]


def _told(rows: Sequence[Row]) -> list[str]:
    return [
        f"{rows[0]['samples']} samples of each method in each case; SMC: one text of a population "
        f"of {rows[0]['particles']}, taken by its weight; weighted: canonical's samples by their "
        "weights, what is left then is free mass that is not canonical",
        "TV: between the distribution of the first character, of the length in classes of four "
        "bytes, or of whether the answer is right, and the model's own by the weights of both "
        "methods. Values seen fewer than 5 times are one",
        "noise: the TV that samples of these sizes and weights show on average where nothing "
        "differs. TV from samples is biased upwards: it means something only well above that",
        "interval: 95 %, TV ± the 0.95 quantile of the distance between the resampled difference "
        "of the distributions and the estimated one. It can hold a TV of 0: of cases without any "
        "difference it lies above 0 in about 5 %, with 10 to 15 effective samples in up to 10 % "
        "(simulated)",
        f"too few samples: cases in which the model's distribution rests on fewer than {FEW} "
        "effective ones",
        *absent(rows),
    ]


def accuracy(cases: pd.DataFrame) -> Table:
    """Where a right answer is known."""
    right = {"lift SMC": "lift\nSMC", "canonical SMC": "canonical\nSMC", "free": "free"}
    columns = [
        Column("case", "shown"),
        *(
            Column(m, proportion(f"methods.{m}.right", "samples"), interval(fixed(3)))
            for m in ("lift", "outlines", "chop", "canonical")
        ),
        *(Column(name, stored(f"p_right.{m}"), several(fixed(3))) for m, name in right.items()),
        Column("ESS of\nfree", stored("features.right.effective"), several(fixed(1))),
    ]
    notes = [
        "share of the samples that are a right answer, in full; texts that were cut off are not. "
        "[ ]: 95 %, Clopper & Pearson",
        "SMC and free (the model's own distribution): estimates by weights, without intervals; "
        "ESS: effective sample size",
    ]
    return table("Larger languages: how often the answer is right", cases, columns, notes)


def stored(*paths: str) -> Callable[[Group], list[Any] | None]:
    """What the row of a line holds there; None where there is nothing at the first path."""

    def of(group: Group) -> list[Any] | None:
        found = [group[path].iloc[0] if path in group else None for path in paths]
        return None if is_missing(found[0]) else found

    return of


def proportion(*paths: str) -> Callable[[Group], list[float] | None]:
    """Of hits among samples, with its interval."""

    def of(group: Group) -> list[float] | None:
        if (found := stored(*paths)(group)) is None:
            return None
        hits, n = map(int, found)
        return [hits / n, *clopper_pearson(hits, n, ALPHA)]

    return of


def in_full(cases: pd.DataFrame) -> Table:
    """The sampled cases, one line each."""
    columns = [
        Column("case", "shown"),
        Column("whole", stored(*(f"methods.{m}.ended" for m in OUR_METHODS)), several(whole, ", ")),
        Column(
            "lift not\ncanonical",
            proportion("not_canonical.count", "not_canonical.of"),
            interval(fixed(3)),
        ),
        Column(
            "free mass\ncanonical",
            stored("canonical_share.value", "canonical_share.error"),
            plus_minus(3),
        ),
        *(Column(f"ESS\n{m}", f"methods.{m}.effective", fixed(1)) for m in OUR_METHODS),
        *(
            Column(
                f"log Z\n{m}{end}", stored(f"{path}.log_z", f"{path}.log_z_error"), plus_minus(2)
            )
            for m in OUR_METHODS
            for path, end in ((f"methods.{m}", ""), (f"smc.{m}", " SMC"))
        ),
        *(
            Column(f"TV {name}\n{m}", stored(f"shown_tv.{name}.{m}"), several(str))
            for name in FEATURES[:2]
            for m in OUR_METHODS
        ),
    ]
    notes = [
        f"{cases['samples'].iloc[0]} samples of each method; whole: texts of either that came to "
        "their end; lift not canonical: share of its samples that the tokenizer would not write "
        "so, [ ]: 95 %, Clopper & Pearson; +: text of the prompt was given back, and is no part of "
        "the features",
        "free mass canonical: from both methods' weights; ±: standard errors; ± ?: unknown, as no "
        "sample tells of the other part",
        "ESS: effective sample size, of the whole texts; Z: the model's probability of the "
        "method's sequences, its natural log with the standard error. The lift's cannot be less "
        "than canonical's: where it comes out so, its samples missed nearly all of the mass",
        "TV first, TV length: see the table of distances; value [95 % interval], noise; [?]: none, "
        f"for the free distribution rests on fewer than {FEW} effective samples",
    ]
    return table("Larger languages, case by case", cases, columns, notes)


def plus_minus(digits: int) -> Callable[[Sequence[float | None]], str]:
    """A value with its standard error: 0.12 ± 0.03."""

    def shown(found: Sequence[float | None]) -> str:
        value, error = ("?" if is_missing(v) else f"{v:.{digits}f}" for v in found)
        return f"{value} ± {error}"

    return shown
