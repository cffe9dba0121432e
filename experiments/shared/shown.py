"""What the reports of the studies and of the article share: estimates with intervals, figures of
matplotlib, notes on models, and tables of several of them."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from experiments.models import labels
from experiments.run.executors import Row
from experiments.run.tables import Column, Group
from experiments.statistics import Statistic, pigeonhole

Estimate: TypeAlias = tuple[float, float, float]
"""(value, low, high): with a 95 % interval."""
LIFT, CANONICAL, PALE = "#d1495b", "#00798c", "#bbbbbb"
_CHARACTER = 0.103
"""Inches of one of a headline, on average."""


def estimate(statistic: Statistic, field: str, *by: str) -> Callable[[Group], Estimate | None]:
    """A statistic of a field, where it is there; None of nothing. For the interval the values of
    `by` are drawn again, each with all its rows: those say less than as many unrelated ones. Of
    several fields each is drawn by itself (`statistics.pigeonhole`)."""

    def of(group: Group) -> Estimate | None:
        there = group[group[field].notna()]
        if there.empty:
            return None
        values = there[field].to_numpy(dtype=np.float64)
        value = float(statistic(values, np.ones((1, len(values))))[0])
        crossed = [there[one].tolist() for one in by]
        return value, *pigeonhole(values.tolist(), crossed, statistic)

    return of


def model_notes(manifest: Row, there: Container[str]) -> list[str]:
    """What is said of each of the models that rows are there of, by what they are called; once."""
    known = manifest.get("models", {})
    notes = [
        known.get(n, {}).get("note") for n, label in labels(manifest).items() if label in there
    ]
    return [*dict.fromkeys(note for note in notes if note)]


def mark(
    axes: Any,
    place: float,
    made: Sequence[float] | None,
    color: str,
    marker: str = "o",
    is_flat: bool = False,
) -> None:
    """An estimate as a mark with its interval, which is upright unless `is_flat`."""
    if made is None:
        return
    value, *ends = made
    order = -1 if is_flat else 1
    axes.plot(*([place] * 2, ends)[::order], color=color, linewidth=1.6)
    axes.scatter(*(place, value)[::order], s=32, color=color, marker=marker, zorder=3)


def in_lines(text: str, inches: float) -> str:
    """In lines that are as wide as a figure of so many inches, at most."""
    width = int((inches - 0.2) / _CHARACTER)
    return "\n".join(textwrap.fill(line, width) for line in text.split("\n"))


# Tables of several models that are asked cases: rows have "model", and under "absent" why a method
# is missing.

LABELS = {"smollm2": "SmolLM2", "gemma-3-270m": "Gemma-3"}


def label(model: str) -> str:
    """How a model is called in tables."""
    return LABELS.get(model, model)


def in_order(found: pd.DataFrame, field: str, order: tuple[str, ...] | None = None) -> pd.DataFrame:
    """With a field that groups are sorted by: in this order, by default that of the lines."""
    names = found[field].unique() if order is None else order
    return found.assign(**{field: pd.Categorical(found[field], list(names))})


def by(found: pd.DataFrame, *fields: str) -> Iterable[tuple[Any, Group]]:
    """Groups, sorted; models and methods in their order."""
    return found.groupby(["model", *fields], observed=True)


def named(name: str, field: str) -> Column:
    """The first column of a table that has a line for each model and value of a field."""

    def of(group: Group) -> str:
        value = group[field].iloc[0]
        shown = f"{value:g}" if isinstance(value, float) else value
        return f"{label(group['model'].iloc[0])}: {shown}"

    return Column(name, of)


def absent(rows: Iterable[Row]) -> list[str]:
    """Why methods are missing, once for each reason."""
    reasons = Counter(reason for row in rows for reason in row["absent"].items())
    return [f"{method} is absent in {n} cases: {why}" for (method, why), n in reasons.items()]
