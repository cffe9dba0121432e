"""Draws labelled graphs, rows of tokens and rectangles as SVG, DOT, HTML, text or by matplotlib.

Nothing here depends on automata: an automaton makes a `Drawing` of itself for `Picture(drawing)`.
"""

from __future__ import annotations

from bpe_automata.viz._drawing import (
    BrokenDrawingError,
    Drawing,
    Edge,
    Node,
    counted,
    edge_label,
    visible,
)
from bpe_automata.viz._figures import density, figure, plot, rectangles
from bpe_automata.viz._picture import GraphvizError, Picture, UnknownFormatError, check_target
from bpe_automata.viz._side_by_side import Pieces, SideBySide, side_by_side

__all__ = [
    "BrokenDrawingError",
    "Drawing",
    "Edge",
    "GraphvizError",
    "Node",
    "Picture",
    "Pieces",
    "SideBySide",
    "UnknownFormatError",
    "check_target",
    "counted",
    "density",
    "edge_label",
    "figure",
    "plot",
    "rectangles",
    "side_by_side",
    "visible",
]
