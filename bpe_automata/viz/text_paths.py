"""Text as outlines, so that it keeps its size relative to a drawing in axes of any size."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from bpe_automata.optional import require


def text_path(text: str, size: float) -> tuple[Any, float]:
    """A matplotlib Path that begins at (0, 0) on the base line, and its width.

    Characters that the font lacks are written as escapes, so that nothing is drawn as a box.
    """
    font, known = _font()
    shown = "".join(c if ord(c) in known else ascii(c)[1:-1] for c in text)
    if not shown.strip():
        return require("matplotlib.path").Path([(0, 0)]), 0.0
    escaped = shown.replace("$", r"\$")  # or two of them would begin a formula
    path = require("matplotlib.textpath").TextPath((0, 0), escaped, size=size, prop=font)
    return path, float(extent(path)[1, 0])


def extent(path: Any) -> np.ndarray:
    """float64 [2, 2]: the lower left and the upper right corner of a path's points.

    matplotlib's own `get_extents` finds the extremes of each curve, which takes far longer; in the
    outlines of a font they are points of the path.
    """
    points = path.vertices
    if path.codes is not None:  # what stands beside CLOSEPOLY is no point
        points = points[path.codes != path.CLOSEPOLY]
    return np.array([points.min(axis=0), points.max(axis=0)])


@cache
def _font() -> tuple[Any, frozenset[int]]:
    """The font that comes with matplotlib, and its characters."""
    manager = require("matplotlib.font_manager")
    font = manager.FontProperties(family="DejaVu Sans")
    file = require("matplotlib.ft2font").FT2Font(manager.findfont(font))
    return font, frozenset(file.get_charmap())
