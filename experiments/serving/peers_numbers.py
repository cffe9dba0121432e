"""What the rows of one engine and one tokenizer come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from experiments.run.cells import FAILURE, Row
from experiments.shared.timing import median, quantile

EXACT = ("canonical", "explicit")
OURS = (*EXACT, "lift")


@dataclass(frozen=True)
class Asked:
    """start: how the engine came up; exams: the rows of constraints, those that failed left out;
    failed: how many of them; version: of the peer, "" of this package."""

    engine: str
    version: str
    tokenizer: str
    start: Row
    exams: tuple[Row, ...]
    failed: int

    @property
    def name(self) -> str:
        """With the version."""
        return " ".join(filter(None, (self.engine, self.version)))

    @property
    def label(self) -> str:
        """With version and tokenizer."""
        return f"{self.name}, {self.tokenizer}"

    @property
    def blocked(self) -> int:
        """Texts of the language that could not be read in the tokenizer's own ids."""
        return sum(len(row["blocked"]) for row in self.exams)

    @property
    def completed(self) -> int:
        """Texts that are not of the language, and could be read to the end."""
        return sum(len(row["completed"]) for row in self.exams)

    @property
    def admitted(self) -> int:
        """Sequences that are not the tokenizer's own, and could be read to the end."""
        return self.total("admitted")

    @property
    def offered(self) -> int:
        """Sequences that are not the tokenizer's own."""
        return self.total("offered")

    def total(self, name: str) -> int:
        """Over all constraints."""
        return sum(row[name] for row in self.exams)

    def seconds(self, name: str) -> list[float]:
        """Of all masks of all constraints."""
        return [value for row in self.exams for value in row[name]]

    def typical(self, name: str) -> float:
        """The median over constraints of the median of each; nan of none."""
        return median([median(row[name]) for row in self.exams])

    def to_first_mask(self, constraint: str | None = None) -> float:
        """Seconds from a regex to its first mask: of one, or the median over all; nan of none."""
        both = [
            median([a + b for a, b in zip(row["compile"], row["first"], strict=True)])
            for row in self.exams
            if constraint in (None, row["constraint"])
        ]
        return median(both)

    def facts(self) -> Row:
        """Numbers for the README; None for what there is none of."""
        cold, warm = self.seconds("cold"), self.seconds("warm")
        times = {"to_first_mask_ms": 1e3 * self.to_first_mask()}
        for name, seconds in (("cold", cold), ("warm", warm)):
            times[f"{name}_us"] = 1e6 * median(seconds)
            times[f"{name}_99_us"] = 1e6 * quantile(seconds, 0.99)
        return {
            "name": self.name,
            "tokenizer": self.tokenizer,
            **{name: value if value == value else None for name, value in times.items()},
            "engine_mb": self.start["engine_mb"],
            "blocked": self.blocked,
            "completed": self.completed,
            "admitted": self.admitted,
            "offered": self.offered,
        }


def all_asked(rows: Sequence[Row], versions: Mapping[str, str]) -> list[Asked]:
    """One for each engine that came up, in the order of the rows."""
    starts = [row for row in rows if "ready" in row]
    return [_asked(start, rows, versions.get(start["engine"], "")) for start in starts]


def _asked(start: Row, rows: Sequence[Row], version: str) -> Asked:
    pair = (start["engine"], start["tokenizer"])
    own = [
        row
        for row in rows
        if "constraint" in row and (row.get("engine"), row.get("tokenizer")) == pair
    ]
    good = tuple(row for row in own if not row.get(FAILURE))
    return Asked(pair[0], version, pair[1], start, good, len(own) - len(good))


def tokenizers(asked: Sequence[Asked]) -> list[str]:
    """By name, in order."""
    return list(dict.fromkeys(one.tokenizer for one in asked))
