"""A cell: one measurement that stands for itself, and becomes one row."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
FAILURE = "failure"
"""The key of a row that says why there is no measurement."""


@dataclass(frozen=True)
class Cell:
    """key: unique in its run; function: of a module, so that other processes find it; arguments:
    what it is called with, which can be pickled. It gives a row that JSON can hold."""

    key: str
    function: Callable[..., Row]
    arguments: tuple[Any, ...] = ()


def measured(cell: Cell) -> Row:
    """The row of a cell, with its wall time; whatever the function raises is a failure."""
    started = time.perf_counter()
    try:
        row = cell.function(*cell.arguments)
    except Exception as error:  # one cell that fails must not end the others
        row = {FAILURE: f"{type(error).__name__}: {error}"[:500]}
    return {"key": cell.key, "wall_seconds": round(time.perf_counter() - started, 4)} | row


def lost(cell: Cell, why: str) -> Row:
    """The row of a cell whose process is gone."""
    return {"key": cell.key, FAILURE: why}
