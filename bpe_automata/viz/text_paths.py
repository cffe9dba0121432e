"""Text as outlines, so that it keeps its size relative to a drawing in axes of any size."""

from __future__ import annotations

from functools import cache
from typing import Any

from bpe_automata.viz.optional import require


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
    return path, float(path.get_extents().x1)


@cache
def _font() -> tuple[Any, frozenset[int]]:
    """The font that comes with matplotlib, and its characters."""
    manager = require("matplotlib.font_manager")
    font = manager.FontProperties(family="DejaVu Sans")
    file = require("matplotlib.ft2font").FT2Font(manager.findfont(font))
    return font, frozenset(file.get_charmap())
