"""Shapes in matplotlib axes, in data units (points), text included."""

from __future__ import annotations

from typing import Any

import numpy as np

from bpe_automata.optional import require
from bpe_automata.viz.layout import LINE
from bpe_automata.viz.style import INK, LIT, LIT_FILL, LIT_WIDTH
from bpe_automata.viz.text_paths import extent, text_path

HEAD = 7.0  # length of an arrow's head
_LIT_LINE = 1.9  # of a node's outline, so that the two lines of an accepting one stay apart
_CORNER, _MIDDLE = 6.0, 0.36  # radius of a box's corners; height of the middle of text of size 1


class Pen:
    """Draws into axes; their `dataLim` keeps account of the room that was used."""

    def __init__(self, axes: Any) -> None:
        self.axes = axes
        self.patches = require("matplotlib.patches")
        self.path = require("matplotlib.path").Path

    def arrow(self, line: np.ndarray, lit: bool) -> None:
        """Along the points of a line, float64 [k, 2], to the last of them."""
        tip, colour = line[-1], LIT if lit else INK
        rest = line[np.hypot(*(line - tip).T) >= HEAD]
        if not len(rest):
            rest = line[:1]
        along = (tip - rest[-1]) / max(float(np.hypot(*(tip - rest[-1]))), 1e-9)
        base = tip - along * HEAD
        across = np.array([-along[1], along[0]]) * HEAD * (0.5 if lit else 0.38)
        width = LIT_WIDTH if lit else 1.0
        body = self.patches.PathPatch(self.path([*rest, base]), fill=False)
        self._add(body, line, edgecolor=colour, linewidth=width, zorder=1)
        corners = np.array([tip, base + across, base - across])
        self._add(self.patches.Polygon(corners), corners, color=colour, linewidth=0, zorder=1)

    def shape(self, centre: np.ndarray, size: np.ndarray, lit: bool, round_: bool) -> None:
        """The outline of a node: an ellipse, or a box with round corners."""
        if round_:
            patch = self.patches.Ellipse(centre, *size)
        else:
            style = f"round,pad=0,rounding_size={_CORNER}"
            patch = self.patches.FancyBboxPatch(centre - size / 2, *size, boxstyle=style)
        colour, fill, width = (LIT, LIT_FILL, _LIT_LINE) if lit else (INK, "white", 1.0)
        box = np.array([centre - size / 2, centre + size / 2])
        self._add(patch, box, facecolor=fill, edgecolor=colour, linewidth=width, zorder=3)

    def words(self, lines: list[str], centre: np.ndarray, size: float, lit: bool) -> None:
        """Lines of text around a centre, each on white: edges may run under it."""
        for i, line in enumerate(lines):
            path, width = text_path(line, size)
            middle = centre + np.array([0.0, LINE * ((len(lines) - 1) / 2 - i)])
            if width:
                box = np.array([width + 3, LINE])
                corner = middle - box / 2
                ground = self.patches.Rectangle(corner, *box)
                self._add(
                    ground,
                    np.array([corner, corner + box]),
                    facecolor="white",
                    linewidth=0,
                    zorder=2,
                )
                self.text(path, middle - (width / 2, _MIDDLE * size), lit)

    def text(self, path: Any, at: np.ndarray, lit: bool) -> None:
        """An outline of text; `at` is the left end of its base line."""
        moved = self.path(path.vertices + at, path.codes)
        self._add(
            self.patches.PathPatch(moved),
            extent(moved),
            color=LIT if lit else INK,
            linewidth=0,
            zorder=4,
        )

    def _add(self, patch: Any, room: np.ndarray, **style: Any) -> None:
        """room: points around the patch. `add_patch` would find them by itself, but slowly."""
        patch.set(**style)
        self.axes.add_artist(patch)
        self.axes.update_datalim(room)
