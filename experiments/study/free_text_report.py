"""What is said of texts that models wrote freely and under the mask: tables, figure and facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from experiments.models import labels
from experiments.run.executors import Row
from experiments.run.report import Figure, panels
from experiments.run.tables import (
    Column,
    Group,
    Table,
    count,
    fixed,
    interval,
    is_missing,
    percent,
    records,
    share,
    table,
    whole,
)
from experiments.shared.passages import UNSPACED
from experiments.shared.shown import CANONICAL, LIFT, Estimate, mark, model_notes
from experiments.statistics import bootstrap, weighted_mean

WORDS, BYTES = 3, 8
"""How long the pieces are whose repetition is counted: words, and bytes where no space divides
words."""
FEWEST = 10
"""Prompts with a changed text that an interval takes."""
LEVEL = 0.95
TITLE = "Free generation with and without the tokenizer's own tokenization"


def pairs_of(rows: pd.DataFrame, manifest: Row) -> pd.DataFrame:
    """A line for each pair of texts: of whom, and after which prompt (`unit`); changed; and of both
    texts, and as the difference canonical - free, the loss in nats per byte as the other model
    reads them (`other`) and, of changed pairs alone, as their own does (`own`), and the share of
    pieces that are distinct. rest: the loss of what the passage goes on with, as the other model
    reads it. None where it is not there: a text of no character has no loss for each byte."""
    every = records(rows)
    read_by = {(r["model"], r["kind"], r["reader"]): r for r in every if has(r, "reader")}
    names = manifest["config"]["models"]
    found = []
    for row in (row for row in every if has(row, "texts")):
        writer, kind = row["model"], row["kind"]
        others = [name for name in names if name != writer]
        readers = {"own": writer} | dict(zip(["other"], others, strict=False))
        losses_by = {who: read_by.get((writer, kind, name)) for who, name in readers.items()}
        for k, text in enumerate(row["texts"]):
            both = {"free": text["free"], "canonical": text["canonical"] or text["free"]}
            line: Row = {name: row[name] for name in ("model", "kind")}
            line |= {"temperature": text["temperature"], "unit": f"{kind} {text['prompt']}"}
            line |= {"changed": text["canonical"] is not None}
            for who, losses_ in losses_by.items():
                if losses_ is not None:
                    nats = {w: per_byte(losses_[w][k], t["text"]) for w, t in both.items()}
                    line |= _both(who, nats)
            if other := losses_by.get("other"):
                number = text["prompt"]
                line["rest"] = per_byte(other["rest"][number], row["prompts"][number][1])
            line |= _both("distinct", {w: distinct(t["text"], kind) for w, t in both.items()})
            found.append(line)
    columns = ["model", "kind", "temperature", "unit", "changed", "rest"]
    columns += [f"{of} {w}" for of in ("other", "own", "distinct") for w in WHICH]
    return pd.DataFrame(found, columns=columns).astype(dict.fromkeys(columns[5:], float))


WHICH = ("free", "canonical", "difference")


def has(row: Row, field: str) -> bool:
    """Is this a row of that sort?"""
    return not is_missing(row.get(field))


def _both(of: str, each: Mapping[str, float | None]) -> Row:
    free, canonical = each["free"], each["canonical"]
    difference = None if free is None or canonical is None else canonical - free
    return dict(zip((f"{of} {w}" for w in WHICH), (free, canonical, difference), strict=True))


def per_byte(nats: float | None, text: str) -> float | None:
    """None of an empty text, and of one that was not read."""
    return nats / len(text.encode()) if nats is not None and text else None


def distinct(text: str, kind: str) -> float | None:
    """The share of its pieces that are no repetition: of three words each, or of eight bytes; None
    of a text that has no piece."""
    parts: Sequence[Any] = text.encode() if kind in UNSPACED else text.split()
    size = BYTES if kind in UNSPACED else WORDS
    pieces = [tuple(parts[k : k + size]) for k in range(len(parts) - size + 1)]
    return len(set(pieces)) / len(pieces) if pieces else None


def mean(field: str, changed: bool = False, level: float = LEVEL) -> Any:
    """-> (mean, low, high) of the differences of a group, over the changed pairs alone or over all;
    prompts are drawn again. None where pairs of fewer than `FEWEST` prompts were changed: all other
    differences are 0, and to draw them again says nothing."""

    def of(group: Group) -> Estimate | None:
        there = group[group[field].notna()]
        if there["unit"][there["changed"]].nunique() < FEWEST:
            return None
        some = there[there["changed"] | (not changed)]
        values = some[field].to_numpy(dtype=np.float64)
        ends = bootstrap(values.tolist(), some["unit"].tolist(), weighted_mean, level)
        return float(values.mean()), *ends

    return of


def plain_mean(field: str) -> Any:
    """-> the mean of a group; nan of nothing."""
    return lambda group: group[field].mean()


def tables(rows: pd.DataFrame, manifest: Row) -> list[Table]:
    """Losses by model and temperature, repetition by the same, losses by kind of passage."""
    pairs, names = pairs_of(rows, manifest), labels(manifest)
    by_temperature = pairs.groupby(["model", "temperature"], sort=False)
    by_kind = pairs.groupby(["model", "kind"], sort=False)
    model = Column("written by", lambda g: names[g["model"].iloc[0]].partition(" ")[0])
    temperature = Column("temperature", "temperature", "{:g}".format)
    changed = [Column("texts", count, whole), Column("changed", share("changed"), percent(1))]
    ends, shares = interval(fixed(4)), interval(fixed(3))
    levels = [
        Column(f"{which}\nloss", plain_mean(f"other {which}"), fixed(4))
        for which in ("free", "canonical")
    ]
    over_changed = Column("difference,\nchanged texts", mean("other difference", True), ends)
    chosen = manifest["config"]
    return [
        table(
            TITLE,
            by_temperature,
            [
                *(model, temperature, *changed, *levels),
                Column("difference,\nall texts", mean("other difference"), ends),
                over_changed,
                Column(
                    "as the writer reads\nthem, changed texts", mean("own difference", True), ends
                ),
            ],
            [
                "loss: in nats per byte of text, after the prompt, as the other model reads it; "
                "difference: canonical - free, so that below 0 the canonical text is the better "
                f"predicted; texts of at most {chosen['ids']} ids",
                "changed: the mask forbade an id that was drawn; other pairs are one text, and "
                "their difference is 0",
                "means are over texts; intervals: 95 %, bootstrap of prompts, where the mask "
                f"changed texts of {FEWEST} prompts or more",
                _multiplicity(facts(rows, manifest)),
                *model_notes(manifest, set(names.values())),
            ],
        ),
        table(
            "Repetition",
            by_temperature,
            [
                *(model, temperature),
                *(
                    Column(f"distinct,\n{w}", plain_mean(f"distinct {w}"), percent(1))
                    for w in ("free", "canonical")
                ),
                Column("difference,\nall texts", mean("distinct difference"), shares),
                Column("difference,\nchanged texts", mean("distinct difference", True), shares),
            ],
            [
                f"distinct: the share of runs of {WORDS} words (in Chinese of {BYTES} bytes) of a "
                "text that do not repeat an earlier one; above 0 the canonical text repeats less"
            ],
        ),
        table(
            "By kind of passage, all temperatures together",
            by_kind,
            [
                *(model, Column("kind", "kind")),
                Column("prompts", lambda g: g["unit"].nunique(), whole),
                *changed,
                Column("loss of the\npassage itself", plain_mean("rest"), fixed(4)),
                *levels,
                over_changed,
            ],
            ["the passage itself: as many ids of what it goes on with after the prompt"],
        ),
    ]


def facts(rows: pd.DataFrame, manifest: Row) -> Row:
    """By writer and temperature: texts; changed, the share of them; the difference of the loss as
    the other model reads it, of all and of changed texts, with intervals; corrected: the interval
    over changed texts at Bonferroni's level for all `tests` of them."""
    pairs, names = pairs_of(rows, manifest), labels(manifest)
    groups = list(pairs.groupby(["model", "temperature"], sort=False))
    level = 1 - (1 - LEVEL) / max(1, len(groups))
    found: dict[str, Row] = {}
    for (name, temperature), group in groups:
        corrected = mean("other difference", True, level)(group)
        found.setdefault(names[name], {})[f"{temperature:g}"] = {
            "texts": len(group),
            "changed": float(group["changed"].mean()),
            "all": mean("other difference")(group),
            "of_changed": mean("other difference", True)(group),
            "corrected": corrected and corrected[1:],
            "distinct": mean("distinct difference")(group),
        }
    return {"tests": len(groups), "kinds": list(pairs["kind"].unique()), "models": found}


