"""What issue 2 asks of the speed, and whether the rows say that it is met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.run.cells import Row
from experiments.shared.timing import median, quantile


@dataclass(frozen=True)
class Goal:
    """name; value, limit: in `unit`; at_least: is more better? value None: not measured."""

    name: str
    value: float | None
    limit: float
    unit: str
    at_least: bool = False

    @property
    def met(self) -> bool | None:
        """None: not measured."""
        if self.value is None or self.value != self.value:
            return None
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def described(self) -> list[str]:
        """Name, what is asked, what was measured, whether it is met."""
        value = "not measured" if self.met is None else f"{self.value:.3g} {self.unit}"
        bound = f"{'>=' if self.at_least else '<='} {self.limit:g} {self.unit}"
        return [self.name, bound, value, {True: "yes", False: "NO", None: "-"}[self.met]]


def of_kind(rows: Sequence[Row], kind: str) -> list[Row]:
    """The rows of a kind, in order."""
    return [row for row in rows if row["kind"] == kind]


def to_first_mask(row: Row, engine: str) -> float:
    """Median seconds from a regex to its first mask, of outlines_core to its index; nan: none."""
    return median(_rounds(row, engine))


def to_first_mask_ends(row: Row, engine: str) -> tuple[float, float]:
    """The least and the most of the rounds; nan: none."""
    found = _rounds(row, engine) or [float("nan")]
    return min(found), max(found)


def _rounds(row: Row, engine: str) -> list[float]:
    seconds = row["engines"].get(engine, {"seconds": []})["seconds"]
    return [pair[0] if engine == "outlines_core" else sum(pair) for pair in seconds]


def ratio(row: Row, engine: str = "canonical", peer: str = "outlines_core") -> float:
    """How many times faster than the peer; nan where one of them has no time."""
    return to_first_mask(row, peer) / to_first_mask(row, engine)


def ratios(rows: Sequence[Row], engine: str = "canonical") -> dict[str, float]:
    """`ratio` of each regex that both can compile."""
    found = {row["name"]: ratio(row, engine) for row in of_kind(rows, "regex")}
    return {name: value for name, value in found.items() if value == value}


def pooled(rows: Sequence[Row], key: str) -> list[float]:
    """The raw seconds of all mask rows."""
    return [value for row in of_kind(rows, "masks") for value in row[key]]


def along_walks(rows: Sequence[Row]) -> dict[str, list[float]]:
    """Raw seconds of all masks along the same ids, by engine."""
    found = {"canonical": pooled(rows, "all")}
    for row in of_kind(rows, "masks"):
        for name, result in row["peers"].items():
            found.setdefault(name, []).extend(result["all"])
    return found


def goals(rows: Sequence[Row]) -> list[Goal]:
    """All of them, in the issue's order."""
    build = [median(row["whole"]) for row in of_kind(rows, "build")]
    faster = list(ratios(rows).values())
    peak = [row["peak"] for row in of_kind(rows, "memory")]
    wall = [median(row["wall"]) for row in of_kind(rows, "start")]
    first = pooled(rows, "first")
    return [
        Goal("canonical automaton, median", _only(build), 0.15, "s"),
        Goal(
            "regex to first mask: times faster than outlines_core.Index, median",
            median(faster),
            10,
            "x",
            at_least=True,
        ),
        Goal("the same, least of all regexes", min(faster, default=None), 1, "x", at_least=True),
        Goal(
            "a mask, state seen before, median",
            median(pooled(rows, "known_matcher")) * 1e6,
            5,
            "µs",
        ),
        Goal("a mask, state new, median", median(first) * 1e3, 1, "ms"),
        Goal("a mask, state new, 99 of 100", quantile(first, 0.99) * 1e3, 1, "ms"),
        Goal("a mask, state new, slowest", max(first, default=float("nan")) * 1e3, 1, "ms"),
        Goal("peak resident memory without torch", _only(peak), 300, "MB"),
        Goal("second start of a process, to its first mask, median", _only(wall), 1, "s"),
    ]


def _only(values: Sequence[float | None]) -> float | None:
    return values[0] if values else None
