"""What the rows of one engine and one tokenizer come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from experiments.run.executors import FAILURE, Row
from experiments.run.statistics import median, quantile

EXACT = ("canonical", "explicit")
LISTED = "explicit"
"""It writes out what only small languages can be written out of: what it cannot answer is not taken
from the others, and its medians are over what it can."""


@dataclass(frozen=True)
class Asked:
    """start: how the engine came up; exams: the rows of constraints, those that failed left out;
    failed: how many of them; shared: those of them that all engines but LISTED answered, with this
    tokenizer (of engines that answered any); version: of the peer, "" of this package."""

    engine: str
    version: str
    tokenizer: str
    start: Row
    exams: tuple[Row, ...]
    failed: int
    shared: tuple[Row, ...]

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

    @property
    def passes_own(self) -> bool:
        """Were all of the tokenizer's own ids allowed, where they were looked for?"""
        return not (self.blocked or self.total("missing"))

    @property
    def keeps(self) -> bool:
        """The same, and nothing else that was offered was admitted."""
        return self.passes_own and not self.admitted

    def seconds(self, name: str) -> list[float]:
        """Of all masks of the shared constraints."""
        return [value for row in self.shared for value in row[name]]

    def typical(self, name: str) -> float:
        """The median over the shared constraints of the median of each; nan of none."""
        return median([median(row[name]) for row in self.shared])

    def each_to_first_mask(self) -> dict[str, float]:
        """Median seconds from a regex to its first mask, of all constraints that it answered."""
        return {
            row["constraint"]: median(
                [a + b for a, b in zip(row["compile"], row["first"], strict=True)]
            )
            for row in self.exams
        }

    def shared_to_first_mask(self) -> list[float]:
        """The same of the shared constraints."""
        each = self.each_to_first_mask()
        return [each[row["constraint"]] for row in self.shared]

    def facts(self) -> Row:
        """Numbers for the README; None for what there is none of."""
        cold, warm = self.seconds("cold"), self.seconds("warm")
        times = {"to_first_mask_ms": 1e3 * median(self.shared_to_first_mask())}
        for name, seconds in (("cold", cold), ("warm", warm)):
            times[f"{name}_us"] = 1e6 * median(seconds)
            times[f"{name}_99_us"] = 1e6 * quantile(seconds, 0.99)
        return {
            "name": self.name,
            "tokenizer": self.tokenizer,
            **{name: value if value == value else None for name, value in times.items()},
            "constraints": len(self.shared),
            "engine_mb": self.start["engine_mb"],
            "blocked": self.blocked,
            "inside": self.total("inside"),
            "completed": self.completed,
            "admitted": self.admitted,
            "offered": self.offered,
        }


def all_asked(rows: Sequence[Row], versions: Mapping[str, str]) -> list[Asked]:
    """One for each engine that came up, in the order of the rows."""
    starts = [row for row in rows if "ready" in row]
    return [_asked(start, rows, versions.get(start["engine"], "")) for start in starts]


def exact(asked: Sequence[Asked]) -> list[str]:
    """Engines that keep to the tokenizer's own ids, with every tokenizer; see `Asked.keeps`."""
    names = dict.fromkeys(one.engine for one in asked if one.offered)
    return [name for name in names if all(one.keeps for one in asked if one.engine == name)]


def _asked(start: Row, rows: Sequence[Row], version: str) -> Asked:
    name, tokenizer = start["engine"], start["tokenizer"]
    beside = [row for row in rows if "constraint" in row and row["tokenizer"] == tokenizer]
    good = [row for row in beside if not row.get(FAILURE)]
    own = tuple(row for row in good if row["engine"] == name)
    answered: dict[str, set[str]] = {}
    for row in good:
        answered.setdefault(row["engine"], set()).add(row["constraint"])
    listed = answered.pop(LISTED, set())
    common = set.intersection(*answered.values()) if answered else listed
    shared = tuple(row for row in own if row["constraint"] in common)
    failed = sum(row["engine"] == name for row in beside) - len(own)
    return Asked(name, version, tokenizer, start, own, failed, shared)


def tokenizers(asked: Sequence[Asked]) -> list[str]:
    """By name, in order."""
    return list(dict.fromkeys(one.tokenizer for one in asked))
