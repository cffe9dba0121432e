"""The rows of the speed experiment as tables, the goals among them, and what the README says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from experiments.run.executors import Row
from experiments.run.statistics import median
from experiments.run.tables import (
    Column,
    Table,
    duration,
    frame,
    is_missing,
    markdown,
    records,
    table,
    whole,
)


@dataclass(frozen=True)
class Goal:
    """name; value, limit: in `unit`. value nan: not measured."""

    name: str
    value: float
    limit: float
    unit: str

    def described(self) -> list[str]:
        """Name, what is asked, what was measured, whether it is met."""
        asked = f"<= {self.limit:g} {self.unit}"
        if is_missing(self.value):
            return [self.name, asked, "not measured", "-"]
        is_met = "yes" if self.value <= self.limit else "NO"
        return [self.name, asked, f"{self.value:.3g} {self.unit}", is_met]


def of_kind(rows: pd.DataFrame, kind: str) -> list[Row]:
    """The rows of a kind, in order."""
    return records(rows[rows["kind"] == kind])


def goals(rows: pd.DataFrame) -> list[Goal]:
    """All of them. One that is missed is said, and not wrong: that depends on the machine."""
    build = [median(row["whole"]) for row in of_kind(rows, "build")]
    peak = [row["peak"] for row in of_kind(rows, "memory") if row["peak"] is not None]
    wall = [median(row["wall"]) for row in of_kind(rows, "start")]
    return [
        Goal("canonical automaton, median", median(build), 0.15, "s"),
        Goal("peak resident memory without torch", median(peak), 300, "MB"),
        Goal("second start of a process, to its first mask, median", median(wall), 1, "s"),
    ]


def tables(rows: pd.DataFrame, manifest: Row) -> list[Table]:
    """What is paid once, and each goal."""
    load = manifest["load_average"][0]
    notes = [
        f"{manifest.get('model', 'no tokenizer')}; {manifest['cores']} cores, load average "
        f"{load:.1f} to begin with: on a busy machine times are longer"
    ]
    described = [goal.described() for goal in goals(rows)]
    summary = Table("Goals", ["goal", "asked", "measured", "met"], described, notes)
    columns = [
        Column("what", "what"),
        Column("median", lambda group: median(group["seconds"].iloc[0]), duration, "skipped"),
        Column("least", lambda group: min(group["seconds"].iloc[0], default=None), duration),
        Column("n", lambda group: len(group["seconds"].iloc[0]), whole),
    ]
    timed = frame([{"what": what, "seconds": seconds} for what, seconds in once(rows)])
    memory = [note for row in of_kind(rows, "memory") for note in _memory_notes(row)]
    return [*([table("Once", timed, columns, memory)] if len(timed) else []), summary]


def once(rows: pd.DataFrame) -> Iterator[tuple[str, Sequence[float]]]:
    """(what is timed, its seconds), of all that is paid once per process or machine."""
    for row in of_kind(rows, "build"):
        yield "canonical automaton, from a loaded file", row["whole"]
        yield from ((f"  {name}", seconds) for name, seconds in row["parts"].items())
    for row in of_kind(rows, "load"):
        yield from ((f"reading {kind}", seconds) for kind, seconds in row["files"].items())
    for row in of_kind(rows, "classes"):
        yield "pipeline, character classes asked for the first time", [row["asked"]]
        yield "pipeline, character classes from the disk", [row["disk"]]
    for row in of_kind(rows, "start"):
        yield "second start of a process, to its first mask", row["wall"]
        yield from ((f"  {name}", seconds) for name, seconds in row["parts"].items())
    for row in of_kind(rows, "kernels"):
        yield "kernels: loading them all from the disk", [row["load"]]
        yield "kernels: compiling them all", [] if row["compile"] is None else [row["compile"]]


def _memory_notes(row: Row) -> list[str]:
    stages = ", ".join(f"{name} {_mb(value)}" for name, value in row["stages"].items())
    torch = "torch IS imported" if row["torch"] else "torch is not imported"
    return [
        f"resident memory of a process after each stage: {stages}; peak {_mb(row['peak'])}",
        f"in that process {torch}",
    ]


def _mb(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.0f} MB"


def facts(rows: pd.DataFrame, manifest: Row) -> Row:
    """goals: as `Goal.described`; start: median seconds by part; kernels: seconds to compile them
    all. Without what was not measured."""
    starts = [row["parts"] for row in of_kind(rows, "start")]
    return {
        "goals": [goal.described() for goal in goals(rows)],
        "start": {name: median(raw) for parts in starts for name, raw in parts.items()},
        "kernels": next((row["compile"] for row in of_kind(rows, "kernels")), None),
    }


def readme(facts: Row) -> str:
    """The goals, and where time goes."""
    if not facts:
        return ""
    lines = [["**no**" if cell == "NO" else cell for cell in goal] for goal in facts["goals"]]
    sentences = []
    if facts["start"]:
        parts = ", ".join(f"{name} {value:.2g} s" for name, value in facts["start"].items())
        sentences.append(f"Of the second start: {parts}.")
    if facts["kernels"]:
        taken = f"{facts['kernels']:.0f} s"
        sentences.append(f"Compiling all kernels takes {taken}, once, at installation.")
    shown = markdown(("goal", "asked", "measured", "met"), lines)
    return f"{shown}\n\n{' '.join(sentences)}"
