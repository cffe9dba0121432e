"""The tables of the larger languages of the study, which are sampled."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

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
    table,
    whole,
)
from experiments.study.study_points import in_order, label
from experiments.study.study_tables import absent, by, named

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
PLAIN = ("lift", "canonical")
FEW = 10
"""Effective samples of the free distribution, below which intervals are not given."""
ALPHA = 0.05


def tables(rows: Sequence[Row]) -> list[Table]:
    """rows: of larger languages; none of no rows."""
    if not rows:
        return []
    cases = pd.DataFrame({"row": list(rows)})
    cases["model"] = [row["model"] for row in rows]
    has_truth = cases["row"].map(lambda row: bool(row["truth"]))
    return [distances(rows), accuracy(cases[has_truth]), in_full(cases)]


def distances(rows: Sequence[Row]) -> Table:
    """By model, feature and method."""
    lines = in_order(pd.DataFrame(_feature_lines(rows)), "model")
    lines["few"] = lines["effective"] < FEW
    numbers = ["value", "noise", "low", "high"]
    lines[numbers] = lines[numbers].astype(float)
    lines.loc[lines["few"] | lines["noise"].isna(), numbers] = np.nan
    # a method is shown where some case says something of it
    shown = lines.groupby(["model", "feature", "method"])["noise"].transform("count") > 0
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
    names = {"lift": "lift", "outlines": "outlines", "chop": "chop", "canonical": "canonical"}
    columns = [
        named_case(),
        *(Column(name, _of(_right, method), interval(fixed(3))) for method, name in names.items()),
        Column("lift\nSMC", _of(_estimate, "lift SMC"), fixed(3)),
        Column("canonical\nSMC", _of(_estimate, "canonical SMC"), fixed(3)),
        Column("free", _of(_estimate, "free"), fixed(3)),
        Column("ESS of\nfree", _of(_effective, "right"), fixed(1)),
    ]
    notes = [
        "share of the samples that are a right answer, in full; texts that were cut off are not. "
        "[ ]: 95 %, Clopper & Pearson",
        "SMC and free (the model's own distribution): estimates by weights, without intervals; "
        "ESS: effective sample size",
    ]
    return table("Larger languages: how often the answer is right", cases, columns, notes)


def named_case() -> Column:
    """Model and case; + where text of the prompt was given back."""

    def name(row: Row) -> str:
        return f"{label(row['model'])}: {row['name']}" + (" +" if row["healing"] else "")

    return Column("case", _of(name))


def _of(value: Callable[..., object], *which: str) -> Callable[[Group], object]:
    """Of the row of a line."""
    return lambda group: value(group["row"].iloc[0], *which)


def _proportion(hits: int, n: int) -> tuple[float, float, float]:
    return hits / n, *clopper_pearson(hits, n, ALPHA)


def _right(row: Row, method: str) -> tuple[float, float, float] | None:
    found = row["methods"].get(method)
    return found and _proportion(found["right"], row["samples"])


def _estimate(row: Row, name: str) -> float | None:
    """P(right) by weights."""
    made = row["features"].get("right")
    distribution = made and (made["free"] if name == "free" else made["laws"].get(name))
    if distribution is None:
        return None
    return distribution[made["values"].index("right")] if "right" in made["values"] else 0.0


def _effective(row: Row, feature: str) -> float | None:
    made = row["features"].get(feature)
    return made and made["effective"]


def in_full(cases: pd.DataFrame) -> Table:
    """The sampled cases, one line each."""
    columns = [
        named_case(),
        Column("whole", _of(lambda row: ", ".join(str(row["methods"][m]["ended"]) for m in PLAIN))),
        Column("lift not\ncanonical", _of(_not_canonical), interval(fixed(3))),
        Column("free mass\ncanonical", _of(_canonical_share), plus_minus(3)),
        *(
            Column(f"ESS\n{m}", _of(lambda row, m: row["methods"][m]["effective"], m), fixed(1))
            for m in PLAIN
        ),
        *(
            Column(f"log Z\n{m}{end}", _of(_log_z, source, m), plus_minus(2))
            for m in PLAIN
            for source, end in (("methods", ""), ("smc", " SMC"))
        ),
        *(
            Column(f"TV {name}\n{m}", _of(_distance, m, name))
            for name in FEATURES[:2]
            for m in PLAIN
        ),
    ]
    n = cases["row"].iloc[0]["samples"]
    notes = [
        f"{n} samples of each method; whole: texts of either that came to their end; lift not "
        "canonical: share of its samples that the tokenizer would not write so, [ ]: 95 %, Clopper "
        "& Pearson; +: text of the prompt was given back, and is no part of the features",
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


def _not_canonical(row: Row) -> tuple[float, float, float]:
    return _proportion(row["not_canonical"]["count"], row["not_canonical"]["of"])


def _canonical_share(row: Row) -> tuple[float, float | None] | None:
    found = row["canonical_share"]
    return found and (found["value"], found["error"])


def _log_z(row: Row, source: str, method: str) -> tuple[float, float | None] | None:
    found = row[source][method]
    return None if found["log_z"] is None else (found["log_z"], found["log_z_error"])


def _distance(row: Row, method: str, feature: str) -> str | None:
    made = row["features"].get(feature)
    if made is None:
        return None
    at = made["tv"][method]
    if at["noise"] is None or made["effective"] < FEW:
        return f"{at['value']:.2f} [?]"
    return f"{at['value']:.2f} [{at['low']:.2f}, {at['high']:.2f}], {at['noise']:.2f}"
