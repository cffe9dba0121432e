"""Tables of rows into cases."""

from __future__ import annotations

from collections.abc import Iterable

from experiments.study.study_case import StudyCase

Row = tuple[str, str, str, str]
"""Name, prompt, answers and right answers, both divided by "|" (no right answers: "")."""


def table(
    family: str, boundary: str, rows: Iterable[Row], style: str = "plain", end: str = ""
) -> tuple[StudyCase, ...]:
    """One case per row. Where the boundary is "space", each answer gets the space before it;
    `end` is added to each answer."""
    return tuple(one(family, boundary, row, style, end) for row in rows)


def one(family: str, boundary: str, row: Row, style: str = "plain", end: str = "") -> StudyCase:
    """The case of one row; it is its own base."""
    name, prompt, answers, truth = row
    full = f"{family}_{name}"
    before = " " if boundary == "space" else ""
    written, right = (spelled(words, before, end) for words in (answers, truth))
    return StudyCase(full, family, full, style, boundary, prompt, written, truth=right)


def spelled(words: str, before: str, end: str) -> tuple[str, ...]:
    """The answers of a cell of a table, each between `before` and `end`."""
    return tuple(before + word + end for word in words.split("|")) if words else ()
