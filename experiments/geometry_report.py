"""The geometry rows as tables (terminal and Markdown)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bpe_automata.errors import MissingFileError
from experiments.distortion_report import shown_path
from experiments.runner import Options, write_atomically
from experiments.speed_timing import median
from experiments.tables import Table

Row = dict[str, Any]

PUBLISHED_SECONDS = 20.8703916
PUBLISHED = (
    'published: printed by the companion notebook of Tran-Thien, "Fast, High-Fidelity LLM Decoding '
    'with Regex Constraints" (2024), for the same table on his machine; not measured here'
)
GOAL = 100


def render(rows: Sequence[Row], manifest: Row, options: Options) -> None:
    """Print the tables, and write them beside the rows."""
    if not any(row["kind"] == "reference" for row in rows):
        raise MissingFileError(f"nothing was measured in {options.folder}; run without --render")
    missing = manifest["rows_expected"] - manifest["rows"]
    notes = [f"INCOMPLETE: {missing} rows of an interrupted run are missing"] if missing else []
    tables = [costs(rows, notes), comparison(rows), beginnings(rows)]
    for table in tables:
        table.print()
    text = "\n".join([f"# Geometry: {manifest['tokenizer']}\n", *(t.markdown() for t in tables)])
    write_atomically(options.folder / "table.md", text)
    seconds = manifest["wall_seconds"]
    print(f"rows, manifest and table.md: {shown_path(options.folder)} (measured in {seconds} s)")


def differences(rows: Sequence[Row]) -> int:
    """Pairs that the two ways disagree on, and beginnings of the table on which they do."""
    found = sum(row["compared"]["differences"] for row in rows if row["kind"] == "reference")
    steps = (step for row in rows if row["kind"] == "beginnings" for step in row["steps"])
    return found + sum(step["counterexample"] is not None for step in steps)


def rectangle_seconds(rows: Sequence[Row]) -> list[float]:
    """Of all times that they were made, before and after the reference."""
    found = (row["seconds"] for row in rows if row["kind"].startswith("rectangles"))
    return [second for seconds in found for second in seconds]


def ratio(rows: Sequence[Row]) -> float:
    """How many times faster the rectangles are than Algorithm 3 without its fusion."""
    reference = next(row for row in rows if row["kind"] == "reference")
    return float(reference["seconds"]) / median(rectangle_seconds(rows))


def costs(rows: Sequence[Row], notes: Sequence[str]) -> Table:
    """Seconds and memory of both."""
    reference = next(row for row in rows if row["kind"] == "reference")
    made = [row for row in rows if row["kind"].startswith("rectangles")]
    seconds = rectangle_seconds(rows)
    fused = reference["seconds"] + reference["fusing_seconds"]
    sets = f"{reference['states']:,} states, {reference['forbidden']:,} forbidden tokens"
    lines = [
        ["Algorithm 3, published", f"{PUBLISHED_SECONDS:.1f}", "-", "-"],
        ["Algorithm 3, reference", *_cells(reference["seconds"], reference["peak_mb"]), sets],
        [
            "the same, fused",
            *_cells(fused, reference["fused_peak_mb"]),
            f"{reference['fused_states']:,} states",
        ],
    ]
    if made:
        size = f"{made[0]['rectangles']:,} rectangles, {made[0]['kept_mb']:.1f} MB"
        peak = max(row["peak_mb"] for row in made)
        lines.append(["rectangles", *_cells(median(seconds), peak), size])
        times = ratio(rows)
        met = "yes" if times >= GOAL else "NO"
        lines.append([f"rectangles: times faster (goal {GOAL})", f"{times:,.0f}", "", met])
    return Table(
        "The automaton of all texts of the Mistral-7B table",
        ["", "seconds", "MB", "what is kept"],
        lines,
        [
            *notes,
            f"rectangles: median of {len(seconds)} (from {min(seconds, default=0):.3f} to "
            f"{max(seconds, default=0):.3f} s), derivations included, kernels loaded; "
            "from a tokenizer in memory",
            "MB: 10^6 bytes, peak of a process of its own over what it had with the tokenizer",
            PUBLISHED,
        ],
    )


def _cells(seconds: float, megabytes: float) -> list[str]:
    return [f"{seconds:.3f}" if seconds < 10 else f"{seconds:.1f}", f"{megabytes:.0f}"]


def comparison(rows: Sequence[Row]) -> Table:
    """Algorithm 3 against the rectangles, on the complete table."""
    found = next(row["compared"] for row in rows if row["kind"] == "reference")
    names = {
        "tokens": "tokens",
        "pairs": "pairs of tokens, all compared",
        "forbidden": "of them forbidden",
        "distinct_rows": "distinct rows of forbidden tokens",
        "by_row": "differences by row (clear_followers)",
        "by_column": "differences by column (clear_predecessors)",
        "sampled": "random pairs, half of them forbidden",
        "by_merge": "differences among them (breaking_merge)",
    }
    lines = [[text, f"{found[key]:,}"] for key, text in names.items() if key in found]
    lines.append(["differences in all", f"{found['differences']:,}"])
    return Table("Algorithm 3 against the rectangles", ["", "number"], lines)


def beginnings(rows: Sequence[Row]) -> Table:
    """DirectMerge on `.*` against Algorithm 3."""
    empty: Row = {"steps": [], "of": 0}
    found = next((row for row in rows if row["kind"] == "beginnings"), empty)
    lines = [
        [
            f"{step['merges']:,}",
            "{:,} / {:,}".format(*step["direct"]),
            "{:,} / {:,}".format(*step["texts"]),
            f"{step['direct_seconds']:.2f}",
            f"{step['texts_seconds']:.2f}",
            "yes" if step["counterexample"] is None else f"NO: {step['counterexample']}",
        ]
        for step in found["steps"]
    ]
    columns = ["merges", "DirectMerge\nstates / transitions", "Algorithm 3, fused\nstates / trans."]
    columns += ["DirectMerge\ns", "Algorithm 3\ns", "equal"]
    last = f"{found['steps'][-1]['merges']:,}" if found["steps"] else "none"
    note = (
        f"the first merges of {found['of']:,}, over all base symbols: {last} of them fit into the "
        "budget of time as an explicit automaton"
    )
    return Table("DirectMerge on .* against Algorithm 3", columns, lines, [note])