def readme(said: Row) -> str:
    """What the report says of it: a line for each model."""
    lines = []
    for name, by_temperature in said.get("models", {}).items():
        told = [
            f"at temperature {temperature} the mask changes {of['changed']:.0%} of {of['texts']} "
            f"texts, and the loss of these, as the other model reads them, by "
            f"{_signed(of['of_changed'])} nats per byte"
            for temperature, of in by_temperature.items()
            if of["of_changed"]
        ]
        if told:
            lines.append(f"- *{name.partition(' ')[0]}*: {'; '.join(told)}.")
    return "\n".join(lines)


def _signed(found: Estimate) -> str:
    return "{:+.3f} ({:+.3f} to {:+.3f})".format(*found)


def _multiplicity(said: Row) -> str:
    """Which differences are none of chance, though several were looked at."""
    kept = [
        f"{name.partition(' ')[0]} at {temperature}"
        for name, by_temperature in said["models"].items()
        for temperature, of in by_temperature.items()
        if of["corrected"] and not of["corrected"][0] <= 0 <= of["corrected"][1]
    ]
    return (
        f"of {said['tests']} differences over changed texts, those whose interval at the corrected "
        f"level (Bonferroni) leaves 0 out: {', '.join(kept) or 'none'}"
    )


def figures(rows: pd.DataFrame, manifest: Row) -> list[Figure]:
    """Differences over changed texts, by temperature: losses, and distinct pieces."""
    pairs, names = pairs_of(rows, manifest), labels(manifest)
    if pairs.empty:
        return []
    figure, axes = panels(1, 2, (9, 4), "y")
    for axis, field in zip(axes[0], ("other difference", "distinct difference"), strict=True):
        axis.axhline(0, color="#888888", linewidth=1, zorder=0)
        for k, (name, group) in enumerate(pairs.groupby("model", sort=False)):
            color, sign = (CANONICAL, LIFT)[k % 2], "os^D"[k % 4]
            for temperature, some in group.groupby("temperature"):
                mark(axis, temperature + 0.02 * k, mean(field, True)(some), color, sign)
            axis.scatter([], [], color=color, marker=sign, label=names[name].partition(" ")[0])
        axis.set_xticks(sorted(pairs["temperature"].unique()))
        axis.set_xlabel("temperature")
    axes[0][0].set_title("loss as the other model reads it, nats per byte", loc="left", fontsize=10)
    axes[0][1].set_title("share of pieces that are distinct", loc="left", fontsize=10)
    axes[0][0].set_ylabel("canonical - free, changed texts")
    axes[0][0].legend(fontsize=8, frameon=False)
    note = (
        f"{len(pairs):,} pairs of texts with the same random numbers, of which the mask changed "
        f"{int(pairs['changed'].sum()):,}; intervals: 95 %, bootstrap of prompts, each by itself; "
        f"{_multiplicity(facts(rows, manifest))}."
    )
    return [Figure("free_text", figure, "What the mask changes in free texts", note)]
