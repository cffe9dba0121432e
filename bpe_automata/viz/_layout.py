"""Computes the positions of the nodes of a drawing, layer by layer, and bends its edges.

The rank of a node is its column. In a graph without cycles it is the length of the longest path
from a start, so every edge goes to the right and a drawing reads like the strings it accepts; with
cycles, that of the shortest path, so an edge goes at most one rank forward. The order within a rank
comes from barycentre sweeps (Sugiyama, Tagawa and Toda 1981). An edge is straight, or bent just as
far as it has to be to go around nodes. The same drawing gives the same layout. Units are points,
for text of 10 points; y goes up.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from bpe_automata._optional import require
from bpe_automata.viz._drawing import Drawing, Node, circles, columns, printable, wrapped

FONT = "DejaVu Sans"  # comes with matplotlib
LINE = 12.5  # height of a line of text of 10 points
LOOP = 24.0  # height of a self-loop above its node
_CHARACTER, _CIRCLE, _SPACE, _ARROW, _SWEEPS = 6.2, 26.0, 18.0, 34.0, 8
_T = np.linspace(0, 1, 25)[:, None]
# How far a curve may be from its chord in the middle, as a share of the chord. Small bends come
# first, and those to the right of its direction, which separates an edge from the one back.
_BENDS = (0.0, 0.1, -0.1, 0.16, -0.16, 0.24, -0.24, 0.33, -0.33, 0.45, -0.45, 0.6, -0.6)


@dataclass(frozen=True)
class Layout:
    """rank: int64 [n], 0 at a start. centre, size: float64 [n, 2], of the nodes (width, height).
    label_size: float64 [m, 2], of the labels of the edges. round: whether nodes are circles."""

    rank: np.ndarray
    centre: np.ndarray
    size: np.ndarray
    label_size: np.ndarray
    round: bool


def lay_out(drawing: Drawing) -> Layout:
    """The layout of a drawing, in which no two nodes overlap. Raises MissingDependencyError."""
    n = len(drawing.nodes)
    round_ = circles(drawing)
    size = np.array([_node_size(node, round_) for node in drawing.nodes]).reshape(n, 2)
    lines = [wrapped(glyphs(edge.label)) for edge in drawing.edges]
    label_size = np.array(
        [(max(map(width, label)) + 4, LINE * len(label)) for label in lines]
    ).reshape(-1, 2)
    layers = _layers(drawing)
    rank = np.zeros(n, np.int64)
    for r, layer in enumerate(layers):
        rank[layer] = r
    centre = np.zeros((n, 2))
    if n:
        centre[:, 0] = _across(drawing, rank, size, label_size)[rank]
        centre[:, 1] = _heights(drawing, layers, _needed(drawing, size, label_size))
    return Layout(rank, centre, size, label_size, round_)


def _layers(drawing: Drawing) -> list[list[int]]:
    """The nodes of each rank. A node that no start reaches counts as a start."""
    networkx = require("networkx")
    graph = networkx.DiGraph((e.source, e.target) for e in drawing.edges if e.source != e.target)
    graph.add_nodes_from(range(len(drawing.nodes)))
    if networkx.is_directed_acyclic_graph(graph):
        return [sorted(layer) for layer in networkx.topological_generations(graph)]
    starts = [i for i, node in enumerate(drawing.nodes) if node.start]
    reached = set(starts).union(*(networkx.descendants(graph, start) for start in starts))
    for node in range(len(drawing.nodes)):
        if node not in reached:
            starts.append(node)
            reached |= {node} | networkx.descendants(graph, node)
    return [sorted(layer) for layer in networkx.bfs_layers(graph, starts)]


def _node_size(node: Node, round_: bool) -> tuple[float, float]:
    if round_:
        return _CIRCLE, _CIRCLE
    widest = max(width(glyphs(node.label)), 0.85 * width(glyphs(node.note)))
    return max(_CIRCLE, widest + 14), LINE * (1 + bool(node.note)) + 9


def width(text: str) -> float:
    """The approximate width of text of 10 points."""
    return _CHARACTER * columns(text)


def glyphs(text: str) -> str:
    """The text, with escapes, not boxes, for what is unprintable or missing in the font."""
    characters = _characters()
    return "".join(c if ord(c) in characters else ascii(c)[1:-1] for c in printable(text))


@cache
def _characters() -> frozenset[int]:
    file = require("matplotlib.font_manager").findfont(FONT)
    return frozenset(require("matplotlib.ft2font").FT2Font(file).get_charmap())


def _across(
    drawing: Drawing, rank: np.ndarray, size: np.ndarray, label_size: np.ndarray
) -> np.ndarray:
    """float64 [ranks]: x of each rank, with room for labels between two ranks."""
    half, gap = np.zeros(int(rank.max()) + 1), np.zeros(int(rank.max()) + 1)
    np.maximum.at(half, rank, size[:, 0] / 2)
    for edge, (wide, _) in zip(drawing.edges, label_size, strict=True):
        low, high = sorted((rank[edge.source], rank[edge.target]))
        if high - low < 2:
            gap[low] = max(gap[low], wide)
    gap += _ARROW
    return np.concatenate([[0.0], np.cumsum(half[:-1] + gap[:-1] + half[1:])])


def _needed(drawing: Drawing, size: np.ndarray, label_size: np.ndarray) -> np.ndarray:
    """float64 [n]: the height of each node with its self-loops and the labels next to it."""
    labels, loops = np.zeros(len(size)), np.zeros(len(size))
    for edge, (_, height) in zip(drawing.edges, label_size, strict=True):
        if edge.source == edge.target:
            loops[edge.source] += height + LOOP * (loops[edge.source] == 0)
        else:
            ends = [edge.source, edge.target]
            labels[ends] = np.maximum(labels[ends], height)
    return size[:, 1] + np.maximum(labels, 2 * loops) + _SPACE


def _heights(drawing: Drawing, layers: list[list[int]], needed: np.ndarray) -> np.ndarray:
    """float64 [n]: y of each node; those of a rank are stacked around 0, each near the mean of its
    neighbours. The result is that of the sweep whose edges are the shortest in sum."""
    near: list[list[int]] = [[] for _ in drawing.nodes]
    for edge in drawing.edges:
        if edge.source != edge.target:
            near[edge.source].append(edge.target)
            near[edge.target].append(edge.source)
    y = np.zeros(len(near))
    best, least = y, np.inf
    for sweep in range(_SWEEPS):
        for layer in layers if sweep % 2 == 0 else layers[::-1]:
            layer.sort(key=lambda i: -(y[near[i]].mean() if near[i] else y[i]))
            tall = needed[layer]
            y[layer] = tall.sum() / 2 - np.cumsum(tall) + tall / 2
        length = sum(abs(y[e.source] - y[e.target]) for e in drawing.edges)
        if length < least - 1e-9:
            best, least = y.copy(), length
    return best


@dataclass(frozen=True)
class Routes:
    """bends: float64 [m], 0 for a self-loop. labels: float64 [m, 2], the centres of the labels.
    lines: points of each edge, float64 [k, 2]."""

    bends: np.ndarray
    labels: np.ndarray
    lines: list[np.ndarray]


def route(drawing: Drawing, layout: Layout) -> Routes:
    """The route of each edge, with its cheapest bend; self-loops and short edges come first."""
    m = len(drawing.edges)
    routes = Routes(np.zeros(m), np.zeros((m, 2)), [np.zeros((0, 2))] * m)
    over = layout.size[:, 1] / 2 + LOOP  # where the label of a node's next self-loop begins
    ends = np.array([(e.source, e.target) for e in drawing.edges], np.int64).reshape(-1, 2)
    span = np.abs(layout.rank[ends[:, 0]] - layout.rank[ends[:, 1]])
    span[ends[:, 0] == ends[:, 1]] = -1
    pairs = {(e.source, e.target) for e in drawing.edges}
    routed: list[int] = []
    for i in np.argsort(span, kind="stable").tolist():
        source, target = ends[i].tolist()
        start, end = layout.centre[ends[i]]
        if source == target:
            routes.labels[i] = start + np.array([0, over[source] + layout.label_size[i, 1] / 2])
            over[source] += layout.label_size[i, 1]
            routes.lines[i] = loop(start, layout.size[source])
        else:
            usual = 0.1 if (target, source) in pairs else 0.0
            tried = {bend: curve(start, end, bend) for bend in _BENDS}
            cost = {
                bend: _cost(line, ends[i], layout.label_size[i], layout, routes, routed)
                + 10 * abs(bend - usual)
                for bend, line in tried.items()
            }
            best = min(cost, key=cost.__getitem__)
            routes.bends[i], routes.lines[i] = best, tried[best]
            routes.labels[i] = tried[best][len(_T) // 2]
        routed.append(i)
    return routes


def _cost(
    line: np.ndarray,
    ends: np.ndarray,
    label: np.ndarray,
    layout: Layout,
    routes: Routes,
    routed: list[int],
) -> float:
    """The cost of crossing nodes and labels, and of putting the edge's own label on a node, a label
    or a line."""
    at, quarter = line[[len(line) // 2]], len(line) // 4
    others = np.delete(np.arange(len(layout.rank)), ends)
    nodes = layout.centre[others], layout.size[others]
    labels = routes.labels[routed], layout.label_size[routed]
    lines = np.concatenate([np.zeros((0, 2)), *(routes.lines[k] for k in routed)])
    return (
        30 * _hits(line, 8.0, *nodes)
        + 8 * _hits(line[quarter:-quarter], 0.0, *labels)
        + 20 * (_hits(at, label, layout.centre, layout.size) + _hits(at, label, *labels))
        + (_hits(at, label, lines, np.zeros(2)) > 0)
    )


def curve(start: np.ndarray, end: np.ndarray, bend: float) -> np.ndarray:
    """float64 [k, 2]: the quadratic curve that matplotlib draws as "arc3,rad=2 * bend"."""
    along = end - start
    control = (start + end) / 2 + 2 * bend * np.array([along[1], -along[0]])
    return (1 - _T) ** 2 * start + 2 * _T * (1 - _T) * control + _T**2 * end


def loop(centre: np.ndarray, size: np.ndarray) -> np.ndarray:
    """float64 [4, 2]: the control points of a self-loop, a cubic curve above a node."""
    foot, top = min(9.0, size[0] / 3), size[1] / 2
    return centre + np.array(
        [(-foot, top - 2), (-14, top + 1.3 * LOOP), (14, top + 1.3 * LOOP), (foot, top - 2)]
    )


def _hits(at: np.ndarray, size: np.ndarray | float, centre: np.ndarray, extent: np.ndarray) -> int:
    """How many of n boxes overlap a box of this size at one of k positions."""
    gap = np.abs(at[:, None] - centre) - (size + extent) / 2
    return int((gap < 0).all(axis=2).any(axis=0).sum())
