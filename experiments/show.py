"""The forms in which rows are published: tables in Markdown, figures as PNG, and numbers in prose.

A table is a data frame with a format for each column that is not text:

    Table("Masks", frame, {"masks": whole, "cold, µs": three}, ["cold: for the first time"])
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib import pyplot

matplotlib.use("Agg")  # figures are files

# The numbers of a cell.

Format = Callable[[Any], str]


def whole(value: float) -> str:
    """A whole number: 12,345."""
    return f"{value:,.0f}"


def fixed(digits: int, unit: str = "") -> Format:
    """A number with so many digits behind the point."""
    return lambda value: f"{value:,.{digits}f}{unit}"


def three(value: float) -> str:
    """Three significant digits, and from 100 on a whole number: 0.123, 1.23, 123, 12,345."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def small(value: float) -> str:
    """Four digits behind the point, or an exponent where they would say nothing."""
    if value == 0:
        return "0"
    return f"{value:.4f}" if abs(value) >= 5e-4 else f"{value:.0e}"


def percent(digits: int = 0) -> Format:
    """A share of 1 in per cent."""
    return lambda value: f"{100 * value:.{digits}f} %"


def duration(seconds: float) -> str:
    """Seconds with the unit that suits them: 1.2 µs, 3.4 ms, 5.6 s, 7.8 min."""
    for factor, unit, most in ((1e6, "µs", 1e-3), (1e3, "ms", 1.0), (1.0, "s", 100.0)):
        if abs(seconds) < most:
            return f"{three(seconds * factor)} {unit}"
    return f"{three(seconds / 60)} min"


def several(format_: Format = three) -> Format:
    """Values one after the other."""
    return lambda values: " / ".join("-" if is_missing(v) else format_(v) for v in values)


def interval(format_: Format = three) -> Format:
    """(value, low, high): 0.12 [0.08, 0.17]; of (low, high) the brackets alone."""

    def formatted(found: Sequence[float]) -> str:
        *value, low, high = map(format_, found)
        return " ".join([*value, f"[{low}, {high}]"])

    return formatted


def plain(value: Any) -> str:
    """The text of a value without a format: `whole` for integers, `three` for other numbers."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return whole(int(value))
    return three(value) if isinstance(value, float) else str(value)


def is_missing(value: Any) -> bool:
    """Is it None, or not a number?"""
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))


# Tables and pages.


@dataclass(frozen=True)
class Table:
    """data: a line for each row, its columns in order; formats: of columns; notes: below it, blank
    lines between them."""

    title: str
    data: pd.DataFrame
    formats: Mapping[str, Format] = field(default_factory=dict)
    notes: str = ""

    def lines(self, *columns: str) -> str:
        """The table in Markdown, without its title: these columns, or all."""
        return markdown(self.data[list(columns or self.data)], self.formats)

    def markdown(self) -> str:
        """The section of the table: its title, its lines, its notes."""
        blocks = [f"## {self.title}", self.lines()]
        blocks += ["\n".join(f"- {note}" for note in paragraphs(self.notes))] * bool(self.notes)
        return "\n\n".join(blocks) + "\n"


def paragraphs(text: str) -> list[str]:
    """The paragraphs between blank lines, each as one line."""
    return [
        " ".join(block.split()) for block in re.split(r"\n\s*\n", text.strip()) if block.strip()
    ]


def markdown(data: pd.DataFrame, formats: Mapping[str, Format] | None = None) -> str:
    """The lines of a table alone; missing values are dashes. The first column, and those with
    words, are aligned to the left."""
    columns = list[list[str]]()
    for name in data:
        format_ = (formats or {}).get(str(name), plain)
        values = ["-" if is_missing(value) else format_(value) for value in data[name]]
        is_left = not columns or any(re.search(r"[^\W\d_]{4}|`", cell) for cell in values)
        cells = [str(name), ":--" if is_left else "--:", *values]
        columns.append([cell.replace("|", "\\|").replace("\n", " ") for cell in cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in zip(*columns, strict=True))


@dataclass(frozen=True)
class Figure:
    """canvas: a figure of matplotlib; headline: its one message; note: the line below it, with n
    and the meaning of the marks; name: of the file, by default the artefact's."""

    canvas: Any
    headline: str
    note: str
    name: str = ""

    def write(self, path: Path) -> None:
        """Write the figure as PNG, and close it."""
        width = self.canvas.get_figwidth()
        note = "\n".join(fill(line, int(16 * width)) for line in self.note.splitlines())
        letters = int((width - 0.2) / 0.103)  # of a headline, 0.103 inches wide on average
        headline = "\n".join(fill(line, letters) for line in self.headline.splitlines())
        self.canvas.suptitle(headline, x=0.01, ha="left", fontsize=13, fontweight="bold")
        self.canvas.supxlabel(note, x=0.01, ha="left", fontsize=8, color="#555555")
        path.parent.mkdir(parents=True, exist_ok=True)
        self.canvas.savefig(path, dpi=160)
        pyplot.close(self.canvas)


FREE, LIFT, CANONICAL, PALE = "#333333", "#d1495b", "#00798c", "#bbbbbb"
"""The colours of the model itself, any tokenization, the tokenizer's own, and the rest."""
COLORS = {"free": FREE, "lift": LIFT, "canonical": CANONICAL}
MODELS = ("#6a4c93", "#e09f3e")
"""The colours of two models."""


def panels(lines: int, columns: int, size: tuple[float, float], **more: Any) -> tuple[Any, Any]:
    """(a figure, its axes [lines, columns]), without a frame above and to the right."""
    more = {"figsize": size, "layout": "constrained", "squeeze": False} | more
    plain = {"axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True}
    with pyplot.rc_context(plain):
        found: tuple[Any, Any] = pyplot.subplots(lines, columns, **more)
    return found


# Numbers in prose: text between `<!-- numbers: MARKER -->` and `<!-- /numbers: MARKER -->` comes
# from the rows of an artefact.


def wrapped(text: str) -> str:
    """Markdown in lines of 100 characters: paragraphs and tables, with blank lines between them."""
    options: Any = {"break_on_hyphens": False, "break_long_words": False}
    blocks = [block.strip() for block in re.split(r"\n\s*\n", text.strip())]
    return "\n\n".join(
        block if block.startswith("|") else fill(" ".join(block.split()), 100, **options)
        for block in blocks
    )


def with_numbers(text: str, marker: str, said: str) -> str:
    """The page with `said` between the markers; the rest is unchanged."""
    name = re.escape(marker)
    marks = rf"(<!-- numbers: {name} -->\n).*?(<!-- /numbers: {name} -->)"
    return re.sub(marks, lambda m: f"{m[1]}{said.strip()}\n{m[2]}", text, flags=re.DOTALL)


def seen_from(folder: Path, root: Path, text: str) -> str:
    """The text with its links, which are relative to the README, relative to a page's folder."""
    if folder == root:
        return text
    return re.sub(r"(?<=\]\()(?!\w+:)", "../", text).replace(f"](../{folder.name}/", "](")
