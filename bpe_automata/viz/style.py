"""What the drawings have in common, whoever draws them."""

from __future__ import annotations

from bpe_automata.viz.drawing import Drawing

# Lit things are also thicker, for those who do not see the colour (vermilion of Okabe and Ito).
INK, LIT, LIT_FILL, LIT_WIDTH = "#222222", "#c24e00", "#fdeadb", 2.4

_SMALL = 3  # characters that fit into a circle


def circles(drawing: Drawing) -> bool:
    """Whether every node fits into a circle; if one does not, all are boxes."""
    return all(len(node.label) <= _SMALL and not node.note for node in drawing.nodes)
