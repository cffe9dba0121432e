"""Draws into matplotlib axes: drawings, without Graphviz, and the area covered by rectangles."""

from __future__ import annotations

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
    wrapped,
)
from bpe_automata.viz._layout import FONT, LINE, Layout, Routes, glyphs, lay_out, loop, route, width

_MARGIN, _RING = 6.0, 3.4  # points: around everything, and between an accepting node's two lines
_ENTRY = 24.0  # length of the arrow into a start
_TEXT, _NOTE = 10.0, 8.5  # sizes of text


def figure(drawing: Drawing) -> Any:
    """A matplotlib Figure of the size of the drawing. Raises MissingDependencyError."""
    made = require("matplotlib.figure").Figure((0.01, 0.01))
    axes = made.add_axes((0, 0, 1, 1))
    plot(drawing, axes)
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    made.set_size_inches((right - left) / 72, (high - low) / 72)
    return made


def plot(drawing: Drawing, axes: Any) -> None:
    """Draw into the middle of matplotlib axes, with text of 10 points. The axes must be at least as
    large as the figure that `figure` makes. Raises MissingDependencyError."""
    layout = lay_out(drawing)
    routes = route(drawing, layout)
    shapes = [_node(axes, drawing.nodes[i], layout, i) for i in range(len(drawing.nodes))]
    for i, edge in enumerate(drawing.edges):
        _edge(axes, edge, layout, routes, i, shapes)
    low, high = _room(drawing, layout, routes)
    if drawing.caption and drawing.nodes:
        high[1] += LINE
        caption = glyphs(drawing.caption)
        _write(axes, (low[0], high[1]), caption, ha="left")
        high[0] = max(high[0], low[0] + width(caption))
    window = axes.get_window_extent()
    least = np.array([window.width, window.height]) * 72 / axes.figure.dpi
    half = np.maximum(high - low + 2 * _MARGIN, least) / 2
    (left, below), (right, above) = (low + high) / 2 - half, (low + high) / 2 + half
    axes.set(xlim=(left, right), ylim=(below, above), aspect="equal")
    axes.axis("off")


def _room(drawing: Drawing, layout: Layout, routes: Routes) -> tuple[np.ndarray, np.ndarray]:
    """The lower left and the upper right corner of all but the caption."""
    if not drawing.nodes:
        return np.zeros(2), np.ones(2)
    boxes = [(layout.centre, layout.size), (routes.labels, layout.label_size)]
    entries = [layout.centre[i] for i, node in enumerate(drawing.nodes) if node.start]
    points = [*(centre - size / 2 for centre, size in boxes), *routes.lines]
    points += [centre + size / 2 for centre, size in boxes]
    points += [entry[None] - (layout.size[:, 0].max() / 2 + _ENTRY, 0) for entry in entries]
    every = np.concatenate(points)
    return every.min(axis=0), every.max(axis=0)


def _node(axes: Any, node: Node, layout: Layout, i: int) -> Any:
    """Draw a node; returns its outline, at which arrows end."""
    patches = require("matplotlib.patches")
    centre, outlines = layout.centre[i], []
    colour, fill, width = (LIT, LIT_FILL, 1.9) if node.lit else (INK, "white", 1.0)
    for ring in (0.0, 2 * _RING) if node.accepting else (0.0,):
        size = layout.size[i] - ring
        if layout.round:
            outline = patches.Ellipse(centre, *size)
        else:
            style = "round,pad=0,rounding_size=6"
            outline = patches.FancyBboxPatch(centre - size / 2, *size, boxstyle=style)
        outline.set(facecolor=fill, edgecolor=colour, linewidth=width, zorder=3)
        outlines.append(axes.add_patch(outline))
    lift = np.array([0.0, LINE / 2 if node.note else 0.0])
    _write(axes, centre + lift, glyphs(node.label))
    _write(axes, centre - lift, glyphs(node.note), fontsize=_NOTE)
    if node.start:
        end = centre - (layout.size[i, 0] / 2, 0)
        _arrow(axes, node.lit, posA=end - (_ENTRY, 0), posB=end, shrinkA=0, shrinkB=0)
    return outlines[0]


def _edge(axes: Any, edge: Edge, layout: Layout, routes: Routes, i: int, shapes: list[Any]) -> None:
    """Draw an edge between the outlines of its nodes, and its label on white."""
    if edge.source == edge.target:
        path = require("matplotlib.path").Path
        points = loop(layout.centre[edge.source], layout.size[edge.source])
        _arrow(axes, edge.lit, path=path(points, [path.MOVETO, *[path.CURVE4] * 3]))
    else:
        start, end = layout.centre[[edge.source, edge.target]]
        ends = {"patchA": shapes[edge.source], "patchB": shapes[edge.target]}
        bent = f"arc3,rad={2 * routes.bends[i]}"
        ways = {"posA": start, "posB": end, "connectionstyle": bent, "shrinkA": 0, "shrinkB": 0}
        _arrow(axes, edge.lit, **ways, **ends)
    label = "\n".join(wrapped(glyphs(edge.label)))
    white = {"facecolor": "white", "edgecolor": "none", "pad": 1}
    _write(axes, routes.labels[i], label, color=LIT if edge.lit else INK, bbox=white, zorder=2)


def _arrow(axes: Any, lit: bool, **way: Any) -> None:
    style = {"color": LIT, "linewidth": LIT_WIDTH} if lit else {"color": INK, "linewidth": 1.0}
    head = {"arrowstyle": "-|>", "mutation_scale": 10, "zorder": 1}
    axes.add_patch(require("matplotlib.patches").FancyArrowPatch(**way, **head, **style))


def _write(axes: Any, at: Any, text: str, **style: Any) -> None:
    """Write text, by default centred at a position."""
    usual = {"ha": "center", "va": "center", "fontsize": _TEXT, "color": INK, "zorder": 4}
    axes.text(*at, text, parse_math=False, family=FONT, **{**usual, **style})


# The (row, column) pairs that a union of rectangles covers, as an image of densities.


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
    for band, (low, high) in enumerate(pairwise(rows.tolist())):
        covered = np.zeros((high - low, shape[1]), np.uint8)
        for i in np.flatnonzero((top < high) & (bottom > low)).tolist():
            covered[max(top[i] - low, 0) : bottom[i] - low, left[i] : right[i]] = 1
        counts[band] = np.add.reduceat(covered.sum(axis=0, dtype=np.int32), columns[:-1])
    return counts / np.outer(np.diff(rows), np.diff(columns))


def cell_edges(length: int, cells: int) -> np.ndarray:
    """int64 [k + 1]: the edges that divide 0 to `length` into k <= cells nonempty cells."""
    cells = max(1, min(cells, length))
    return np.arange(cells + 1) * length // cells


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
