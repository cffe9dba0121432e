"""Defines drawings, labelled graphs whose labels are ready to be printed, and makes such labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from unicodedata import combining, east_asian_width

from bpe_automata._sharing import cached
from bpe_automata.errors import ArgumentError, BpeAutomataError


class BrokenDrawingError(BpeAutomataError):
    """Data that is no drawing; the message contains the offending value."""


@dataclass(frozen=True)
class Node:
    """A state. `lit`: highlighted, as part of a path. `note`: a second, smaller line."""

    label: str
    accepting: bool = False
    start: bool = False
    lit: bool = False
    note: str = ""


@dataclass(frozen=True)
class Edge:
    """An arrow between two nodes, given by their indices in `Drawing.nodes`."""

    source: int
    target: int
    label: str
    lit: bool = False


@dataclass(frozen=True)
class Drawing:
    """A labelled graph. Raises BrokenDrawingError for an edge from or to a node that is missing.

    Labels are printed as they are, with only unprintable characters escaped; `visible` makes a
    label of raw text.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    caption: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", tuple(self.nodes))
        object.__setattr__(self, "edges", tuple(self.edges))
        for number, edge in enumerate(self.edges):
            for node in (edge.source, edge.target):
                if not 0 <= node < len(self.nodes):
                    raise BrokenDrawingError(
                        f"edge {number} ({edge.source} to {edge.target}, {edge.label!r}) names "
                        f"node {node}, but the nodes are 0 to {len(self.nodes) - 1}"
                    )

    def name(self, node: int) -> str:
        """The node's label, with its index (`q#3`) if it has none or shares it."""
        label = self.nodes[node].label
        return label if label and self._shared[label] == 1 else f"{label}#{node}"

    @cached
    def _shared(self) -> Counter[str]:
        return Counter(node.label for node in self.nodes)

    def leaving(self, node: int) -> list[Edge]:
        """The edges that leave a node, in their order."""
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
    """For instance "1 state", "2 states". many: a plural that is not formed by adding an s."""
    return f"{number:,} {what if number == 1 else many or f'{what}s'}"


class Shown:
    """What notebooks and terminals show: a picture, a row of them, a text in pieces."""

    def text(self) -> str:
        """The text for a terminal."""
        raise NotImplementedError

    def html(self) -> str:
        """The HTML for a page."""
        raise NotImplementedError

    def best(self) -> tuple[str, str]:
        """(mime type, text) of SVG or HTML."""
        return "text/html", self.html()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        kind, best = self.best()
        return {"text/plain": self.text(), kind: best}

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__


# The style of drawings, common to Graphviz and matplotlib. Highlighted parts are also thicker, for
# readers who do not see the colour (the vermilion of Okabe and Ito).
INK, LIT, LIT_FILL, LIT_WIDTH = "#222222", "#c24e00", "#fdeadb", 2.4

_SMALL = 3  # characters that fit into a circle


def circles(drawing: Drawing) -> bool:
    """Whether every node fits into a circle; if one does not, all are boxes."""
    return all(len(node.label) <= _SMALL and not node.note for node in drawing.nodes)


# Labels: text and bytes in which every character is visible.

_SHOWN = {" ": "␣", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\"}


def visible(data: bytes | str, longest: int = 60) -> str:
    """The text with spaces as ␣, other invisible characters escaped, and bytes that are no UTF-8 as
    \\xNN. Text of more than `longest` characters (at least 3) is shortened in the middle first."""
    text = data if isinstance(data, str) else data.decode("utf-8", "surrogateescape")
    if len(text) > longest:
        tail = min(19, longest // 3)
        text = f"{text[: longest - tail - 1]}…{text[len(text) - tail :]}"
    return "".join(map(_character, text))


def printable(text: str) -> str:
    """The text with only its unprintable characters escaped, so that it can be written as UTF-8 and
    as XML. It is for labels, which keep their spaces and backslashes; `visible` is for raw text."""
    return "".join(c if c.isprintable() else _character(c) for c in text)


def edge_label(labels: Sequence[str], most: int = 6) -> str:
    """One label for several: "a, b, c … +12 more". The empty word is written ε, and a label with a
    comma is quoted, because commas separate labels. Raises ArgumentError if `most` is negative."""
    if most < 0:
        raise ArgumentError(f"most is {most}: give how many labels to show, from 0 on")
    if len(labels) > most + 1:  # "+1 more" would be as long as the label itself
        first = f"{edge_label(labels[:most], most)} " if most else ""
        return f"{first}… +{len(labels) - most:,} more"
    if len(labels) == 1:
        return labels[0] or "ε"
    return ", ".join(f"‘{label}’" if "," in label else label or "ε" for label in labels)


def wrapped(label: str, widest: int = 26) -> list[str]:
    """The lines of a label, broken at spaces if it is wider than `widest` columns."""
    lines: list[str] = []
    for word in label.split(" "):
        joined = f"{lines[-1]} {word}" if lines else word
        if lines and columns(joined) > widest:
            lines.append(word)
        else:
            lines[-1:] = [joined]
    return lines


def columns(text: str) -> int:
    """The width in a terminal: wide East Asian characters take two columns, accents none."""
    widths = {"W": 2, "F": 2}
    return sum(0 if combining(c) else widths.get(east_asian_width(c), 1) for c in text)


def _character(character: str) -> str:
    if character in _SHOWN:
        return _SHOWN[character]
    if "\udc80" <= character <= "\udcff":  # a byte that is no UTF-8, by "surrogateescape"
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character if character.isprintable() else ascii(character)[1:-1]
