"""Tables of what a mis-tokenized word does to the laws after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from experiments.run.executors import Row
from experiments.run.tables import Table
from experiments.study import poisoning_numbers
from experiments.study.poisoning_cases import WAYS
from experiments.study.poisoning_laws import ANOTHER, NOISE, OWN
from experiments.study.poisoning_numbers import ALL_WAYS, Estimate, means, medians, words_of

IDS = "ids of the word"
QUANTILES = {"10 %": 0.1, "median": 0.5, "90 %": 0.9}
MOST_FAR = 10
"""Words that are shown in full."""


class Scope(NamedTuple):
    """rows: of a run; names: what models are called, by their names in the rows; far: all
    distances; shown: those of the tables."""

    rows: Sequence[Row]
    names: dict[str, str]
    far: list[int]
    shown: list[int]

    def picked(self, values: np.ndarray) -> np.ndarray:
        """[words, ways, shown] of [words, ways, far]."""
        return values[..., [self.far.index(d) for d in self.shown]]


def _table(
    title: str,
    first: str,
    scope: Scope,
    values_of: Callable[[Sequence[Row]], dict[str, np.ndarray | None]],
    estimate: Callable[[np.ndarray], Estimate],
    notes: Sequence[str] = (),
) -> Table:
    """A line per model and way. values_of: from the words of a model to what its lines are of."""
    lines = [
        [way, label, *map(_cell, *estimate(scope.picked(values)))]
        for name, label in scope.names.items()
        for way, values in values_of(words_of(scope.rows, name)).items()
        if values is not None
    ]
    return Table(title, [first, "model", *(f"d = {d}" for d in scope.shown)], lines, notes)


def _cell(value: float, low: float, high: float) -> str:
    if 0 < abs(value) < 5e-4:
        return f"{value:.0e} ({low:.0e} to {high:.0e})"
    return f"{value:.3f} ({low:.3f} to {high:.3f})"


def variations(scope: Scope, notes: Sequence[str]) -> Table:
    """Total variation, by way and distance."""

    def values_of(words: Sequence[Row]) -> dict[str, np.ndarray | None]:
        ways = (ALL_WAYS, *WAYS, ANOTHER, NOISE)
        return {way: poisoning_numbers.table(words, way, "tv") for way in ways}

    title = "Total variation between the laws after the word's own ids and after others, median"
    return _table(title, IDS, scope, values_of, medians, notes)


def divergences(scope: Scope) -> Table:
    """Kullback-Leibler divergence, by way and distance: it has no upper end, so a few words far off
    show here that total variation hides."""
    estimates = {name: poisoning_numbers.quantile(q) for name, q in QUANTILES.items()}
    lines = []
    for name, label in scope.names.items():
        words = words_of(scope.rows, name)
        for way in (ALL_WAYS, *WAYS, ANOTHER):
            values = poisoning_numbers.table(words, way, "kl")
            if values is None:
                continue
            picked, n = scope.picked(values), f"{np.isfinite(values[..., 0]).sum():,}"
            for which, estimate in estimates.items():
                lines.append([way, label, n, which, *map(_cell, *estimate(picked))])
    title = "Kullback-Leibler divergence of the law after other ids from that after its own, nats"
    note = (
        "n: words times ways; in brackets intervals of 95 %, words drawn again. KL(own || other) = "
        "sum over the vocabulary of own law times the log of its ratio to the other."
    )
    columns = [IDS, "model", "n", "quantile", *(f"d = {d}" for d in scope.shown)]
    return Table(title, columns, lines, [note])


def extra_losses(scope: Scope) -> Table:
    """What the token that follows loses."""

    def values_of(words: Sequence[Row]) -> dict[str, np.ndarray | None]:
        ways = (ALL_WAYS, *WAYS, ANOTHER)
        return {way: poisoning_numbers.excess(words, way) for way in ways}

    title = "Extra loss of the token that does follow, nats, mean"
    return _table(title, IDS, scope, values_of, means)


def categories(scope: Scope, kinds: Sequence[str]) -> Table:
    """Total variation by category of words, all ways together."""

    def values_of(words: Sequence[Row]) -> dict[str, np.ndarray | None]:
        of_kinds = {kind: [word for word in words if word["category"] == kind] for kind in kinds}
        return {
            f"{kind} ({len(some)})": poisoning_numbers.table(some, ALL_WAYS, "tv")
            for kind, some in of_kinds.items()
        }

    title = "Total variation by category of words (how many), all ways together, median"
    return _table(title, "category", scope, values_of, medians)


def begotten(scope: Scope) -> Table:
    """Mass on next ids that do not go on canonically."""

    def values_of(words: Sequence[Row]) -> dict[str, np.ndarray | None]:
        return {way: poisoning_numbers.table(words, way, "outside") for way in (OWN, *WAYS)}

    note = "The ids that go on canonically are those after the word's own ids, for all ways alike."
    title = "Mass of the next token on ids that do not go on canonically, mean"
    return _table(title, IDS, scope, values_of, means, [note])


def farthest(scope: Scope) -> list[Table]:
    """The words that moved the law right after them the most, in full; no table of no word."""
    shown = scope.shown
    found = sorted(
        (
            (tv[scope.far.index(shown[0])], row["key"], way, row)
            for name in scope.names
            for row in words_of(scope.rows, name)
            for way in WAYS
            if (tv := row["found"].get(way, {}).get("tv")) is not None
        ),
        key=lambda each: (-each[0], each[1], each[2]),
    )
    lines = [
        [
            row["word"],
            scope.names[row["model"]],
            row["found"][OWN]["tokens"],
            row["found"][way]["tokens"],
            *_places(scope, row["found"][way]["tv"]),
            row["another"] or "",
            *_places(scope, row["found"].get(ANOTHER, {}).get("tv")),
        ]
        for _, _, way, row in found[:MOST_FAR]
    ]
    ends = [f"TV, d = {d}" for d in dict.fromkeys((shown[0], shown[-1]))]
    columns = ["word", "model", "own ids", "other ids", *ends, "another word", *ends]
    title = f"The farthest moved of {len(found):,} words and ways, by total variation"
    return [Table(title, columns, lines)] if lines else []


def _places(scope: Scope, values: Sequence[float] | None) -> list[str]:
    """At the first and the last distance that tables show."""
    ends = dict.fromkeys((scope.shown[0], scope.shown[-1]))
    return ["" if values is None else f"{values[scope.far.index(d)]:.3f}" for d in ends]
