"""Floor 0: pictures. Drawings in; SVG, DOT, HTML, text and matplotlib axes out.

Nothing here knows an automaton: who has one makes a `Drawing` of it and shows `Picture(drawing)`.
"""

from __future__ import annotations

from bpe_automata.viz.coverage import density, rectangles
from bpe_automata.viz.dot import GraphvizError
from bpe_automata.viz.drawing import BrokenDrawingError, Drawing, Edge, Node, counted
from bpe_automata.viz.picture import Picture, UnknownFormatError, check_target
from bpe_automata.viz.plot import figure, plot
from bpe_automata.viz.side_by_side import Pieces, SideBySide, side_by_side
from bpe_automata.viz.visible import edge_label, visible

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
