"""Draws into matplotlib axes: drawings, without Graphviz, and the area covered by rectangles."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from bpe_automata._optional import require
from bpe_automata.viz._drawing import (
    INK,
    LIT,
    LIT_FILL,
    LIT_WIDTH,
    BrokenDrawingError,
    Drawing,
    Edge,
    Node,
    printable,
    wrapped,
)
from bpe_automata.viz._layout import LINE, Layout, lay_out, points, route

# Text is drawn as outlines, so that it is scaled with the rest of a drawing.


def text_path(text: str, size: float) -> tuple[Any, float]:
    """A matplotlib Path of the text that begins at (0, 0) on the base line, and its width.

    Characters that the font lacks are written as escapes instead of boxes.
    """
    font, known = _font()
    shown = "".join(c if ord(c) in known else ascii(c)[1:-1] for c in text)
    if not shown.strip():
        return require("matplotlib.path").Path([(0, 0)]), 0.0
    escaped = shown.replace("$", r"\$")  # two of them would enclose a formula
    path = require("matplotlib.textpath").TextPath((0, 0), escaped, size=size, prop=font)
    return path, float(extent(path)[1, 0])


def extent(path: Any) -> np.ndarray:
    """float64 [2, 2]: the lower left and the upper right corner of a path's points.

    matplotlib's `get_extents` computes the extremes of each curve, which takes far longer; in the
    outlines of a font, these are points of the path.
    """
    points = path.vertices
    if path.codes is not None:  # the vertex of CLOSEPOLY is no point
        points = points[path.codes != path.CLOSEPOLY]
    return np.array([points.min(axis=0), points.max(axis=0)])


@cache
def _font() -> tuple[Any, frozenset[int]]:
    """The font that comes with matplotlib, and its characters."""
    manager = require("matplotlib.font_manager")
    font = manager.FontProperties(family="DejaVu Sans")
    file = require("matplotlib.ft2font").FT2Font(manager.findfont(font))
    return font, frozenset(file.get_charmap())


# Shapes, with points as data units.

HEAD = 7.0  # length of an arrow's head
_LIT_LINE = 1.9  # of a node's outline, so that the two lines of an accepting one stay apart
_CORNER, _MIDDLE = 6.0, 0.36  # radius of a box's corners; height of the middle of text of size 1


class Pen:
    """Draws into axes, whose `dataLim` grows to contain each shape."""

    def __init__(self, axes: Any) -> None:
        self.axes = axes
        self.patches = require("matplotlib.patches")
        self.path = require("matplotlib.path").Path

    def arrow(self, line: np.ndarray, lit: bool) -> None:
        """An arrow along the points of a line, float64 [k, 2]."""
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
        """Lines of text around a centre, each on white, as edges may run under it."""
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
        """room: points around the patch, which `add_patch` would compute slowly."""
        patch.set(**style)
        self.axes.add_artist(patch)
        self.axes.update_datalim(room)


_MARGIN, _RING = 6.0, 3.4  # points: around everything, and between an accepting node's two lines
_ENTRY = 24.0  # length of the arrow into a start
_TEXT, _NOTE = 10.0, 8.5  # sizes of text
_LARGEST = 1.3  # factor by which text grows at most to fill large axes


def figure(drawing: Drawing) -> Any:
    """A matplotlib Figure of the drawing, with text of 10 points. Raises MissingDependencyError."""
    made = require("matplotlib.figure").Figure()
    axes = made.add_axes((0, 0, 1, 1))
    plot(drawing, axes)
    width, height = _fit(axes, 0, 0)
    made.set_size_inches(width / 72, height / 72)
    return made


def plot(drawing: Drawing, axes: Any) -> None:
    """Draw into matplotlib axes, scaled to fill them, text included; in axes of the size that
    `figure` chooses, text has 10 points. Raises MissingDependencyError."""
    pen, layout = Pen(axes), lay_out(drawing)
    routes = route(drawing, layout)
    for i, edge in enumerate(drawing.edges):
        _edge(pen, edge, points(routes.curves[i]), layout)
        pen.words(wrapped(printable(edge.label)), routes.labels[i], _TEXT, edge.lit)
    for i, node in enumerate(drawing.nodes):
        _node(pen, node, layout.centre[i], layout.size[i], layout.round)
    if drawing.caption and drawing.nodes:
        box, (path, _) = axes.dataLim, text_path(printable(drawing.caption), _TEXT)
        pen.text(path, np.array([box.x0, box.y1 + LINE]), lit=False)
    axes.axis("off")
    room = axes.get_window_extent()
    scale = axes.figure.dpi / 72 * _LARGEST
    _fit(axes, room.width / scale, room.height / scale)


def _fit(axes: Any, least_width: float, least_height: float) -> tuple[float, float]:
    """Set the limits of the axes around everything drawn; returns (width, height)."""
    box = axes.dataLim if np.isfinite(axes.dataLim.get_points()).all() else axes.viewLim
    width = max(box.width + 2 * _MARGIN, least_width)
    height = max(box.height + 2 * _MARGIN, least_height)
    x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    axes.set(xlim=(x - width / 2, x + width / 2), ylim=(y - height / 2, y + height / 2))
    axes.set_aspect("equal")
    return width, height


def _node(pen: Pen, node: Node, centre: np.ndarray, size: np.ndarray, round_: bool) -> None:
    if node.start:
        end = centre - (size[0] / 2, 0)
        pen.arrow(np.linspace(end - (_ENTRY, 0), end, 30), node.lit)
    for ring in (0.0, 2 * _RING) if node.accepting else (0.0,):
        pen.shape(centre, size - ring, node.lit, round_)
    lift = np.array([0.0, LINE / 2 if node.note else 0.0])
    pen.words([printable(node.label)], centre + lift, _TEXT, lit=False)
    if node.note:
        pen.words([printable(node.note)], centre - lift, _NOTE, lit=False)


def _edge(pen: Pen, edge: Edge, line: np.ndarray, layout: Layout) -> None:
    """Draw the part of a curve between its two nodes, with an arrow head."""
    if edge.source != edge.target:
        line = _fine(line)
        for node in (edge.source, edge.target):
            away = np.abs(line - layout.centre[node]) / (layout.size[node] / 2)
            inside = np.hypot(*away.T) < 1 if layout.round else away.max(axis=1) < 1
            line = line[~inside]
    if len(line) > 1:
        pen.arrow(line, edge.lit)


def _fine(line: np.ndarray) -> np.ndarray:
    """The same line with at least one point for each unit of its length, so that arrows end close
    to the nodes."""
    length = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(line, axis=0).T))])
    at = np.linspace(0, length[-1], int(length[-1]) + 2)
    return np.stack([np.interp(at, length, line[:, k]) for k in (0, 1)], axis=1)


# The (row, column) pairs that a union of rectangles covers, as an image of densities.

_CHUNK = 1_000_000  # rows of rectangles at once: the memory stays below about 200 MB


def rectangles(
    axes: Any,
    rows_low: np.ndarray,
    rows_high: np.ndarray,
    columns_low: np.ndarray,
    columns_high: np.ndarray,
    shape: tuple[int, int],
    *,
    pixels: int = 800,
) -> Any:
    """Show a union of rectangles among shape[0] rows (downwards) and shape[1] columns.

    Rectangle i covers rows_low[i] <= row < rows_high[i] and columns_low[i] <= column <
    columns_high[i]. Returns matplotlib's image of the densities, from 0 (white) to 1, for instance
    for a colour bar; colours are on a square root scale, so that thin rectangles are visible.
    Raises BrokenDrawingError, MissingDependencyError.
    """
    colors = require("matplotlib.colors")
    covered = density(rows_low, rows_high, columns_low, columns_high, shape, (pixels, pixels))
    return axes.imshow(
        np.ma.masked_equal(covered, 0),  # white only for a density of exactly 0
        cmap="magma_r",
        norm=colors.PowerNorm(0.5, vmin=0, vmax=1),
        extent=(0, shape[1], shape[0], 0),
        aspect="auto",
        interpolation="nearest",
    )


def density(
    rows_low: np.ndarray,
    rows_high: np.ndarray,
    columns_low: np.ndarray,
    columns_high: np.ndarray,
    shape: tuple[int, int],
    grid: tuple[int, int],
) -> np.ndarray:
    """float64 [g, h]: the exact share of the pairs of each cell that lie in some rectangle.

    (g, h) is `grid`, limited by the numbers of rows and columns. The cells are as equal as whole
    rows and columns allow.
    """
    sides = [np.asarray(a, np.int64) for a in (rows_low, rows_high, columns_low, columns_high)]
    _check(sides, shape)
    top, bottom, left, right = sides
    solid = (top < bottom) & (left < right)
    top, bottom, left, right = (side[solid] for side in sides)
    rows, columns = (cell_edges(n, g) for n, g in zip(shape, grid, strict=True))
    counts = np.zeros((len(rows) - 1, len(columns) - 1))
    for low, high in _chunks(top, bottom, shape[0]):
        met = (top < high) & (bottom > low)
        clipped = np.maximum(top[met], low), np.minimum(bottom[met], high)
        row, start, end = union_by_row(*clipped, left[met], right[met], shape[1])
        cell = np.searchsorted(rows, row, "right") - 1
        counts += _to_the_right(cell, start, columns, counts.shape)
        counts -= _to_the_right(cell, end, columns, counts.shape)
    return counts / np.outer(np.diff(rows), np.diff(columns))


def cell_edges(length: int, cells: int) -> np.ndarray:
    """int64 [k + 1]: the edges that divide 0 to `length` into k <= cells nonempty cells."""
    cells = max(1, min(cells, length))
    return np.arange(cells + 1) * length // cells


def union_by_row(
    top: np.ndarray, bottom: np.ndarray, left: np.ndarray, right: np.ndarray, width: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """int64 [k] each: (rows, starts, ends) of disjoint intervals that cover the same pairs."""
    high = bottom - top
    row = np.repeat(top - np.cumsum(high) + high, high) + np.arange(high.sum())
    base = row * (width + 1)  # puts the intervals of all rows on one line, row after row
    start = base + np.repeat(left, high)
    order = np.argsort(start, kind="stable")
    row, base, start = row[order], base[order], start[order]
    reached = np.maximum.accumulate(base + np.repeat(right, high)[order])
    before = np.concatenate([[0], reached[:-1]])
    start = np.maximum(start, before)
    new = start < reached
    return row[new], (start - base)[new], (reached - base)[new]


def _to_the_right(
    cell: np.ndarray, column: np.ndarray, edges: np.ndarray, shape: tuple[int, int]
) -> np.ndarray:
    """float64 [g, h]: the number of pairs of each cell at or to the right of the given columns."""
    at = np.searchsorted(edges, column, "right") - 1  # h for the end of the last cell
    wide = (shape[0], shape[1] + 1)
    flat, size = cell * wide[1] + at, wide[0] * wide[1]
    part = np.append(edges, edges[-1])[at + 1] - column
    own = np.bincount(flat, part, size).reshape(wide)[:, :-1]
    begun = np.bincount(flat, minlength=size).reshape(wide)[:, :-1]
    return own + (np.cumsum(begun, axis=1) - begun) * np.diff(edges)


def _chunks(top: np.ndarray, bottom: np.ndarray, n_rows: int) -> list[tuple[int, int]]:
    """(first, end) of bands of rows, each with about _CHUNK rows of rectangles or a single row."""
    change = np.bincount(top, minlength=n_rows + 1) - np.bincount(bottom, minlength=n_rows + 1)
    band = np.cumsum(np.cumsum(change)[:n_rows]) // _CHUNK
    edges = [0, *(np.flatnonzero(np.diff(band)) + 1).tolist(), n_rows]
    return list(pairwise(edges))


def _check(sides: list[np.ndarray], shape: tuple[int, int]) -> None:
    if len({side.shape for side in sides}) != 1 or sides[0].ndim != 1:
        raise BrokenDrawingError(f"sides of rectangles of shapes {[s.shape for s in sides]}")
    top, bottom, left, right = sides
    for low, high, limit, what in (
        (top, bottom, shape[0], "rows"),
        (left, right, shape[1], "columns"),
    ):
        bad = np.flatnonzero((low < 0) | (low > high) | (high > limit))
        if len(bad):
            i = int(bad[0])
            raise BrokenDrawingError(
                f"rectangle {i} has the {what} {low[i]} to {high[i]}, of 0 to {limit}"
            )
