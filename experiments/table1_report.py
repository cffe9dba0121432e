"""Table 1 for the terminal, as Markdown and as LaTeX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bpe_automata.errors import MissingFileError
from experiments.distortion_report import shown_path
from experiments.runner import Options, write_atomically
from experiments.tables import Table

Row = dict[str, Any]

COLUMNS = {
    "free": "unconstrained",
    "lift": "any tokenization\n(Outlines)",
    "canonical": "its own tokenization\n(DirectMerge, CartesianMerge)",
}
PUBLISHED: dict[str, tuple[float, float]] = {
    "free": (0.0236206, 0.00388386),
    "lift": (0.0284329, 0.0253642),
    "canonical": (0.0236205, 0.00388619),
}
"""(` William`, ` Theodore`): printed by the article's companion notebook, Tran-Thien 2024."""
PUBLISHED_SHARES = {"free": 0.858792, "lift": 0.528521, "canonical": 0.858719}
"""Printed there too; the masses above are rounded."""
PUBLISHED_MODEL = "Mistral-7B-v0.1, 4 bits (published)"
PUBLISHED_SIZES = {"lift": (17, 48), "direct_of_given": (5, 4)}
SIZES = {
    "lift": "lift (Outlines), reference",
    "direct_of_given": "DirectMerge of interegular's automaton, reference",
    "direct_of_minimal": "DirectMerge of the minimal automaton, reference",
    "package_lift": "lift, package",
    "package_canonical": "CartesianMerge, package (states hold the last id)",
}


def render(rows: Sequence[Row], manifest: Row, options: Options) -> None:
    """Print the tables, and write them beside the paper's figures."""
    if len(rows) < 2:
        raise MissingFileError(f"{options.folder} is incomplete; run without --render")
    tables = [laws(rows[0], manifest), sizes(rows[1]["sizes"])]
    for table in tables:
        table.print()
    folder = options.figures
    write_atomically(folder / "table1.md", "\n".join(t.markdown() for t in tables))
    write_atomically(folder / "table1.tex", "\n".join(map(latex, tables)))
    written = ", ".join(shown_path(folder / f"table1.{suffix}") for suffix in ("md", "tex"))
    print(f"table: {written} (measured in {manifest['wall_seconds']} s)")


def laws(row: Row, manifest: Row) -> Table:
    """Mass of both answers and what it makes of the first, published beside measured."""
    measured = {column: row[column][0] / sum(row[column]) for column in COLUMNS}
    lines = [
        *_lines(PUBLISHED_MODEL, PUBLISHED, PUBLISHED_SHARES),
        *_lines(f"{manifest['model']} (measured)", row, measured),
    ]
    masked = row["masked"]
    shares_ = [f"{masked[m][0]:.6f}" for m in ("lift", "canonical")]
    lines.append(["", "the same, decoding step by step", "", *shares_])
    question = row["prompt"].replace("\n", " ")
    notes = [
        f"prompt: {question}",
        "unconstrained: probability of each answer, summed over all its tokenizations; the other "
        "columns: of the shortest sequences of ids that lead to one answer only",
        "step by step: the law of what a masked model writes, renormalised at each step",
        "published: printed by the article's companion notebook, Tran-Thien 2024. Of the table "
        "itself nothing was at hand, so its arrangement is ours",
        *([manifest["note"]] if manifest["note"] else []),
    ]
    columns = ["model", "answer", *COLUMNS.values()]
    return Table("Table 1: what constraining does to a law", columns, lines, notes)


def _lines(model: str, masses: Mapping[str, Any], shares: Mapping[str, float]) -> list[list[str]]:
    """A line per answer, and one for the share of the first."""
    first, second = ([f"{masses[column][i]:.6g}" for column in COLUMNS] for i in (0, 1))
    return [
        [model, "‘ William’", *first],
        ["", "‘ Theodore’", *second],
        ["", "William of the two", *(f"{shares[column]:.6f}" for column in COLUMNS)],
    ]


def sizes(found: Row) -> Table:
    """States and transitions, published beside measured."""
    lines = []
    for name, title in SIZES.items():
        published = PUBLISHED_SIZES.get(name)
        cells = [" / ".join(map(str, published)) if published else "-"]
        measured = found[name]
        cells.append(f"{measured['states']} / {measured['transitions']}")
        lines.append([title, *cells, str(measured["accepting"])])
    notes = [
        "states / transitions, with the merge table of Mistral-7B-v0.1 alone (no prefix, no byte "
        "fallback)",
        "the article's 5 states are those of DirectMerge on interegular's automaton, which is not "
        "minimal: two of them accept. From the minimal automaton one state less is left",
    ]
    columns = ["boolean: ((true)|(false))", "published", "measured", "accepting states"]
    return Table("Size of the automata", columns, lines, notes)


_ESCAPES = {
    "\\": r"\textbackslash{}",
    **{c: f"\\{c}" for c in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "‘": "`",
    "’": "'",
    "|": r"\textbar{}",
}


def latex(table: Table) -> str:
    """The same as a LaTeX table, for the package booktabs; notes are comments."""
    layout = "l" + "r" * (len(table.columns) - 1)
    lines = [" & ".join(map(_escaped, cells)) + r" \\" for cells in (table.columns, *table.rows)]
    return "\n".join(
        [
            *(f"% {note}" for note in table.notes),
            r"\begin{table}",
            rf"\caption{{{_escaped(table.title.removeprefix('Table 1: '))}}}",
            rf"\begin{{tabular}}{{{layout}}}",
            r"\toprule",
            lines[0],
            r"\midrule",
            *lines[1:],
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _escaped(text: str) -> str:
    return "".join(_ESCAPES.get(c, c) for c in text.replace("\n", " "))
