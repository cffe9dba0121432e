"""Table 2, published beside measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean

from experiments.article.mistral import name_of
from experiments.article.server import DONE
from experiments.run.executors import FAILURE, Row
from experiments.run.report import Report
from experiments.run.statistics import median, quantile
from experiments.run.tables import Table

PUBLISHED = {"tokenizer": 20.9, "lift": 0.687, "relevance": 27.3, "masks": 0.00153}
"""Seconds: Tran-Thien 2024, Table 2, Mistral-7B and function calls."""
PUBLISHED_RATIO = PUBLISHED["relevance"] / PUBLISHED["lift"]
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


def report(rows: Sequence[Row], manifest: Row) -> Report:
    """Of whatever rows there are."""
    found = Found(rows)
    differing = [
        f"{row['key']}: the first mask is not that of the plain algorithms"
        for row in found.schemas
        if not row["methods"].get("reference", {}).get("first", True)
    ]
    tables = [means(found, manifest), spread(found), failures(found)]
    title = "Table 2: what CartesianMerge costs on function calls"
    return Report(title, tables, facts=facts(found), wrong=differing)


class Found:
    """The rows by what they are of."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.tokenizer = next((row for row in rows if row.get("kind") == "tokenizer"), {})
        self.schemas = [row for row in rows if row.get("kind") == "schema"]

    def seconds(self, method: str, step: str) -> list[float]:
        """All that were measured, over the schemas where the method did not fail; of masks all
        along all texts."""
        if step == "tokenizer":
            found: list[float] = self.tokenizer.get(_MADE.get(method, ""), [])
            return found
        done = [row[step] for row in self.done_by(method) if step in row]
        return [spent for masks in done for spent in masks] if step == "masks" else done

    def done_by(self, method: str) -> list[Row]:
        """The rows of a method that came to an end."""
        found = (row["methods"].get(method) for row in self.schemas)
        return [row for row in found if row and row["status"] == DONE]

    def times_better(self, method: str) -> float | None:
        """How many times less of the lift relevance costs than published; None: not measured."""
        lifting, relevance = (self.seconds(method, step) for step in ("lift", "relevance"))
        if not relevance or not fmean(relevance):
            return None
        return PUBLISHED_RATIO / (fmean(relevance) / fmean(lifting))


def facts(found: Found) -> Row:
    """schemas: how many; seconds: means by method and step; times_better: how many times less of
    the lift relevance costs than published."""
    seconds = {
        method: {step: fmean(spent) for step in STEPS if (spent := found.seconds(method, step))}
        for method in METHODS
    }
    better = found.times_better("eager")
    return {"schemas": len(found.schemas), "seconds": seconds, "times_better": better}


def means(found: Found, manifest: Row) -> Table:
    """Mean seconds of each step, published beside measured."""
    published = [_seconds([PUBLISHED[step]]) if step in PUBLISHED else "-" for step in STEPS]
    lines = [["published (Tran-Thien 2024)", *published, "-"]]
    for method, title in METHODS.items():
        cells = [_seconds(found.seconds(method, step)) for step in STEPS]
        if any(cell != "-" for cell in cells):
            lines.append([title, *cells, str(len(found.done_by(method)))])
    notes = [
        f"means; tokenizer: {manifest['config']['tokenizer']}; load average at the start: "
        f"{manifest['load_average'][0]:.1f}",
        f"step 1 out of the disk cache: {_seconds(found.tokenizer.get('stored', []))} s",
        *_goal(found.times_better("eager")),
        "2: masks of all states of the automaton; 3: the dead ids of every node that ids lead to "
        "from the start, the nodes given; 2 and 3 in one pass: finds the nodes, with their rows; "
        "edges to each last id are not written down, as a node's row holds them all",
        "published: other schemas of the same kind, another machine, outlines' automata",
        f"the plain algorithms: merges of {name_of(manifest['config']['merges'])}; within limits "
        "of time and memory, in a process each; see failures",
        "schemas: on how many each row was measured; the plain algorithms and the cache of "
        "segments have a limit of time for all schemas together",
    ]
    return Table("Table 2: seconds", ["", *STEPS.values(), "schemas"], lines, notes)


def _goal(better: float | None) -> list[str]:
    if better is None:
        return []
    return [
        f"relevance / lift: published {PUBLISHED_RATIO:.1f}, measured "
        f"{PUBLISHED_RATIO / better:.4f}, which is {better:,.0f} times less (goal: {GOAL} times): "
        f"{'met' if better >= GOAL else 'not met'}"
    ]


def spread(found: Found) -> Table:
    """Mean, median and p99 of each step and engine."""
    compiled = [row["compile"] for row in found.schemas if "compile" in row]
    measured = [("schema to automaton", "", compiled)]
    measured += [
        (title, name.replace("\n", " "), found.seconds(method, step))
        for method, title in METHODS.items()
        for step, name in STEPS.items()
    ]
    lines = [[title, name, *_summary(seconds)] for title, name, seconds in measured if seconds]
    cold, warm = (_made(found.done_by(f"segments, {name}")) for name in ("cold", "warm"))
    notes = [
        f"of the nodes, those whose row was not in the cache of segments: cold {cold}, warm {warm}"
    ]
    columns = ["", "step", "mean", "median", "p99", "most", "n"]
    return Table("The same in seconds, by engine and step", columns, lines, notes)


def _summary(seconds: Sequence[float]) -> list[str]:
    numbers = fmean(seconds), median(seconds), quantile(seconds, 0.99), max(seconds)
    return [*(f"{number:.3g}" for number in numbers), str(len(seconds))]


def _made(done: Sequence[Row]) -> str:
    made, nodes = (sum(row[key] for row in done) for key in ("made", "nodes"))
    return f"{made / nodes:.1%}" if nodes else "-"


def failures(found: Found) -> Table:
    """What did not come to an end, and why."""
    counts: Counter[tuple[str, str]] = Counter()
    for row in found.schemas:
        if row[FAILURE]:
            counts["schema to automaton", row[FAILURE][:90]] += 1
        for method, one in row["methods"].items():
            if one["status"] != DONE:
                counts[METHODS[method], one.get(FAILURE, one["status"])[:90]] += 1
    lines = [[*why, str(count)] for why, count in counts.most_common()]
    compared = [row["first"] for row in found.done_by("reference")]
    differing = compared.count(False)
    notes = [f"first masks that differ from the plain algorithms': {differing} of {len(compared)}"]
    return Table("Failures", ["of", "why", "schemas"], lines or [["none", "", "0"]], notes)


def _seconds(seconds: Sequence[float]) -> str:
    return f"{fmean(seconds):.3g}" if seconds else "-"
