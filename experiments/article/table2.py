"""The article's Table 2, published beside measured: what CartesianMerge costs on function calls.

Step 1: the automaton of the tokenizer. Step 2: the lift. Step 3: the relevant states of the
product. Step 4: a mask. The schemas are Glaiveai2K of MaskBench (or `--schemas`), with only the
properties that they name, written without white space; the tokenizer is that of Mistral-7B
(`--tokenizer`). Masks are those along a valid instance, or else the shortest text.

Step 2 is the lift: it makes the mask of each state of the automaton, by the lift's own method. Step
3 makes the row of each configuration of the product that ids lead to from the start: the ids after
which acceptance can be reached. It is given the list of the configurations, which comes from the
pass that finds them with their rows; that pass, which does the work of steps 2 and 3, is timed
apart ("2 and 3 in one pass").

Engines take turns at each schema: eager (step by step), lazy. The published algorithms in plain
Python run on as many schemas as fit in their time, over the merge table alone, and the eager engine
on the same. A first mask of theirs that differs is wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from bpe_automata import Tokenizer
from experiments.article.forks import DONE
from experiments.article.mistral import MERGES_HELP, MISTRAL, mistral, name_of
from experiments.article.redrawn import SCHEMAS as FUNCTIONS
from experiments.article.table2_series import (
    Limits,
    Series,
    Source,
    sources_of,
)
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import FAILURE, Cell, Row, measured
from experiments.run.measuring import Run, progress
from experiments.run.report import Report
from experiments.run.tables import (
    Column,
    Group,
    Table,
    frame,
    highest,
    median,
    quantiles,
    several,
    table,
    three,
    values,
)
from experiments.schemas.inputs import SCHEMAS

VERSION = 2
TOKENIZER = "tokenizer"
WARM = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}


@dataclass(frozen=True)
class Config(config.Config):
    """Which schemas, which tokenizer, and what the plain algorithms may take."""

    tokenizer: str = option(MISTRAL, "a name or a path")
    schemas: Path = option(SCHEMAS, "folder or file of JSON lines, or hub id of a data set")
    n: int | None = option(None, "how many of the schemas, drawn by lot (none: all)")
    merges: int | None = option(None, f"for the plain algorithms: {MERGES_HELP}")
    reference_seconds: float = option(40, "of the plain algorithms for one schema; 0: without them")
    reference_total: float = option(80, "the same in seconds for all schemas together")
    reference_mb: float = option(4000, "memory of the plain algorithms, 10^6 bytes")


SMOKE = Config(schemas=FUNCTIONS, n=2, merges=20, reference_seconds=5, reference_total=5)


def measure(run: Run[Config]) -> None:
    """A row for the tokenizer, and one for each schema with all engines."""
    chosen = run.config
    sources = sources_of(chosen.schemas, chosen.n, chosen.seed)
    is_default = chosen.tokenizer == MISTRAL
    tokenizer = mistral() if is_default else Tokenizer.load(chosen.tokenizer)
    seconds = chosen.reference_seconds if is_default else 0.0
    limits = Limits(chosen.merges, chosen.reference_total, chosen.reference_mb)
    measure_on(run, Series(tokenizer, seconds, limits), sources)


def measure_on(
    run: Run[Config], series: Series, sources: Sequence[Source], warm: Any = WARM
) -> None:
    """warm: a schema that loads the kernels."""
    keyed = {f"schema {number}: {source.id}": source for number, source in enumerate(sources)}
    todo = run.expect([TOKENIZER, *keyed])
    if not todo:
        return
    series.warm(Source("warm", warm, ({"a": "é", "b": 1},)))
    if TOKENIZER in todo:
        run.add(TOKENIZER, series.tokenizer_row())
    known = {row["key"]: row for row in run.rows}
    series.go_on_after([known[key] for key in keyed if key not in todo])
    with progress() as bar:
        for key in bar.track([key for key in todo if key in keyed], description="table2"):
            run.add(key, measured(Cell(key, series.row, (keyed[key],))))


# ---------------------------------------------------------------- what the rows say

PUBLISHED = {"tokenizer": 20.9, "lift": 0.687, "relevance": 27.3, "masks": 0.00153}
"""Seconds: Tran-Thien 2024, Table 2, Mistral-7B and function calls."""
PUBLISHED_RATIO = PUBLISHED["relevance"] / PUBLISHED["lift"]
"""The search that is published finds the states as well: beside it stands our pass that does."""
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
}
_FIRST_STEP = {"reference": "reference", "eager": "eager"}
"""Which of the tokenizer's times are a method's step 1."""


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """Three tables; a method that does not come to an end is a result."""
    schemas = [row for row in rows if row.get("kind") == "schema"]
    tokenizer = next((row for row in rows if row.get("kind") == "tokenizer"), {})
    seconds = seconds_of(schemas, tokenizer)
    differing = [
        f"{row['key']}: the first mask is not that of the plain algorithms"
        for row in schemas
        if not row["methods"].get("reference", {}).get("first", True)
    ]
    found = facts(schemas, seconds)
    stored = tokenizer.get("stored")
    stored = f"step 1 out of the disk cache: {three(fmean(stored)) if stored else '-'} s"
    tables = [
        means(schemas, found, [stored, *_like_for_like(found)], manifest),
        spread(schemas, seconds),
        failures(schemas),
    ]
    title = "Table 2: what CartesianMerge costs on function calls"
    return Report(title, tables, facts=found, wrong=differing)


def done_by(schemas: Sequence[Row], method: str) -> list[Row]:
    """The rows of a method that came to an end."""
    found = (row["methods"].get(method) for row in schemas)
    return [row for row in found if row and row["status"] == DONE]


def seconds_of(schemas: Sequence[Row], tokenizer: Row) -> dict[tuple[str, str], list[float]]:
    """By method and step all that were measured, over the schemas where the method came to an end;
    of masks those along all texts. Nothing of a step that a method does not have."""
    found: dict[tuple[str, str], list[float]] = {}
    for method in METHODS:
        done = done_by(schemas, method)
        each = {step: [row[step] for row in done if step in row] for step in STEPS}
        each["masks"] = [spent for masks in each["masks"] for spent in masks]
        each["tokenizer"] = tokenizer.get(_FIRST_STEP.get(method, ""), [])
        found |= {(method, step): seconds for step, seconds in each.items() if seconds}
    return found


def facts(schemas: Sequence[Row], seconds: Mapping[tuple[str, str], list[float]]) -> Row:
    """schemas: how many; seconds: means by method and step; times_better: how many times less of
    the lift the search for relevant states costs than published; times_faster: in seconds, which
    are of different machines."""
    means: dict[str, dict[str, float]] = {method: {} for method in METHODS}
    for (method, step), spent in seconds.items():
        means[method][step] = fmean(spent)
    better = faster = None
    if "rows" in (eager := means["eager"]):
        better = PUBLISHED_RATIO / (eager["rows"] / eager["lift"])
        faster = PUBLISHED["relevance"] / eager["rows"]
    shown = {"times_better": better, "times_faster": faster}
    return {"schemas": len(schemas), "seconds": means, **shown}


def means(schemas: Sequence[Row], found: Row, extra: Sequence[str], manifest: Row) -> Table:
    """Mean seconds of each step, published beside measured."""
    lines: list[Row] = [{"of": "published (Tran-Thien 2024)", **PUBLISHED}]
    lines += [
        {"of": METHODS[method], **steps, "schemas": len(done_by(schemas, method))}
        for method, steps in found["seconds"].items()
        if steps
    ]
    columns = [
        Column("", "of"),
        *(Column(name, partial(_only, step), three) for step, name in STEPS.items()),
        Column("schemas", partial(_only, "schemas")),
    ]
    notes = [
        f"means; tokenizer: {manifest['config']['tokenizer']}; load average at the start: "
        f"{manifest['load_average'][0]:.1f}",
        *extra,
        "2: masks of all states of the automaton; 3: the rows of all configurations that ids lead "
        "to from the start, these given; 2 and 3 in one pass: finds them, with their rows; edges "
        "to each last id are not written down, as a row holds them all",
        "published: other schemas of the same kind, another machine, outlines' automata",
        f"the plain algorithms: merges of {name_of(manifest['config']['merges'])}; within limits "
        "of time and memory, in a process each; see failures",
        "schemas: on how many each row was measured; the plain algorithms have a limit of time for "
        "all schemas together",
    ]
    return table("Table 2: seconds", frame(lines), columns, notes)


def _only(field: str, line: Group) -> Any:
    """Of a line that may lack the field."""
    return next(iter(values(line, field)), None)


def _like_for_like(found: Row) -> list[str]:
    better = found["times_better"]
    if better is None:
        return []
    return [
        "like for like, the search for relevant states is step 3 of the article, and 2 and 3 in "
        f"one pass here: {PUBLISHED_RATIO:.1f} and {PUBLISHED_RATIO / better:.1f} times the lift, "
        f"{better:.1f} times less; in seconds {found['times_faster']:,.0f} times less, on another "
        "machine. Our step 3 is given the configurations"
    ]


def spread(schemas: Sequence[Row], seconds: Mapping[tuple[str, str], list[float]]) -> Table:
    """Mean, median and p99 of each step and engine."""
    compiled = [row["compile"] for row in schemas if "compile" in row]
    lines = [{"of": "schema to automaton", "step": "", "seconds": compiled}] if compiled else []
    lines += [
        {"of": METHODS[method], "step": STEPS[step].replace("\n", " "), "seconds": spent}
        for method in METHODS
        for step in STEPS
        if (spent := seconds.get((method, step)))
    ]
    columns = [
        Column("", "of"),
        Column("step", "step"),
        Column("mean", lambda line: fmean(values(line, "seconds")), three),
        Column("median", median("seconds"), three),
        Column("p99", quantiles("seconds", 0.99), several(three)),
        Column("most", highest("seconds"), three),
        Column("n", lambda line: len(values(line, "seconds"))),
    ]
    return table("The same in seconds, by engine and step", frame(lines), columns)


def failures(schemas: Sequence[Row]) -> Table:
    """What did not come to an end, and why."""
    reasons = [("schema to automaton", row[FAILURE]) for row in schemas if row[FAILURE]]
    reasons += [
        (METHODS[method], one.get(FAILURE, one["status"]))
        for row in schemas
        for method, one in row["methods"].items()
        if one["status"] != DONE
    ]
    counts = Counter((of, why[:90]) for of, why in reasons)
    lines = [[*reason, str(n)] for reason, n in counts.most_common()] or [["none", "", "0"]]
    compared = [row["first"] for row in done_by(schemas, "reference")]
    differing = compared.count(False)
    notes = [f"first masks that differ from the plain algorithms': {differing} of {len(compared)}"]
    return Table("Failures", ["of", "why", "schemas"], lines, notes)
