"""What the rows of the experiment on masks come to, by engine and tokenizer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.run.executors import FAILURE, Row
from experiments.run.statistics import quantile

SHARES = (0.5, 0.9, 0.99, 1.0)
KINDS = ("cold", "advance", "warm")
SHOWN = "llama-3"
"""The tokenizer whose numbers stand for all, where it was measured."""


@dataclass(frozen=True)
class Answer:
    """first: microseconds from the source to the first mask; texts: of each text the microseconds
    of each kind, of those that could be read to the end; stopped: how many ids of the others were
    read; peak_mb: what it took on top, at its highest. Medians over rounds."""

    first: float
    texts: dict[int, dict[str, list[float]]]
    stopped: dict[int, int]
    peak_mb: float


@dataclass(frozen=True)
class Measured:
    """One engine with one tokenizer. start: how it came up; constraints, schemas: what it answered,
    by name; refused: what it did not, and why; batches: microseconds of one call, or why there was
    none; held: the row of the last schema that was kept alive together with those before it."""

    engine: str
    version: str
    tokenizer: str
    start: Row
    constraints: dict[str, Answer]
    schemas: dict[str, Answer]
    refused: dict[str, str]
    batches: dict[str, float | str]
    held: Row | None

    @property
    def name(self) -> str:
        """With the version."""
        return " ".join(filter(None, (self.engine, self.version)))


def all_measured(rows: Sequence[Row], versions: Mapping[str, str]) -> list[Measured]:
    """One for each engine that came up with a tokenizer, by tokenizer, in the order of the rows."""
    starts = [row for row in rows if "ready" in row and not row["round"]]
    return [_measured(row, rows, versions.get(row["engine"], "")) for row in starts]


def _measured(start: Row, rows: Sequence[Row], version: str) -> Measured:
    whose = (start["engine"], start["tokenizer"])
    own = [
        row for row in rows if (row.get("engine"), row.get("tokenizer")) == whose and row["name"]
    ]
    named: dict[str, list[Row]] = {}
    for row in own:
        named.setdefault(row["name"], []).append(row)
    good = {name: [row for row in of if not row.get(FAILURE)] for name, of in named.items()}
    asked = {name: of for name, of in good.items() if of and "texts" in of[0]}
    batches = {
        row["name"].removeprefix("batch: "): row.get(FAILURE) or float(np.median(row["batch"]))
        for row in own
        if row["name"].startswith("batch: ")
    }
    held = [row for row in own if "held" in row]
    return Measured(
        *(start["engine"], version, start["tokenizer"], start),
        {name: _answer(of) for name, of in asked.items() if not of[0]["is_schema"]},
        {name: _answer(of) for name, of in asked.items() if of[0]["is_schema"]},
        {name: of[0][FAILURE] for name, of in named.items() if not good[name]},
        batches,
        max(held, key=lambda row: row["held"], default=None),
    )


def _answer(rounds: Sequence[Row]) -> Answer:
    stopped = {k: text["stopped"] for k, text in enumerate(rounds[0]["texts"])}
    texts = {
        k: {kind: _medians([row["texts"][k][kind] for row in rounds]) for kind in KINDS}
        for k, where in stopped.items()
        if where is None
    }
    return Answer(
        float(np.median([row["compile"] + row["first"] for row in rounds])),
        texts,
        {k: where for k, where in stopped.items() if where is not None},
        max(row["peak_mb"] for row in rounds),
    )


def _medians(rounds: Sequence[list[float]]) -> list[float]:
    """Of each place; an engine that is stopped elsewhere in another round has its first round."""
    if len({len(one) for one in rounds}) > 1:
        return rounds[0]
    return [float(value) for value in np.median(rounds, axis=0)]


def pooled(
    answers: Mapping[str, Answer], kind: str, only: set[tuple[str, int]] | None
) -> list[float]:
    """Microseconds over all texts; only: (name, number) of those that count, None: all."""
    return [
        us
        for name, answer in answers.items()
        for k, times in answer.texts.items()
        if only is None or (name, k) in only
        for us in times[kind]
    ]


def shared(measured: Sequence[Measured]) -> set[tuple[str, int]]:
    """(name, number) of the texts of schemas that every engine which came to the schema compiled
    and read to the end; of one tokenizer."""
    came: dict[str, list[Answer | None]] = {}
    for one in measured:
        for name in (*one.schemas, *one.refused):
            came.setdefault(name, []).append(one.schemas.get(name))
    found = set[tuple[str, int]]()
    for name, answers in came.items():
        if all(answers):
            passed = [set(answer.texts) for answer in answers if answer]
            found |= {(name, k) for k in set.intersection(*passed)}
    return found


def firsts(answers: Mapping[str, Answer], only: set[tuple[str, int]] | None) -> list[float]:
    """Microseconds to the first mask, of each name of which some text counts."""
    names = None if only is None else {name for name, _ in only}
    return [a.first for name, a in answers.items() if names is None or name in names]


def quantiles(values: Sequence[float]) -> list[float | None]:
    """At SHARES; None where there is nothing."""
    return [quantile(values, share) if values else None for share in SHARES]


def by_tokenizer(measured: Sequence[Measured]) -> dict[str, list[Measured]]:
    """In order."""
    found: dict[str, list[Measured]] = {}
    for one in measured:
        found.setdefault(one.tokenizer, []).append(one)
    return found


def shown_of(tokenizers: Iterable[str]) -> str:
    """Of these, SHOWN or the first."""
    names = list(tokenizers)
    return SHOWN if SHOWN in names else names[0]
