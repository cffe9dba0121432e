"""The rows of the speed experiment as tables, the goals among them, and what the README says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.run.executors import FAILURE, Row
from experiments.run.report import Report
from experiments.run.statistics import median
from experiments.run.tables import Table, markdown


@dataclass(frozen=True)
class Goal:
    """name; value, limit: in `unit`. value nan: not measured."""

    name: str
    value: float
    limit: float
    unit: str

    @property
    def met(self) -> bool | None:
        """None: not measured."""
        return None if self.value != self.value else self.value <= self.limit

    def described(self) -> list[str]:
        """Name, what is asked, what was measured, whether it is met."""
        value = "not measured" if self.met is None else f"{self.value:.3g} {self.unit}"
        verdict = {True: "yes", False: "NO", None: "-"}[self.met]
        return [self.name, f"<= {self.limit:g} {self.unit}", value, verdict]


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """A goal that is missed is said, and not wrong: that depends on the machine."""
    done = [row for row in rows if not row.get(FAILURE)]
    tables = [table for table in (once(done),) if table.rows]
    title = f"Speed: {manifest.get('model', 'no tokenizer')}"
    return Report(title, [*tables, summary(done, manifest)], facts=facts(done))


def of_kind(rows: Sequence[Row], kind: str) -> list[Row]:
    """The rows of a kind, in order."""
    return [row for row in rows if row["kind"] == kind]


def goals(rows: Sequence[Row]) -> list[Goal]:
    """All of them."""
    build = [median(row["whole"]) for row in of_kind(rows, "build")]
    peak = [row["peak"] for row in of_kind(rows, "memory") if row["peak"] is not None]
    wall = [median(row["wall"]) for row in of_kind(rows, "start")]
    return [
        Goal("canonical automaton, median", median(build), 0.15, "s"),
        Goal("peak resident memory without torch", median(peak), 300, "MB"),
        Goal("second start of a process, to its first mask, median", median(wall), 1, "s"),
    ]


def summary(rows: Sequence[Row], manifest: Row) -> Table:
    """Each goal, what was measured, and whether it is met."""
    load = manifest["load_average"][0]
    note = (
        f"{manifest['cores']} cores, load average {load:.1f} to begin with: on a busy machine "
        "times are longer"
    )
    lines = [goal.described() for goal in goals(rows)]
    return Table("Goals", ["goal", "asked", "measured", "met"], lines, [note])


def once(rows: Sequence[Row]) -> Table:
    """What is paid once per process or machine."""
    lines = []
    for row in of_kind(rows, "build"):
        lines.append(_times("canonical automaton, from a loaded file", row["whole"]))
        lines += [_times(f"  {name}", seconds) for name, seconds in row["parts"].items()]
    for row in of_kind(rows, "load"):
        lines += [_times(f"reading {kind}", seconds) for kind, seconds in row["files"].items()]
    for row in of_kind(rows, "classes"):
        lines.append(_times("pipeline, character classes asked for the first time", [row["asked"]]))
        lines.append(_times("pipeline, character classes from the disk", [row["disk"]]))
    for row in of_kind(rows, "start"):
        lines.append(_times("second start of a process, to its first mask", row["wall"]))
        lines += [_times(f"  {name}", seconds) for name, seconds in row["parts"].items()]
    for row in of_kind(rows, "kernels"):
        lines.append(_times("kernels: loading them all from the disk", [row["load"]]))
        made = [] if row["compile"] is None else [row["compile"]]
        lines.append(_times("kernels: compiling them all", made))
    notes = [note for row in of_kind(rows, "memory") for note in _memory_notes(row)]
    return Table("Once", ["what", "median", "least", "n"], lines, notes)


def _times(name: str, values: Sequence[float]) -> list[str]:
    if not values:
        return [name, "skipped", "-", "0"]
    return [name, seconds(median(values)), seconds(min(values)), str(len(values))]


def _memory_notes(row: Row) -> list[str]:
    stages = ", ".join(f"{name} {_mb(value)}" for name, value in row["stages"].items())
    torch = "torch IS imported" if row["torch"] else "torch is not imported"
    return [
        f"resident memory of a process after each stage: {stages}; peak {_mb(row['peak'])}",
        f"in that process {torch}",
    ]


def _mb(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.0f} MB"


def seconds(value: float) -> str:
    """With a unit that suits: "1.23 ms"; "-" for nan."""
    if value != value:
        return "-"
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if value * factor >= 1:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e6:.2f} µs"


def facts(rows: Sequence[Row]) -> Row:
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
    goals = [[_bold(cell) for cell in row] for row in facts["goals"]]
    table = markdown(("goal", "asked", "measured", "met"), goals)
    sentences = []
    if facts["start"]:
        parts = ", ".join(f"{name} {value:.2g} s" for name, value in facts["start"].items())
        sentences.append(f"Of the second start: {parts}.")
    if facts["kernels"]:
        taken = f"{facts['kernels']:.0f} s"
        sentences.append(f"Compiling all kernels takes {taken}, once, at installation.")
    return f"{table}\n\n{' '.join(sentences)}"


def _bold(cell: str) -> str:
    return "**no**" if cell == "NO" else cell
