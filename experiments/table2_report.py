"""Table 2 for the terminal, as Markdown and as LaTeX."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from bpe_automata.errors import MissingFileError
from experiments.distortion_report import shown_path
from experiments.runner import write_atomically
from experiments.speed_timing import median, quantile
from experiments.table1_report import latex
from experiments.table2_options import Table2Options
from experiments.tables import Table

Row = dict[str, Any]

PUBLISHED = {"tokenizer": 20.9, "lift": 0.687, "relevance": 27.3, "masks": 0.00153}
"""Seconds: Tran-Thien 2024, Table 2, Mistral-7B and function calls."""
GOAL = 100
"""How many times less of the lift relevance is to cost than published."""
STEPS = {
    "tokenizer": "1. tokenizer\nautomaton",
    "lift": "2. lift",
    "relevance": "3. relevant\nstates",
    "rows": "2 and 3\nin one pass",
    "masks": "4. mask",
}
METHODS = {
    "reference": "reference, plain Python, merge table alone",
    "eager, table alone": "eager, the same schemas and table",
    "eager": "eager",
    "lazy": "lazy (rows: engine and first mask)",
    "segments, cold": "eager, segments, cold cache",
    "segments, warm": "eager, segments, warm cache",
}
_MADE = {"reference": "reference", "eager": "eager"}
"""Which of the tokenizer's times are a method's step 1."""


def render(rows: Sequence[Row], manifest: Row, options: Table2Options) -> None:
    """Print the tables, and write them beside the paper's figures."""
    if not manifest["complete"]:
        print(f"incomplete: {manifest['rows']} of {manifest['rows_expected']} rows")
    if len(rows) < 2:
        raise MissingFileError(f"{options.folder} is incomplete; run without --render")
    tables = [means(rows, manifest), spread(rows), failures(rows)]
    for table in tables:
        table.print()
    folder = options.figures
    write_atomically(folder / "table2.md", "\n".join(t.markdown() for t in tables))
    write_atomically(folder / "table2.tex", "\n".join(map(latex, tables[:2])))
    written = ", ".join(shown_path(folder / f"table2.{suffix}") for suffix in ("md", "tex"))
    print(f"table: {written} (measured in {manifest['wall_seconds']} s)")


def seconds_of(rows: Sequence[Row], method: str, step: str) -> list[float]:
    """All that were measured, over the schemas where the method did not fail; of masks all along
    all texts."""
    if step == "tokenizer":
        found: list[float] = rows[0].get(_MADE.get(method, ""), [])
        return found
    done = [row[step] for row in done_by(rows, method) if step in row]
    return [spent for masks in done for spent in masks] if step == "masks" else done


def done_by(rows: Sequence[Row], method: str) -> list[Row]:
    """The rows of a method that came to an end."""
    found = (row.get("methods", {}).get(method) for row in rows[1:])
    return [row for row in found if row and row["status"] == "done"]


def times_better(rows: Sequence[Row], method: str) -> float:
    """How many times less of the lift relevance costs than published; nan: not measured."""
    lifting, relevance = (seconds_of(rows, method, step) for step in ("lift", "relevance"))
    if not relevance or not fmean(lifting):
        return float("nan")
    published = PUBLISHED["relevance"] / PUBLISHED["lift"]
    return published / (fmean(relevance) / fmean(lifting))


def means(rows: Sequence[Row], manifest: Row) -> Table:
    """Mean seconds of each step, published beside measured."""
    published = [_seconds([PUBLISHED[step]]) if step in PUBLISHED else "-" for step in STEPS]
    lines = [["published (Tran-Thien 2024)", *published, "-"]]
    for method, title in METHODS.items():
        cells = [_seconds(seconds_of(rows, method, step)) for step in STEPS]
        if any(cell != "-" for cell in cells):
            lines.append([title, *cells, str(len(done_by(rows, method)))])
    stored = _seconds(rows[0]["stored"])
    better, published_ratio = (
        times_better(rows, "eager"),
        PUBLISHED["relevance"] / PUBLISHED["lift"],
    )
    verdict = "met" if better >= GOAL else "not met"
    notes = [
        f"means; tokenizer: {manifest['tokenizer']}; load average at the start: "
        f"{manifest['load_average'][0]:.1f}",
        f"step 1 out of the disk cache: {stored} s",
        f"relevance / lift: published {published_ratio:.1f}, measured "
        f"{published_ratio / better:.4f}, which is {better:,.0f} times less (goal: {GOAL} times): "
        f"{verdict}",
        "2: masks of all states of the automaton; 3: the dead ids of every node that ids lead to "
        "from the start, the nodes given; 2 and 3 in one pass: finds the nodes, with their rows; "
        "edges to each last id are not written down, as a node's row holds them all",
        "published: other schemas of the same kind, another machine, outlines' automata",
        "the plain algorithms: within limits of time and memory, in a process each; see failures",
        "schemas: on how many each row was measured; the plain algorithms and the cache of "
        "segments have a limit of time for all schemas together",
    ]
    return Table("Table 2: seconds", ["", *STEPS.values(), "schemas"], lines, notes)


def spread(rows: Sequence[Row]) -> Table:
    """Mean, median and p99 of each step and engine."""
    measured = [
        ("schema to automaton", "", [row["compile"] for row in rows[1:] if "compile" in row])
    ]
    measured += [
        (title, name.replace("\n", " "), seconds_of(rows, method, step))
        for method, title in METHODS.items()
        for step, name in STEPS.items()
    ]
    lines = [[title, name, *_summary(seconds)] for title, name, seconds in measured if seconds]
    found, asked = _hits(rows, "segments, cold"), _hits(rows, "segments, warm")
    notes = [
        f"of the rows asked for, found in the cache of segments: cold {found}, warm {asked}; those "
        "of a segment that is known are not asked for"
    ]
    columns = ["", "step", "mean", "median", "p99", "most", "n"]
    return Table("The same in seconds, by engine and step", columns, lines, notes)


def _summary(seconds: Sequence[float]) -> list[str]:
    numbers = fmean(seconds), median(seconds), quantile(seconds, 0.99), max(seconds)
    return [*(f"{number:.3g}" for number in numbers), str(len(seconds))]


def _hits(rows: Sequence[Row], method: str) -> str:
    done = done_by(rows, method)
    found, other = (sum(row[key] for row in done) for key in ("found", "not_found"))
    return f"{found / (found + other):.1%}" if found + other else "-"


def failures(rows: Sequence[Row]) -> Table:
    """What did not come to an end, and why."""
    counts: Counter[tuple[str, str]] = Counter()
    for row in rows[1:]:
        if row["failure"]:
            counts["schema to automaton", row["failure"][:90]] += 1
        for method, found in row.get("methods", {}).items():
            if found["status"] != "done":
                counts[METHODS[method], found.get("message", found["status"])[:90]] += 1
    lines = [[*why, str(count)] for why, count in counts.most_common()]
    compared = [row["first"] for row in done_by(rows, "reference")]
    differing = compared.count(False)
    notes = [f"first masks that differ from the plain algorithms': {differing} of {len(compared)}"]
    return Table("Failures", ["of", "why", "schemas"], lines or [["none", "", "0"]], notes)


def _seconds(seconds: Sequence[float]) -> str:
    return f"{fmean(seconds):.3g}" if seconds else "-"
