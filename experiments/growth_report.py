"""The growth rows as tables (terminal and Markdown) and as a figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bpe_automata.errors import MissingFileError
from experiments import growth_figure
from experiments.distortion_report import shown_path
from experiments.growth_methods import CARTESIAN, DIRECT, EXPLICIT, LAZY, METHODS
from experiments.runner import Options, write_atomically
from experiments.tables import Table

Row = dict[str, Any]

SHORT = {
    DIRECT: "DirectMerge\n(reference)",
    CARTESIAN: "CartesianMerge\n(reference)",
    LAZY: "package,\nfirst mask",
    EXPLICIT: "package,\nwritten out",
}


def render(rows: Sequence[Row], manifest: Row, options: Options) -> None:
    """Print the tables, write them beside the rows, and draw the figure."""
    cells = [row for row in rows if row["kind"] == "cell"]
    if not cells:
        raise MissingFileError(f"nothing was measured in {options.folder}; run without --render")
    tables = [sizes(cells, manifest), costs(cells, manifest), limits(cells, rows, manifest)]
    for table in tables:
        table.print()
    text = "\n".join([f"# Growth: {manifest['tokenizer']}\n", *(t.markdown() for t in tables)])
    write_atomically(options.folder / "table.md", text)
    saved = growth_figure.draw(cells, manifest, options.figures)
    seconds = manifest["wall_seconds"]
    print(f"rows, manifest and table.md: {shown_path(options.folder)} (measured in {seconds} s)")
    print("figure: " + ", ".join(map(shown_path, saved)))


def sizes(cells: Sequence[Row], manifest: Row) -> Table:
    """One line per regex: the automata that were written out, and whether they agree."""
    written = [m for m in METHODS if m != LAZY]
    lines = [
        [
            name,
            *(_size(by.get(m)) for m in written),
            next((_pair(row["minimal"]) for row in by.values() if "minimal" in row), "-"),
            agreement([*by.values()]),
        ]
        for name, by in _by_regex(cells)
    ]
    columns = ["states / transitions", *(SHORT[m] for m in written), "minimal", "equal"]
    notes = [
        *_incomplete(manifest),
        "reference: the published algorithms in plain Python. CartesianMerge: the relevant pairs "
        "of the product, never written out by it. The package's states also hold the last id",
        "minimal: the least automaton of the language, where one was written out; equal: how many "
        "automata were compared, as languages (fewer where one is too large to be kept)",
    ]
    return Table(f"Growth of the automata: {manifest['tokenizer']}", columns, lines, notes)


def costs(cells: Sequence[Row], manifest: Row) -> Table:
    """One line per regex: seconds and memory of each method."""
    lines = [
        [
            name,
            *(_seconds(by.get(m), manifest) for m in METHODS),
            *(_memory(by.get(m)) for m in METHODS),
        ]
        for name, by in _by_regex(cells)
    ]
    columns = ["", *(f"{SHORT[m]}, s" for m in METHODS), *(f"{SHORT[m]}, MB" for m in METHODS)]
    config = manifest["config"]
    notes = [
        *_incomplete(manifest),
        "from a byte DFA on, one process for each cell; over "
        f"{config['limit_seconds']:g} s or {config['limit_mb'] / 1e3:g} GB a cell is given up, and "
        "larger ones are skipped (...)",
        "MB: 10^6 bytes, peak of the cell's process over what it began with",
    ]
    return Table("Seconds and memory", columns, lines, notes)


def _by_regex(cells: Sequence[Row]) -> Iterator[tuple[str, dict[str, Row]]]:
    """(a regex's name, its cells by method)."""
    for family, n in dict.fromkeys((row["family"], row["n"]) for row in cells):
        here = (row for row in cells if (row["family"], row["n"]) == (family, n))
        yield f"{family}, n = {n}", {row["method"]: row for row in here}


def _incomplete(manifest: Row) -> list[str]:
    missing = manifest["rows_expected"] - manifest["rows"]
    return [f"INCOMPLETE: {missing} rows of an interrupted run are missing"] if missing else []


def agreement(here: Sequence[Row]) -> str:
    """Of the cells of one regex: how many automata are equal, or who differs."""
    wrong = [row["method"] for row in here if row.get("disagrees")]
    if wrong:
        return "NO: " + ", ".join(wrong)
    compared = 1 + sum(bool(row.get("equal_to")) for row in here)
    return f"{compared}" if compared > 1 else "-"


def limits(cells: Sequence[Row], rows: Sequence[Row], manifest: Row) -> Table:
    """How far each method went."""
    lines = []
    for family in dict.fromkeys(row["family"] for row in cells):
        of_family = [row for row in cells if row["family"] == family]
        lines.append([family, *(reach(of_family, m, manifest) for m in METHODS)])
    seconds = {row["method"]: row["seconds"] for row in rows if row["kind"] == "preparation"}
    shared = ", ".join(f"{m} {s:.1f} s" for m, s in seconds.items() if s >= 0.05)
    note = f"made once for all regexes, not counted above: {shared or 'nothing that takes long'}"
    published = "published: the article plots n = 1 .. 6 of `.` repeated, for both algorithms"
    columns = ["largest n that was finished", *(SHORT[m] for m in METHODS)]
    return Table("Where each method stops", columns, lines, [note, published])


def reach(of_family: Sequence[Row], method: str, manifest: Row) -> str:
    """The largest n that was finished, and what stopped the next one."""
    rows = [row for row in of_family if row["method"] == method]
    done = [row["n"] for row in rows if row["status"] == "done"]
    stopped = next((row for row in rows if row["status"] not in ("done", "skipped")), None)
    reached = str(max(done)) if done else "none"
    if stopped is None:
        return f"{reached} (largest tried)"
    return f"{reached}, then {why(stopped, manifest)}"


def why(row: Row, manifest: Row) -> str:
    """What stopped a cell."""
    config = manifest["config"]
    named = {
        "over time": f"over {config['limit_seconds']:g} s",
        "over memory": f"over {config['limit_mb'] / 1e3:g} GB",
    }
    return named.get(row["status"], f"failed: {row.get('message', '')}")


def _size(row: Row | None) -> str:
    return _pair([row["states"], row["transitions"]]) if row and row["status"] == "done" else "-"


def _pair(sizes: Sequence[int]) -> str:
    return " / ".join(f"{size:,}" for size in sizes)


def _seconds(row: Row | None, manifest: Row) -> str:
    if row is None:
        return "-"
    if row["status"] == "done":
        return f"{row['seconds']:.2g}" if row["seconds"] < 10 else f"{row['seconds']:.0f}"
    return "..." if row["status"] == "skipped" else why(row, manifest)


def _memory(row: Row | None) -> str:
    return f"{row['peak_mb']:.0f}" if row and row["status"] == "done" else "-"
