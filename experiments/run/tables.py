"""Tables: rows in a data frame, summed up by declared columns, as text and as Markdown.

A table is a list of `Column`s over groups of rows: each says what it is called, what it is of a
group, and how that is shown.

    table("Masks", rows.groupby("engine"), [
        Column("engine", "engine"),
        Column("masks", count, whole),
        Column("cold, µs", quantiles("us", 0.5, 0.99), several(three)),
    ])
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pandas as pd

from experiments import statistics
from experiments.run.executors import FAILURE, Row
from experiments.run.files import require
from experiments.show import is_missing, three

Group: TypeAlias = pd.DataFrame
"""Rows that make one line of a table."""


def frame(rows: Sequence[Row]) -> pd.DataFrame:
    """Rows as a data frame, failures left out. What a row lacks is None, so that whole numbers stay
    whole; nested values stay what they are."""
    good = [row for row in rows if not row.get(FAILURE)]
    names = dict.fromkeys(name for row in good for name in row)
    return pd.DataFrame({name: _series([row.get(name) for row in good]) for name in names})


def _series(values: list[Any]) -> pd.Series[Any]:
    kinds = {type(value) for value in values}
    return pd.Series(values, dtype=None if kinds <= {int, float} or kinds == {bool} else object)


def records(group: Group) -> list[Row]:
    """The rows of a group as dictionaries."""
    found: list[Row] = group.to_dict("records")
    return found


@dataclass(frozen=True)
class Column:
    """name: the heading; of: what the cell holds, a function of the group, or the name of a field
    that is the same in all of its rows; format: how that is shown (None and nan are shown as
    `missing`)."""

    name: str
    of: str | Callable[[Group], Any]
    format: Callable[[Any], str] = str
    missing: str = "-"

    def cell(self, group: Group) -> str:
        """What stands in the line of a group."""
        of = self.of
        value = group[of].iloc[0] if isinstance(of, str) else of(group)
        return self.missing if is_missing(value) else self.format(value)


def table(
    title: str,
    groups: pd.DataFrame | Iterable[tuple[Any, Group]],
    columns: Sequence[Column],
    notes: Sequence[str] = (),
) -> Table:
    """A line for each group, which may come from `groupby(..., sort=False)`; of a data frame, one
    for each of its rows."""
    each = _lines(groups) if isinstance(groups, pd.DataFrame) else groups
    lines = [[column.cell(group) for column in columns] for _, group in each]
    return Table(title, [column.name for column in columns], lines, notes)


def _lines(rows: pd.DataFrame) -> Iterable[tuple[int, Group]]:
    return ((k, rows.iloc[k : k + 1]) for k in range(len(rows)))


# What a column is of a group.


def count(group: Group) -> int:
    """How many rows."""
    return len(group)


def values(group: Group, field: str) -> list[Any]:
    """Those of a field that are there; of rows that hold lists, the items of all."""
    found: list[Any] = []
    for value in group.get(field, ()):
        found += value if isinstance(value, list) else [] if is_missing(value) else [value]
    return found


def total(field: str) -> Callable[[Group], Any]:
    """The sum; 0 of nothing."""
    return lambda group: sum(values(group, field))


def part(field: str, whole_: str) -> Callable[[Group], str]:
    """The sums of two fields: 3 of 4."""
    return lambda group: f"{total(field)(group)} of {total(whole_)(group)}"


def share(field: str) -> Callable[[Group], float | None]:
    """Of those that are there, how many are true (0 to 1); None of nothing."""

    def of(group: Group) -> float | None:
        found = values(group, field)
        return sum(map(bool, found)) / len(found) if found else None

    return of


def highest(field: str) -> Callable[[Group], Any]:
    """The maximum; None of nothing."""
    return lambda group: max(values(group, field), default=None)


def median(field: str) -> Callable[[Group], float]:
    """The median; nan of nothing."""
    return lambda group: statistics.median(values(group, field))


def quantiles(field: str, *shares: float) -> Callable[[Group], list[float] | None]:
    """The smallest values that at least these shares do not exceed; None of nothing."""

    def of(group: Group) -> list[float] | None:
        found = values(group, field)
        return [statistics.quantile(found, q) for q in shares] if found else None

    return of


# How it is shown.


def times(digits: int = 1) -> Callable[[float], str]:
    """A ratio: 1.4 x."""
    return lambda value: f"{value:.{digits}f} x"


def several(
    format_: Callable[[Any], str] = three, between: str = " / ", missing: str = "-"
) -> Callable[[Iterable[Any]], str]:
    """Values one after the other."""
    return lambda found: between.join(missing if is_missing(v) else format_(v) for v in found)


def interval(format_: Callable[[float], str] = three) -> Callable[[Sequence[float]], str]:
    """(value, low, high): 0.12 [0.08, 0.17]; of (low, high) the brackets alone."""

    def shown(found: Sequence[float]) -> str:
        *value, low, high = map(format_, found)
        return " ".join([*value, f"[{low}, {high}]"])

    return shown


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
