"""The larger languages of the study, as samples tell of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments.run.executors import FAILURE, Row
from experiments.run.statistics import clopper_pearson
from experiments.run.tables import Table
from experiments.study.study_report_points import label

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
    """None where nothing was sampled."""
    found = [row for row in rows if not row.get(FAILURE) and row["kind"] == "large"]
    made = [distances(found), accuracy(found), large(found)]
    return [table for table in made if table.rows]


def distances(found: Sequence[Row]) -> Table:
    """By model, feature and method."""
    lines = []
    for model in dict.fromkeys(row["model"] for row in found):
        rows = [row for row in found if row["model"] == model]
        for name in FEATURES:
            there = [row["features"][name] for row in rows if name in row["features"]]
            few = sum(made["effective"] < FEW for made in there)
            kept = [made["tv"] for made in there if made["effective"] >= FEW]
            for method, called in METHODS.items():
                at = [tv[method] for tv in kept if method in tv]
                at = [one for one in at if one["noise"] is not None]
                if not at:
                    continue
                lines.append(
                    [
                        f"{label(model)}: {name}, {called}",
                        str(len(at)),
                        str(few),
                        f"{np.median([one['value'] for one in at]):.3f}",
                        f"{np.median([one['noise'] for one in at]):.3f}",
                        str(sum(one["low"] > 0 for one in at)),
                        f"{max(one['low'] for one in at):.3f}",
                    ]
                )
    columns = ["feature, method", "cases", "too few\nsamples", "median TV", "median\nnoise"]
    columns += ["interval\nabove 0", "greatest\nlower end"]
    return Table(
        "Larger languages: distance to the model's own distribution", columns, lines, _told(found)
    )


def _told(found: Sequence[Row]) -> list[str]:
    absent: dict[tuple[str, str], int] = {}
    for row in found:
        for method, why in row["absent"].items():
            absent[method, why] = absent.get((method, why), 0) + 1
    n, size = (next((row[key] for row in found), 0) for key in ("samples", "particles"))
    return [
        f"{n} samples of each method in each case; SMC: one text of a population of {size}, taken "
        "by its weight; weighted: canonical's samples by their weights, what is left then is free "
        "mass that is not canonical",
        "TV: between the distribution of the first character, of the length in classes of four "
        "bytes, or of "
        "whether the answer is right, and the model's own by the weights of both methods. Values "
        "seen fewer than 5 times are one",
        "noise: the TV that samples of these sizes and weights show on average where nothing "
        "differs, for TV from samples is biased upwards: it means something only well above that",
        "interval: 95 %, TV ± the 0.95 quantile of the distance between the resampled difference "
        "of the distributions and the estimated one. It can hold a TV of 0: of cases without any "
        "difference "
        "it lies above 0 in about 5 %, with 10 to 15 effective samples in up to 10 % (simulated)",
        f"too few samples: cases in which the model's distribution rests on fewer than {FEW} "
        f"effective ones",
        *(f"{method} is absent in {k} cases: {why}" for (method, why), k in absent.items()),
    ]


def accuracy(found: Sequence[Row]) -> Table:
    """Where a right answer is known."""
    lines = []
    for row in found:
        if not row["truth"]:
            continue
        lines.append(
            [
                f"{label(row['model'])}: {row['name']}",
                *(
                    _share(row["methods"][method]["right"], row["samples"])
                    if method in row["methods"]
                    else "-"
                    for method in ("lift", "outlines", "chop", "canonical")
                ),
                *(_right(row, name) for name in ("lift SMC", "canonical SMC", "free")),
            ]
        )
    columns = ["case", "lift", "outlines", "chop", "canonical"]
    columns += ["lift\nSMC", "canonical\nSMC", "free\n(ESS)"]
    notes = [
        "share of the samples that are a right answer, in full; texts that were cut off are not. "
        "[ ]: 95 %, Clopper & Pearson",
        "SMC and free (the model's own distribution): estimates by weights, without intervals; "
        "ESS: "
        "effective samples of the free one",
    ]
    return Table("Larger languages: how often the answer is right", columns, lines, notes)


def _right(row: Row, name: str) -> str:
    made = row["features"].get("right")
    if made is None:
        return "-"
    distribution = made["free"] if name == "free" else made["laws"].get(name)
    if distribution is None:
        return "-"
    value = distribution[made["values"].index("right")] if "right" in made["values"] else 0.0
    return f"{value:.3f}" + (f" ({made['effective']:.1f})" if name == "free" else "")


def large(found: Sequence[Row]) -> Table:
    """The sampled cases, one line each."""
    lines = []
    for row in found:
        lift, canonical = row["methods"]["lift"], row["methods"]["canonical"]
        other = row["not_canonical"]
        lines.append(
            [
                f"{label(row['model'])}: {row['name']}" + (" +" if row["healing"] else ""),
                f"{lift['ended']}, {canonical['ended']}",
                _share(other["count"], other["of"]),
                _plus_minus(row["canonical_share"]),
                f"{lift['effective']:.1f}",
                f"{canonical['effective']:.1f}",
                *(_log_z(one) for one in (lift, row["smc"]["lift"])),
                *(_log_z(one) for one in (canonical, row["smc"]["canonical"])),
                *(_distance(row, m, name) for name in FEATURES[:2] for m in METHODS if m in PLAIN),
            ]
        )
    columns = ["case", "whole", "lift not\ncanonical", "free mass\ncanonical", "ESS\nlift"]
    columns += ["ESS\ncanonical", "log Z\nlift", "log Z lift\nSMC", "log Z\ncanonical"]
    columns += ["log Z\ncanonical SMC"]
    columns += [f"TV {name}\n{method}" for name in FEATURES[:2] for method in PLAIN]
    n = next((row["samples"] for row in found), 0)
    notes = [
        f"{n} samples of each method; whole: texts of either that came to their end; lift not "
        "canonical: share of its samples that the tokenizer would not write so, [ ]: 95 %, Clopper "
        "& Pearson; +: text of the prompt was given back, and is no part of the features",
        "free mass canonical: from both methods' weights; ±: standard errors; ± ?: no sample tells "
        "of the other part, so that its mass is unknown",
        "ESS: effective sample size, of the whole texts; Z: the model's probability of the "
        "method's sequences, its natural log with the standard error. The lift's cannot be less "
        "than canonical's: where it comes out so, its samples missed nearly all of the mass",
        "TV first, TV length: see the table of distances; value [95 % interval], noise; [?]: none, "
        f"for the free distribution rests on fewer than {FEW} effective samples",
    ]
    return Table("Larger languages, case by case", columns, lines, notes)


PLAIN = ("lift", "canonical")


def _share(count: int, whole: int) -> str:
    low, high = clopper_pearson(count, whole, ALPHA)
    return f"{count / whole:.3f} [{low:.3f}, {high:.3f}]"


def _plus_minus(found: Row | None) -> str:
    if found is None:
        return "-"
    error = found["error"]
    return f"{found['value']:.3f} ± " + ("?" if error is None else f"{error:.3f}")


def _log_z(found: Row) -> str:
    if found["log_z"] is None:
        return "-"
    error = found["log_z_error"]
    return f"{found['log_z']:.2f}" + ("" if error is None else f" ± {error:.2f}")


def _distance(row: Row, method: str, name: str) -> str:
    made = row["features"].get(name)
    if made is None:
        return "-"
    at = made["tv"][method]
    if at["noise"] is None or made["effective"] < FEW:
        return f"{at['value']:.2f} [?]"
    return f"{at['value']:.2f} [{at['low']:.2f}, {at['high']:.2f}], {at['noise']:.2f}"
