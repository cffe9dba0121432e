"""What the article's figures are drawn on: axes, and texts that fit beside them."""

from __future__ import annotations

import textwrap
from typing import Any

from experiments.run.files import require

_WIDTH = 0.103
"""Inches of a character of a headline, on average."""


def subplots(rows: int, columns: int, **shape: Any) -> tuple[Any, Any]:
    """(figure, array of axes [rows, columns]) of matplotlib, without a screen, without a frame at
    the top and on the right."""
    require("matplotlib").use("Agg")
    pyplot = require("matplotlib.pyplot")
    with pyplot.rc_context({"axes.spines.top": False, "axes.spines.right": False}):
        made: tuple[Any, Any] = pyplot.subplots(
            rows, columns, layout="constrained", squeeze=False, **shape
        )
    return made


def in_lines(text: str, inches: float) -> str:
    """In lines that are as wide as a figure of so many inches, at most."""
    width = int((inches - 0.2) / _WIDTH)
    return "\n".join(textwrap.fill(line, width) for line in text.split("\n"))
