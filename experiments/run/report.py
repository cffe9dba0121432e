"""What an artefact says of its rows: a page of tables and its figures."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import fill
from typing import Any

from experiments.run.executors import FAILURE, Row
from experiments.run.files import lines_of, require, shown_path, write_atomically
from experiments.run.tables import Table

# What every figure has in common: a headline, a note at the foot, and a file.

LETTERS = 16
"""Of a note, in an inch."""


def noted(note: str, inches: float) -> str:
    """A note in the lines that it has below a figure of this width."""
    return "\n".join(fill(line, int(LETTERS * inches)) for line in note.splitlines())


def panels(
    lines: int, columns: int, size: tuple[float, float], lined: str = "", **more: Any
) -> tuple[Any, Any]:
    """(a figure, its axes [lines, columns]), without a frame above and to the right. lined: "both",
    "x" or "y" for a grid on all of them; more: for `pyplot.subplots`."""
    require("matplotlib").use("Agg")
    pyplot = require("matplotlib.pyplot")
    more |= {"figsize": size, "layout": "constrained", "squeeze": False}
    with pyplot.rc_context({"axes.spines.top": False, "axes.spines.right": False}):
        figure, axes = pyplot.subplots(lines, columns, **more)
    for one in axes.flat if lined else ():
        grid(one, lined)
    return figure, axes


def grid(axes: Any, axis: str) -> None:
    """Pale lines behind what is drawn, across "x", "y" or "both"."""
    axes.grid(axis=axis, color="#eeeeee")
    axes.set_axisbelow(True)


def finish(figure: Any, headline: str, note: str, folder: Path, name: str) -> Path:
    """Write a matplotlib figure as `name.png` into `folder`, and close it. Returns the path."""
    from matplotlib import pyplot

    figure.suptitle(headline, x=0.01, ha="left", fontsize=13, fontweight="bold")
    figure.supxlabel(
        noted(note, figure.get_figwidth()), x=0.01, ha="left", fontsize=8, color="#555555"
    )
    _lay_out(figure)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.png"
    figure.savefig(path, dpi=160)
    pyplot.close(figure)
    return path


def _lay_out(figure: Any) -> None:
    """Place the axes to a millionth of the figure: what the solver of the constrained layout finds
    differs in the last digits even between equal figures."""
    if figure.get_layout_engine() is None:
        return
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        axes.set_position([round(end, 6) for end in axes.get_position(original=True).bounds])


MOST_SHOWN = 5
"""Failures that a table names."""
MODEL = "model"
"""The key of the row that says which model was read, or its first word where there are several."""
_PATH = re.compile(r"(?<![\w#])[~.]*/[^\s'\",;]+")
"""Absolute paths, those that begin with ~ or a dot, and what comes after the scheme of a URL; not
JSON pointers."""


@dataclass(frozen=True)
class Figure:
    """name: of the files; drawn: a figure of matplotlib; headline: its one message; note: the line
    below it, with n and what the marks are."""

    name: str
    drawn: Any
    headline: str
    note: str


@dataclass(frozen=True)
class Report:
    """title: of the page; facts: numbers by name, as JSON has them, for the README; wrong: what
    must not be, which makes the exit code 1; complete: is nothing missing that the README speaks
    of? Of a report that is not, the README takes no number."""

    title: str
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    facts: Row = field(default_factory=dict)
    wrong: Sequence[str] = ()
    complete: bool = True


def labelled(report: Report, rows: Sequence[Row], manifest: Row) -> Report:
    """Every table of an incomplete run says that it is, in its title too; failures are counted
    everywhere, and named in the first table, where there is nothing else to show too."""
    notes, short = list[str](), list[str]()
    report = replace(report, complete=report.complete and is_whole(rows, manifest))
    if not manifest["complete"]:
        missing = manifest["rows_expected"] - manifest["rows"]
        short.append(f"INCOMPLETE: {missing} of {manifest['rows_expected']} rows are missing")
        notes.append(short[-1])
    failed = sorted((row for row in rows if row.get(FAILURE)), key=lambda row: str(row["key"]))
    if failed:
        shown = "; ".join(
            f"{row['key']}: {without_paths(row[FAILURE])}" for row in failed[:MOST_SHOWN]
        )
        more = f"; and {len(failed) - MOST_SHOWN} more" if len(failed) > MOST_SHOWN else ""
        short.append(f"{len(failed)} of {len(rows)} rows are failures")
        notes.append(f"{short[-1]}: {shown}{more}"[:600])
    if not notes:
        return report
    is_empty = not report.tables and not report.figures
    tables = [Table("Nothing was measured", ["row"], [])] if is_empty else report.tables
    return replace(
        report,
        tables=[_noted(table, short if k else notes, manifest) for k, table in enumerate(tables)],
        figures=[replace(f, note="\n".join([f.note, *short])) for f in report.figures],
    )


def _noted(table: Table, notes: Sequence[str], manifest: Row) -> Table:
    title = table.title if manifest["complete"] else f"{table.title} (incomplete)"
    return replace(table, title=title, notes=[*notes, *table.notes])


def is_whole(rows: Sequence[Row], manifest: Row) -> bool:
    """Are all rows there, not all of them failures, and none of a model that could not be read?

    A model that is missing takes all its numbers with it, though the failure is one row. Other
    failures are results (an engine that cannot compile a schema), which tables count.
    """
    failed = [str(row["key"]) for row in rows if row.get(FAILURE)]
    of_models = any(key.split(" ")[0] == MODEL for key in failed)
    return bool(manifest["complete"]) and len(failed) < len(rows) and not of_models


def without_paths(failure: str) -> str:
    """Tables are read on other machines, so they show no path of this one; the rows have it."""
    return _PATH.sub("...", failure)


def page(report: Report) -> str:
    """Figures and tables, as a page of Markdown."""
    shown = (f"![{' '.join(f.headline.split())}]({f.name}.png)\n" for f in report.figures)
    return "\n".join([f"# {report.title}\n", *shown, *(t.markdown() for t in report.tables)])


def write(name: str, report: Report, folder: Path) -> list[Path]:
    """`name.md` and the figures. Returns the paths."""
    path = folder / f"{name}.md"
    write_atomically(path, page(report))
    drawn = (finish(f.drawn, f.headline, f.note, folder, f.name) for f in report.figures)
    return [path, *drawn]


def publish(rows: Sequence[Row], manifest: Row, path: Path) -> None:
    """The rows that a table shows, for others to read: gzipped JSON lines, the manifest first."""
    lines = [manifest, *rows]
    text = "".join(json.dumps(_without_paths(line), ensure_ascii=False) + "\n" for line in lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def read_published(path: Path) -> tuple[list[Row], Row]:
    """(rows, manifest). Raises MissingFileError."""
    manifest, *rows = lines_of(path)
    return rows, manifest


def _without_paths(line: Row) -> Row:
    return {
        key: without_paths(value) if key in (FAILURE, "no_schemas") and value else value
        for key, value in line.items()
    }


def show(report: Report, paths: Sequence[Path]) -> None:
    """To the terminal."""
    for table in report.tables:
        table.print()
    print("written: " + ", ".join(map(shown_path, paths)))
    if not report.complete:
        print("The README keeps the numbers that it has: rows or models are missing.")
    for line in report.wrong:
        print(f"WRONG: {line}")
