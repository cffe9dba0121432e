"""What an artefact says of its rows: tables and figures, written in every format at once, and the
page of all artefacts."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import Any

from experiments.run.executors import FAILURE, Row
from experiments.run.files import PAPER, lines_of, require, shown_path, write_atomically
from experiments.run.tables import Table, texts

# What every figure has in common: a headline, a note at the foot, and three files.

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


def finish(figure: Any, headline: str, note: str, folder: Path, name: str) -> list[Path]:
    """Write a matplotlib figure as `name.png`, `.pdf` and `.svg` into `folder`, and close it.

    Equal figures make equal files: none carries a date. Returns the paths.
    """
    from matplotlib import pyplot, rc_context

    figure.suptitle(headline, x=0.01, ha="left", fontsize=13, fontweight="bold")
    figure.supxlabel(
        noted(note, figure.get_figwidth()), x=0.01, ha="left", fontsize=8, color="#555555"
    )
    _lay_out(figure)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.{suffix}" for suffix in ("png", "pdf", "svg")]
    figure.savefig(paths[0], dpi=160)
    figure.savefig(paths[1], metadata={"CreationDate": None})
    with rc_context({"svg.hashsalt": name}):
        figure.savefig(paths[2], metadata={"Date": None})
    pyplot.close(figure)
    return paths


def _lay_out(figure: Any) -> None:
    """Place the axes once for all files, to a millionth of the figure: what the solver of the
    constrained layout finds differs in the last digits even between equal figures."""
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
    """title: of the page; facts: numbers by name, as JSON has them, for the README and for others
    to read; wrong: what must not be, which makes the exit code 1; complete: is nothing missing that
    the README speaks of? Of a report that is not, the README takes no number."""

    title: str
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    facts: Row = field(default_factory=dict)
    wrong: Sequence[str] = ()
    complete: bool = True


def labelled(report: Report, rows: Sequence[Row], manifest: Row) -> Report:
    """Every table of an incomplete run says that it is, in its title too, which LaTeX prints;
    failures are counted everywhere, and named in the first table, where there is nothing else to
    show too."""
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


def write(
    name: str, report: Report, manifest: Row, folder: Path, readme: Mapping[str, str]
) -> list[Path]:
    """`name.md`, `name.tex`, the figures, and `name.json` with all that they say, what the README
    says of it, by place, and the manifest. Returns the paths."""
    paths = [folder / f"{name}.{suffix}" for suffix in ("md", "tex", "json")]
    markdown = [f"# {report.title}\n", *(table.markdown() for table in report.tables)]
    write_atomically(paths[0], "\n".join(markdown))
    write_atomically(paths[1], "\n".join(table.latex() for table in report.tables))
    kept = {
        "title": report.title,
        "facts": report.facts,
        "readme": readme,
        "tables": [asdict(table) for table in report.tables],
        "figures": [
            {"name": figure.name, "headline": figure.headline, "note": figure.note}
            for figure in report.figures
        ],
        "manifest": manifest,
    }
    write_atomically(paths[2], json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    for figure in report.figures:
        paths += finish(figure.drawn, figure.headline, figure.note, folder, figure.name)
    return paths


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


# The page of all artefacts, findings first, from the JSON files beside it. It needs no network.

INDEX = "index.html"
_TEMPLATE = "page.html.j2"


def write_page(folder: Path, groups: Mapping[str, Collection[str]]) -> Path:
    """The page of what lies in the folder; returns its path. groups: names of artefacts by
    heading, in order."""
    path = folder / INDEX
    write_atomically(path, page_html(read_page(folder, groups), groups))
    return path


def read_page(folder: Path, groups: Mapping[str, Collection[str]]) -> dict[str, Row]:
    """What `report.write` wrote of each artefact that is there."""
    paths = {name: folder / f"{name}.json" for names in groups.values() for name in names}
    return {
        name: json.loads(path.read_text(encoding="utf-8"))
        for name, path in paths.items()
        if path.exists()
    }


def page_html(found: Mapping[str, Row], groups: Mapping[str, Collection[str]]) -> str:
    """The whole page. The first group opens it, in the words that the README has for it."""
    shown = {heading: [name for name in of if name in found] for heading, of in groups.items()}
    shown = {heading: names for heading, names in shown.items() if names}
    opening = next(iter(groups), "")
    jinja = require("jinja2")
    environment = jinja.Environment(
        loader=jinja.FileSystemLoader(Path(__file__).parent), autoescape=True
    )
    environment.filters |= {
        "code": _with_code,
        "prose": _prose,
        "shown": partial(json.dumps, indent=1, ensure_ascii=False),
    }
    page: str = environment.get_template(_TEMPLATE).render(
        found=found,
        groups=shown,
        texts=texts,
        findings=[
            text
            for name in shown.get(opening, ())
            for text in _in_short(found[name].get("readme", {}))
        ],
    )
    return page + "\n"


def _in_short(said: Mapping[str, str]) -> list[str]:
    """Of the texts for the README, by place, the short ones where there are such."""
    short = [text for place, text in said.items() if " " in place]
    return short or list(said.values())


def _with_code(text: str) -> Any:
    """Text with code between backticks, as in Markdown."""
    markup = require("markupsafe")
    return markup.Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(markup.escape(text))))


def _prose(text: str) -> Any:
    """Markdown as HTML, with links as they are from the folder of the page."""
    markdown = require("markdown_it").MarkdownIt().enable("table")
    inside = markdown.render(text.replace(f"]({PAPER.name}/", "]("))
    return require("markupsafe").Markup(inside)
