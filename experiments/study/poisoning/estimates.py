"""Mis-tokenized words as data frames, and what is estimated from them.

Medians, means and quantiles are over words, templates and ways. Intervals of 95 % come from drawing
words and templates again, which cross each other (pigeonhole bootstrap): readings of one word
depend on one another, and so do those of one template.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from experiments.models import labels
from experiments.run.executors import Row
from experiments.run.tables import Group, is_missing, records
from experiments.shared.shown import Estimate, estimate
from experiments.statistics import Statistic, weighted_mean, weighted_quantile
from experiments.study.poisoning.words import ANOTHER, NOISE, OWN, WAYS

SHOWN = (0, 1, 2, 4, 8, 16)
"""Distances that tables show, where they were measured; else the first ones that were."""
ALL_WAYS = "all three"
MEDIAN = weighted_quantile(0.5)
_MEASURED = ("tv", "kl", "outside")
_FIELDS = [
    *("key", "word", "template", "category", "another", "model", "way", "d", "tokens"),
    *(*_MEASURED, "extra"),
]


# The rows as data frames, and what is estimated from them.


def rows_with(rows: pd.DataFrame, field: str) -> list[Row]:
    """The rows that have a field, by their keys: words have "found", the example "animal"."""
    there = (row for row in records(rows) if not is_missing(row.get(field)))
    return sorted(there, key=lambda row: str(row["key"]))


def measured(rows: pd.DataFrame, manifest: Row) -> pd.DataFrame:
    """A row for each word, template, way and distance d: key (of a word in a template), word,
    template, category, another (word); model (what it is called); tokens; tv, kl, outside; extra:
    the loss less that after the word's own ids. What was not measured is nan."""
    called, chosen = labels(manifest), manifest["config"]
    found = []
    for row in rows_with(rows, "found"):
        shared = {field: row[field] for field in _FIELDS[:5]}
        shared["model"] = called[row["model"]]
        own = row["found"][OWN]["loss"]
        for way, one in row["found"].items():
            for k, d in enumerate(chosen["distances"]):
                values = {field: one[field][k] for field in _MEASURED if field in one}
                values["extra"] = one["loss"][k] - own[k] if "loss" in one else np.nan
                found.append({"way": way, "d": d, "tokens": one.get("tokens")} | shared | values)
    words = pd.DataFrame(found, columns=_FIELDS)
    return words.assign(model=pd.Categorical(words["model"], [*dict.fromkeys(called.values())]))


def by_model(words: pd.DataFrame) -> Iterator[tuple[Any, Group]]:
    """(model, its words), in the order of the config."""
    yield from words.groupby("model", observed=True)


def of_way(words: Group, way: str) -> Group:
    """way: one of WAYS, ALL_WAYS, OWN, or the name of a control."""
    return words[words["way"].isin(WAYS if way == ALL_WAYS else (way,))]


def shown_distances(manifest: Row) -> list[int]:
    """Those of the tables."""
    far = manifest["config"]["distances"]
    return [d for d in SHOWN if d in far] or far[: len(SHOWN)]


def of_words(statistic: Statistic, field: str) -> Callable[[Group], Estimate | None]:
    """A statistic of a field; for its interval words and templates are drawn again, each by
    themselves: a word is in several templates, and a template holds several words."""
    return estimate(statistic, field, "word", "template")


# Facts.


def facts(rows: pd.DataFrame, manifest: Row) -> Row:
    """models: of each, how many words and templates, medians of the total variation and means of
    the extra loss, as [value, low, high] by distance; example: ratios by model, as it is called,
    and animal."""
    shown = shown_distances(manifest)

    def at(words: Group, field: str, statistic: Statistic) -> dict[str, list[float]]:
        of = of_words(statistic, field)
        each = {str(d): of(words[words["d"] == d]) for d in shown}
        return {d: [float(f"{x:.6g}") for x in found] for d, found in each.items() if found}

    models: dict[str, Row] = {}
    for model, own in by_model(measured(rows, manifest)):
        found = {
            way: at(of_way(own, way), "tv", MEDIAN) for way in (ALL_WAYS, *WAYS, ANOTHER, NOISE)
        }
        found["extra_loss"] = at(of_way(own, ALL_WAYS), "extra", weighted_mean)
        counts = {"words": own["word"].nunique(), "templates": own["template"].nunique()}
        models[model] = counts | {way: numbers for way, numbers in found.items() if numbers}
    examples: dict[str, dict[str, Row]] = {}
    called = labels(manifest)
    for row in rows_with(rows, "animal"):
        examples.setdefault(called[row["model"]], {})[row["animal"]] = of_example(row)
    return {"models": models, "example": examples}


def of_example(row: Row) -> Row:
    """own: the ratio after the word's own ids; others: how many; raised: how many are greater."""
    own, *others = [ratio for _, ratio in row["ways"]]
    return {"own": own, "others": len(others), "raised": sum(ratio > own for ratio in others)}
