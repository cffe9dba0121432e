"""The matplotlib twin of the SVG, for static figures; Graphviz is not needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from bpe_automata.optional import require
from bpe_automata.viz.drawing import Drawing, Edge, Node
from bpe_automata.viz.layout import LINE, Places, place
from bpe_automata.viz.pen import Pen
from bpe_automata.viz.routes import points, route
from bpe_automata.viz.text_paths import text_path
from bpe_automata.viz.visible import printable, wrapped

_MARGIN, _RING = 6.0, 3.4  # points: around everything, and between an accepting node's two lines
_ENTRY = 24.0  # the arrow into a start
_TEXT, _NOTE = 10.0, 8.5  # sizes of text
_LARGEST = 1.3  # text grows at most so much to fill large axes


def figure(drawing: Drawing) -> Any:
    """A matplotlib Figure in which text has 10 points. Raises MissingDependencyError."""
    made = require("matplotlib.figure").Figure()
    axes = made.add_axes((0, 0, 1, 1))
    plot(drawing, axes)
    width, height = _fit(axes, 0, 0)
    made.set_size_inches(width / 72, height / 72)
    return made


def plot(drawing: Drawing, axes: Any) -> None:
    """Draw into matplotlib axes, as large as they allow without changing the proportions.

    Text is scaled with the rest: it has 10 points in axes of just the right size (`figure`).
    Raises MissingDependencyError.
    """
    pen, places = Pen(axes), place(drawing)
    routes = route(drawing, places)
    for i, edge in enumerate(drawing.edges):
        _edge(pen, edge, points(routes.curves[i]), places)
        pen.words(wrapped(printable(edge.label)), routes.labels[i], _TEXT, edge.lit)
    for i, node in enumerate(drawing.nodes):
        _node(pen, node, places.centre[i], places.size[i], places.round)
    if drawing.caption and drawing.nodes:
        box, (path, _) = axes.dataLim, text_path(printable(drawing.caption), _TEXT)
        pen.text(path, np.array([box.x0, box.y1 + LINE]), lit=False)
    axes.axis("off")
    room = axes.get_window_extent()
    scale = axes.figure.dpi / 72 * _LARGEST
    _fit(axes, room.width / scale, room.height / scale)


def _fit(axes: Any, least_width: float, least_height: float) -> tuple[float, float]:
    """Limits around everything drawn, at least so wide and high; the width and the height."""
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


def _edge(pen: Pen, edge: Edge, line: np.ndarray, places: Places) -> None:
    """The part of a curve between its two nodes, with an arrow head."""
    if edge.source != edge.target:
        line = _fine(line)
        for node in (edge.source, edge.target):
            away = np.abs(line - places.centre[node]) / (places.size[node] / 2)
            inside = np.hypot(*away.T) < 1 if places.round else away.max(axis=1) < 1
            line = line[~inside]
    if len(line) > 1:
        pen.arrow(line, edge.lit)


def _fine(line: np.ndarray) -> np.ndarray:
    """The same line with a point at least at each unit, so that arrows end close to the nodes."""
    length = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(line, axis=0).T))])
    at = np.linspace(0, length[-1], int(length[-1]) + 2)
    return np.stack([np.interp(at, length, line[:, k]) for k in (0, 1)], axis=1)
