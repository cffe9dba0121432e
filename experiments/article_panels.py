"""Panels of drawings on one page, each at the same scale, under a headline and over a note."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bpe_automata import TokenAutomaton
from bpe_automata.reference import TokenDFA
from bpe_automata.viz import Drawing, Edge, Node, edge_label, figure, plot
from experiments.figures import finish
from experiments.optional import require

_GAP, _TITLE, _SIDE = 0.3, 0.3, 0.2  # inches: between panels, for a title, at the sides
_HEAD, _FOOT = 0.24, 0.16  # inches of a line of the headline, and of the note
_HEAD_WIDTH, _FOOT_WIDTH, _TITLE_WIDTH = 0.103, 0.06, 0.09  # inches of a character, on average


@dataclass(frozen=True)
class Panel:
    """A drawing, or else something that `draw` puts into axes of `width` x `height` inches."""

    title: str = ""
    drawing: Drawing | None = None
    draw: Callable[[Any], None] | None = None
    width: float = 0
    height: float = 0

    def size(self) -> tuple[float, float]:
        """Inches, at which the text of a drawing has 10 points; as wide as the title, at least."""
        wide = max(self.width, _TITLE_WIDTH * len(self.title))
        if self.drawing is None:
            return wide, self.height
        width, height = figure(self.drawing).get_size_inches()
        return max(float(width), wide), max(float(height), self.height)

    def fill(self, axes: Any) -> None:
        """Draw it."""
        if self.drawing is not None:
            plot(self.drawing, axes)
        elif self.draw is not None:
            self.draw(axes)


def becomes() -> Panel:
    """An arrow from the panel before to the one after."""

    def draw(axes: Any) -> None:
        axes.text(0.5, 0.5, "⇒", ha="center", va="center", fontsize=16, color="#888888")
        axes.axis("off")

    return Panel(draw=draw, width=0.3, height=0.3)


def save(
    rows: Sequence[Sequence[Panel]], headline: str, note: str, folder: Path, name: str
) -> list[Path]:
    """Rows of panels, columns below one another, as `name.png` and `name.pdf`; returns the
    paths."""
    require("matplotlib").use("Agg")
    sizes = [[panel.size() for panel in row] for row in rows]
    columns = [max(w for w, _ in column) for column in _columns(sizes)]
    lines = [max(h for _, h in row) + _TITLE for row in sizes]
    width = max(sum(columns) + _GAP * (len(columns) - 1) + 2 * _SIDE, 6.5)
    headline = textwrap.fill(headline, int((width - 0.2) / _HEAD_WIDTH))
    note = "\n".join(textwrap.fill(n, int((width - 0.2) / _FOOT_WIDTH)) for n in note.split("\n"))
    head = _HEAD * (headline.count("\n") + 1) + 0.3
    foot = _FOOT * (note.count("\n") + 1) + 0.2
    height = sum(lines) + _GAP * (len(lines) - 1) + head + foot
    made = require("matplotlib.pyplot").figure(figsize=(width, height))
    top = height - head
    for row, row_sizes, line in zip(rows, sizes, lines, strict=True):
        left = _SIDE
        for panel, (w, h), column in zip(row, row_sizes, columns, strict=False):
            made.text(left / width, (top - 0.16) / height, panel.title, fontsize=11)
            below = top - _TITLE - (line - _TITLE + h) / 2
            panel.fill(made.add_axes((left / width, below / height, w / width, h / height)))
            left += column + _GAP
        top -= line + _GAP
    return finish(made, headline, note, folder, name)


def _columns(sizes: list[list[tuple[float, float]]]) -> Iterator[list[tuple[float, float]]]:
    """Column by column; a row that has but one panel may be as wide as all columns."""
    for place in range(max(map(len, sizes))):
        yield [row[place] for row in sizes if len(row) > max(place, 1)] or [
            row[place] for row in sizes if len(row) > place
        ]


def drawing_of(automaton: TokenAutomaton, labels: int = 6) -> Drawing:
    """Every state and arrow of an automaton, numbered from the start on, without the caption."""
    drawing = automaton.picture(labels=labels).drawing
    order = [automaton.start]
    for node in order:  # grows while we go
        order += dict.fromkeys(e.target for e in drawing.leaving(node) if e.target not in order)
    place = {node: i for i, node in enumerate(order)}
    nodes = tuple(replace(drawing.nodes[node], label=str(i)) for i, node in enumerate(order))
    edges = (replace(e, source=place[e.source], target=place[e.target]) for e in drawing.edges)
    return Drawing(nodes, tuple(sorted(edges, key=lambda e: (e.source, e.target))))


def drawing_of_dfa(
    dfa: TokenDFA, tokens: Mapping[int, str], names: Mapping[Hashable, str]
) -> Drawing:
    """A reference automaton with the states and tokens named. States without a name are new: they
    are called S′."""
    order = [*(state for state in names if state in dfa.states())]
    order += sorted((state for state in dfa.states() if state not in names), key=str)
    place = {state: i for i, state in enumerate(order)}
    nodes = [
        Node(names.get(state, "S′"), state in dfa.accepting, state == dfa.start) for state in order
    ]
    labels: dict[tuple[int, int], list[int]] = {}
    for source, token, target in dfa.transitions():
        labels.setdefault((place[source], place[target]), []).append(token)
    edges = [
        Edge(source, target, edge_label([tokens[token] for token in sorted(read)]))
        for (source, target), read in sorted(labels.items())
    ]
    return Drawing(tuple(nodes), tuple(edges))
