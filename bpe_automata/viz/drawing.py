"""What is drawn: nodes and edges with ready texts. Nothing here knows what an automaton is."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from bpe_automata.errors import BpeAutomataError
from bpe_automata.sharing import cached


class BrokenDrawingError(BpeAutomataError):
    """Nodes and edges that are not a drawing; the message holds the offending value."""


@dataclass(frozen=True)
class Node:
    """A state. `lit`: on the path that is shown. `note`: a second, smaller line."""

    label: str
    accepting: bool = False
    start: bool = False
    lit: bool = False
    note: str = ""


@dataclass(frozen=True)
class Edge:
    """An arrow between two nodes, by their places in `Drawing.nodes`."""

    source: int
    target: int
    label: str
    lit: bool = False


@dataclass(frozen=True)
class Drawing:
    """A labelled graph. Raises BrokenDrawingError for an edge from or to a node that is not there.

    Labels are shown as they are (only unprintable characters are escaped), so write raw text by
    `visible` first.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    caption: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", tuple(self.nodes))
        object.__setattr__(self, "edges", tuple(self.edges))
        for place, edge in enumerate(self.edges):
            for node in (edge.source, edge.target):
                if not 0 <= node < len(self.nodes):
                    raise BrokenDrawingError(
                        f"edge {place} ({edge.source} to {edge.target}, {edge.label!r}) names node "
                        f"{node}, but the nodes are 0 to {len(self.nodes) - 1}"
                    )

    def name(self, node: int) -> str:
        """The node's label; with its place (`q#3`) where it has none or shares it."""
        label = self.nodes[node].label
        return label if label and self._shared[label] == 1 else f"{label}#{node}"

    @cached
    def _shared(self) -> Counter[str]:
        return Counter(node.label for node in self.nodes)

    def leaving(self, node: int) -> list[Edge]:
        """The edges out of a node, in their order."""
        return self._leaving.get(node, [])

    @cached
    def _leaving(self) -> dict[int, list[Edge]]:
        found: dict[int, list[Edge]] = {}
        for edge in self.edges:
            found.setdefault(edge.source, []).append(edge)
        return found

    def size(self) -> str:
        """For instance "2 states, 3 arrows"."""
        return f"{counted(len(self.nodes), 'state')}, {counted(len(self.edges), 'arrow')}"


def counted(number: int, what: str, many: str = "") -> str:
    """For instance "1 state", "2 states"; `many` where the plural does not just add an s."""
    return f"{number:,} {what if number == 1 else many or f'{what}s'}"


# What the drawings have in common, whoever draws them.

# Lit things are also thicker, for those who do not see the colour (vermilion of Okabe and Ito).
INK, LIT, LIT_FILL, LIT_WIDTH = "#222222", "#c24e00", "#fdeadb", 2.4

_SMALL = 3  # characters that fit into a circle


def circles(drawing: Drawing) -> bool:
    """Whether every node fits into a circle; if one does not, all are boxes."""
    return all(len(node.label) <= _SMALL and not node.note for node in drawing.nodes)
