"""What the article's figures are made of: automata, masks as squares, and pages of such panels.

The panels of a page have one scale, a headline above and a note below. A page is data: it goes
into a row as JSON and comes back as it was.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from bpe_automata import TokenAutomaton
from bpe_automata.reference import TokenDFA
from bpe_automata.viz import Drawing, Edge, Node, edge_label, figure, plot
from experiments.run.executors import Row
from experiments.run.files import require
from experiments.run.report import Figure, noted
from experiments.shared.shown import in_lines

# ---------------------------------------------------------------- automata


def drawing_of(automaton: TokenAutomaton, labels: int = 6) -> Drawing:
    """Every state and arrow of an automaton, numbered from the start on, without the caption."""
    return numbered(automaton.picture(labels=labels).drawing, automaton.start)


def numbered(drawing: Drawing, start: int) -> Drawing:
    """What can be reached from a node, numbered from there on, without the caption."""
    order = [start]
    for node in order:  # grows while we go
        order += dict.fromkeys(e.target for e in drawing.leaving(node) if e.target not in order)
    number = {node: i for i, node in enumerate(order)}
    nodes = tuple(
        replace(drawing.nodes[node], label=str(i), start=i == 0) for i, node in enumerate(order)
    )
    edges = (
        replace(e, source=number[e.source], target=number[e.target])
        for e in drawing.edges
        if e.source in number
    )
    return Drawing(nodes, tuple(sorted(edges, key=lambda e: (e.source, e.target))))


def drawing_of_dfa(
    dfa: TokenDFA, tokens: Mapping[int, str], names: Mapping[Hashable, str]
) -> Drawing:
    """A reference automaton with the states and tokens named. States without a name are new: they
    are called S′."""
    order = [*(state for state in names if state in dfa.states())]
    order += sorted((state for state in dfa.states() if state not in names), key=str)
    number = {state: i for i, state in enumerate(order)}
    nodes = [
        Node(names.get(state, "S′"), state in dfa.accepting, state == dfa.start) for state in order
    ]
    labels: dict[tuple[int, int], list[int]] = {}
    for source, token, target in dfa.transitions():
        labels.setdefault((number[source], number[target]), []).append(token)
    edges = [
        Edge(source, target, edge_label([tokens[token] for token in sorted(read)]))
        for (source, target), read in sorted(labels.items())
    ]
    return Drawing(tuple(nodes), tuple(edges))


# ---------------------------------------------------------------- masks along a text, as squares

ALLOWED, CHOSEN, FORBIDDEN = "#7fc4cc", "#00798c", "#f2f2f2"


@dataclass(frozen=True)
class Step:
    """so_far: what was read; allowed: the tokens that may come; chosen: the one that does ("": the
    end)."""

    so_far: str
    allowed: tuple[str, ...]
    chosen: str


@dataclass(frozen=True)
class Squares:
    """tokens: of the columns."""

    tokens: tuple[str, ...]
    steps: tuple[Step, ...]


def draw_squares(axes: Any, squares: Squares) -> None:
    """Into axes of matplotlib: a line per step, a column per token."""
    centered = {"ha": "center", "va": "center", "fontsize": 10, "family": "monospace"}
    for line, step in enumerate(squares.steps):
        axes.text(-0.7, -line, step.so_far, **(centered | {"ha": "right"}))
        for column, token in enumerate(squares.tokens):
            color, ink = _colors(step, token)
            axes.bar(column, 0.8, 0.9, -line - 0.4, color=color)
            axes.text(column, -line, token, color=ink, **centered)
    axes.set_xlim(-3.4, len(squares.tokens))
    axes.set_ylim(-len(squares.steps) + 0.4, 0.6)
    axes.axis("off")


def _colors(step: Step, token: str) -> tuple[str, str]:
    if token == step.chosen:
        return CHOSEN, "white"
    return (ALLOWED, "#222222") if token in step.allowed else (FORBIDDEN, "#bbbbbb")


# ---------------------------------------------------------------- pages

_GAP, _TITLE, _SIDE = 0.3, 0.3, 0.2  # inches: between panels, for a title, at the sides
_HEAD, _FOOT = 0.24, 0.16  # inches of a line of the headline, and of the note
_TITLE_WIDTH = 0.09  # inches of a character, on average
_ARROW = 0.3  # inches


@dataclass(frozen=True)
class Panel:
    """A drawing, or squares of `width` x `height` inches, or else an arrow from the panel before to
    the one after."""

    title: str = ""
    drawing: Drawing | None = None
    squares: Squares | None = None
    width: float = 0
    height: float = 0

    def size(self) -> tuple[float, float]:
        """Inches, at which the text of a drawing has 10 points; as wide as the title, at least."""
        wide = max(self.width, _TITLE_WIDTH * len(self.title))
        if self.drawing is None:
            return max(wide, _ARROW), max(self.height, _ARROW)
        width, height = figure(self.drawing).get_size_inches()
        return max(float(width), wide), max(float(height), self.height)

    def fill(self, axes: Any) -> None:
        """Draw it."""
        if self.drawing is not None:
            plot(self.drawing, axes)
        elif self.squares is not None:
            draw_squares(axes, self.squares)
        else:
            axes.text(0.5, 0.5, "⇒", ha="center", va="center", fontsize=16, color="#888888")
            axes.axis("off")


@dataclass(frozen=True)
class Page:
    """rows: of panels, columns below one another."""

    rows: tuple[tuple[Panel, ...], ...]
    headline: str
    note: str


def row_of(page: Page) -> Row:
    """As JSON has it."""
    return asdict(page)


def page_of(row: Row) -> Page:
    """What `row_of` was given."""
    rows = tuple(tuple(map(_panel, panels)) for panels in row["rows"])
    return Page(rows, row["headline"], row["note"])


def _panel(row: Row) -> Panel:
    drawing, squares = row["drawing"], row["squares"]
    if drawing is not None:
        nodes = tuple(Node(**node) for node in drawing["nodes"])
        edges = tuple(Edge(**edge) for edge in drawing["edges"])
        drawing = Drawing(nodes, edges, drawing["caption"])
    if squares is not None:
        steps = (step | {"allowed": tuple(step["allowed"])} for step in squares["steps"])
        squares = Squares(tuple(squares["tokens"]), tuple(Step(**step) for step in steps))
    return Panel(**(row | {"drawing": drawing, "squares": squares}))


def drawn(page: Page, name: str) -> Figure:
    """The page as a figure."""
    require("matplotlib").use("Agg")
    sizes = [[panel.size() for panel in row] for row in page.rows]
    columns = [max(w for w, _ in column) for column in _columns(sizes)]
    lines = [max(h for _, h in row) + _TITLE for row in sizes]
    width = max(sum(columns) + _GAP * (len(columns) - 1) + 2 * _SIDE, 6.5)
    headline = in_lines(page.headline, width)
    head = _HEAD * (headline.count("\n") + 1) + 0.3
    # A line more, where the runner has one to add.
    foot = _FOOT * (noted(page.note, width).count("\n") + 2) + 0.2
    height = sum(lines) + _GAP * (len(lines) - 1) + head + foot
    made = require("matplotlib.pyplot").figure(figsize=(width, height))
    top = height - head
    for row, row_sizes, line in zip(page.rows, sizes, lines, strict=True):
        left = _SIDE
        for panel, (w, h), column in zip(row, row_sizes, columns, strict=False):
            made.text(left / width, (top - 0.16) / height, panel.title, fontsize=11)
            below = top - _TITLE - (line - _TITLE + h) / 2
            panel.fill(made.add_axes((left / width, below / height, w / width, h / height)))
            left += column + _GAP
        top -= line + _GAP
    return Figure(name, made, headline, page.note)


def _columns(sizes: Sequence[list[tuple[float, float]]]) -> Iterator[list[tuple[float, float]]]:
    """Column by column; a row that has but one panel may be as wide as all columns."""
    for column in range(max(map(len, sizes))):
        yield [row[column] for row in sizes if len(row) > max(column, 1)] or [
            row[column] for row in sizes if len(row) > column
        ]
