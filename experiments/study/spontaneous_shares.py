"""Shares of texts and joints that are not the tokenizer's own, with intervals of 95 %."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.run.executors import FAILURE, Row
from experiments.run.statistics import bootstrap, clopper_pearson

ALPHA = 0.05


@dataclass(frozen=True)
class Share:
    """count of whole; low, high: the interval of their ratio."""

    count: int
    whole: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """count / whole; nan of nothing."""
        return self.count / self.whole if self.whole else float("nan")

    def facts(self) -> Row:
        """As JSON has it."""
        return {
            "count": self.count,
            "of": self.whole,
            "share": round(self.share, 6),
            "low": round(self.low, 6),
            "high": round(self.high, 6),
        }


def texts_of(
    rows: Sequence[Row], model: str, heat: float | None = None, kind: str | None = None
) -> list[Row]:
    """The texts of a model, at a temperature and of a kind where these are given."""
    return [
        text
        for row in rows
        if not row.get(FAILURE)
        and "texts" in row
        and row["model"] == model
        and kind in (None, row["kind"])
        for text in row["texts"]
        if heat in (None, text["temperature"])
    ]


def of_texts(texts: Sequence[Row]) -> Share:
    """The share of texts that are not canonical; the interval is Clopper & Pearson's."""
    count = sum(not text["canonical"] for text in texts)
    return Share(count, len(texts), *clopper_pearson(count, len(texts), ALPHA))


def of_joints(texts: Sequence[Row]) -> Share:
    """The share of joints at fault; the interval is that of whole texts drawn again, for the joints
    of one text depend on one another. An end that cannot be is a joint as well. Where no text has a
    fault, drawing again finds none either, and the interval says nothing: it is [0, 0]."""
    faults = np.array([len(text.get("faults", ())) for text in texts])
    joints = np.array([len(text["ids"]) + text["ended"] for text in texts])
    if not joints.sum():
        return Share(0, 0, 0.0, 1.0)

    def ratio(values: np.ndarray, taken: np.ndarray) -> np.ndarray:
        found: np.ndarray = taken @ values / np.maximum(taken @ joints, 1)
        return found

    low, high = bootstrap([*faults], range(len(texts)), ratio, 1 - ALPHA)
    return Share(int(faults.sum()), int(joints.sum()), low, high)


def faults_of(texts: Sequence[Row]) -> Iterator[tuple[str, str, str]]:
    """(kind, tokens, reason) of every fault."""
    for text in texts:
        for _, kind, tokens, reason in text.get("faults", ()):
            yield kind, tokens, reason
