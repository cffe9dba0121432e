"""A table of text cells, printed with rich or written as Markdown or LaTeX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from experiments.run.optional import require


@dataclass(frozen=True)
class Table:
    """`columns`: headings, which may break lines; `rows`: as many cells each.

    The first column is text, the others are numbers but where there are words. `notes`: lines below
    the table.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def print(self) -> None:
        """To the terminal; as wide as the table is where the output is not a terminal."""
        console_of = require("rich.console").Console
        table = require("rich.table").Table(title=self.title, title_justify="left")
        for column, is_text in zip(self.columns, texts(self.columns, self.rows), strict=True):
            table.add_column(column, justify="left" if is_text else "right", no_wrap=True)
        for row in self.rows:
            table.add_row(*row)
        console = console_of(markup=False, highlight=False)
        if not console.is_terminal:
            console = console_of(markup=False, highlight=False, width=200)
        console.print(table)
        for note in self.notes:
            console.print(note)
        console.print()

    def markdown(self) -> str:
        """The same, as a Markdown section."""
        notes = [f"- {note}" for note in self.notes]
        table = markdown(self.columns, self.rows)
        return "\n".join([f"## {self.title}", "", table, "", *notes, ""])

    def latex(self) -> str:
        """The same for the package booktabs; notes are comments."""
        layout = "".join("l" if is_text else "r" for is_text in texts(self.columns, self.rows))
        lines = [" & ".join(map(_escaped, cells)) + r" \\" for cells in (self.columns, *self.rows)]
        return "\n".join(
            [
                *(f"% {note}" for note in self.notes),
                r"\begin{table}",
                rf"\caption{{{_escaped(self.title)}}}",
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


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The lines of a table alone."""
    ruler = [":--" if is_text else "--:" for is_text in texts(columns, rows)]
    return "\n".join(_line(cells) for cells in (columns, ruler, *rows))


def texts(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[bool]:
    """Which columns are to the left: the first, and those with a word or with code in some cell."""
    return [k == 0 or any(_WORD.search(row[k]) for row in rows) for k in range(len(columns))]


_WORD = re.compile(r"[^\W\d_]{4}|`")
"""Units, powers of ten and short verdicts have fewer letters."""


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


_ESCAPES = {
    "\\": r"\textbackslash{}",
    **{c: f"\\{c}" for c in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "‘": "`",
    "’": "'",
    "|": r"\textbar{}",
}


def _escaped(text: str) -> str:
    return "".join(_ESCAPES.get(c, c) for c in text.replace("\n", " "))
