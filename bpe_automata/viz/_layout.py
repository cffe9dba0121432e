"""Computes the positions of the nodes of a drawing, layer by layer, and curves for its edges.

The rank of a node is its column. In a graph without cycles it is the length of the longest path
from a start, so every edge goes to the right and a drawing reads like the strings it accepts; with
cycles, that of the shortest path, so an edge goes at most one rank forward. The order within a rank
comes from barycentre sweeps (Sugiyama, Tagawa and Toda 1981), and the heights are a least-squares
fit that keeps this order and minimal distances. Each edge is one cubic curve. The same drawing
gives the same layout. Units are points, for text of 10 points; y goes up.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from bpe_automata.viz._drawing import Drawing, Edge, Node, circles, columns, printable, wrapped

LINE = 12.5  # height of a line of text of 10 points
_WIDE, _SLIM, _OTHER = 9.6, 4.0, 6.4  # about the widths of characters of 10 points
_WIDE_ONES, _SLIM_ONES = frozenset("mwMW@%…→"), frozenset(" .,:;!|'‘’`\"()[]/\\ijlftrI-")
LOOP = 26.0  # height of a self-loop above its node
_CIRCLE, _SPACE, _ARROW, _SWEEPS = 26.0, 16.0, 34.0, 12


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
    """The layout of a drawing, in which no two nodes overlap."""
    n = len(drawing.nodes)
    round_ = circles(drawing)
    size = np.array([_node_size(node, round_) for node in drawing.nodes]).reshape(n, 2)
    label_size = np.array([_label_size(edge) for edge in drawing.edges]).reshape(-1, 2)
    rank = ranks(drawing)
    layers = _ordered(drawing, rank)
    centre = np.zeros((n, 2))
    centre[:, 0] = _across(drawing, rank, size, label_size)[rank] if n else 0
    centre[:, 1] = _heights(drawing, layers, _gaps(drawing, layers, size, label_size))
    return Layout(rank, centre, size, label_size, round_)


def ranks(drawing: Drawing) -> np.ndarray:
    """int64 [n]: the rank of each node. A node that no start reaches counts as a start."""
    longest = _longest(drawing)
    return _shortest(drawing) if longest is None else longest


def _longest(drawing: Drawing) -> np.ndarray | None:
    """int64 [n]: the length of the longest path to each node, without self-loops; None if there is
    another cycle."""
    edges = [(e.source, e.target) for e in drawing.edges if e.source != e.target]
    entering = [0] * len(drawing.nodes)
    for _, target in edges:
        entering[target] += 1
    rank = np.zeros(len(drawing.nodes), np.int64)
    ready = [node for node, count in enumerate(entering) if not count]
    for node in ready:  # grows during the loop
        for target in (q for p, q in edges if p == node):
            rank[target] = max(rank[target], rank[node] + 1)
            entering[target] -= 1
            if not entering[target]:
                ready.append(target)
    return rank if len(ready) == len(drawing.nodes) else None


def _shortest(drawing: Drawing) -> np.ndarray:
    """int64 [n]: the distance from the nearest start."""
    found = dict.fromkeys((i for i, node in enumerate(drawing.nodes) if node.start), 0)
    queue, others = deque(found), iter(range(len(drawing.nodes)))
    while len(found) < len(drawing.nodes):
        if not queue:
            queue.append(next(i for i in others if i not in found))
            found[queue[0]] = 0
        source = queue.popleft()
        for edge in drawing.leaving(source):
            if edge.target not in found:
                found[edge.target] = found[source] + 1
                queue.append(edge.target)
    return np.array([found[i] for i in range(len(drawing.nodes))], np.int64)


def _node_size(node: Node, round_: bool) -> tuple[float, float]:
    if round_:
        return _CIRCLE, _CIRCLE
    widest = max(_width(node.label), 0.85 * _width(node.note))
    return max(_CIRCLE, widest + 14), LINE * (1 + bool(node.note)) + 9


def _label_size(edge: Edge) -> tuple[float, float]:
    lines = wrapped(printable(edge.label))
    return max(map(_width, lines)) + 4, LINE * len(lines)


def _width(text: str) -> float:
    return sum(
        _SLIM if c in _SLIM_ONES else _WIDE if c in _WIDE_ONES else _OTHER * columns(c)
        for c in printable(text)
    )


def _loop_rise(drawing: Drawing, label_size: np.ndarray) -> np.ndarray:
    """float64 [n]: the height above each node that its self-loops and their labels need."""
    rise = np.zeros(len(drawing.nodes))
    for edge, size in zip(drawing.edges, label_size, strict=True):
        if edge.source == edge.target:
            rise[edge.source] += LOOP * 0.75 * (rise[edge.source] == 0) + size[1]
    return rise


def _ordered(drawing: Drawing, rank: np.ndarray) -> list[list[int]]:
    """The nodes of each rank, from the top: the best order of some sweeps, improved by swaps."""
    near: list[list[int]] = [[] for _ in drawing.nodes]
    for edge in drawing.edges:
        if edge.source != edge.target:
            near[edge.source].append(edge.target)
            near[edge.target].append(edge.source)
    layers = [np.flatnonzero(rank == r).tolist() for r in range(rank.max(initial=-1) + 1)]
    best, fewest = layers, _faults(layers, near)
    for sweep in range(_SWEEPS):
        layers = _swept(layers, near, rank, forward=sweep % 2 == 0)
        faults = _faults(layers, near)
        if faults < fewest:
            best, fewest = layers, faults
    return _swapped(best, near)


def _swept(
    layers: list[list[int]], near: list[list[int]], rank: np.ndarray, forward: bool
) -> list[list[int]]:
    """Each layer sorted by the mean position of its neighbours in the layer before."""
    position = {node: float(i) for layer in layers for i, node in enumerate(layer)}
    step, layers = -1 if forward else 1, list(layers)
    for r in range(len(layers))[::-step]:
        mean: dict[int, float] = {}
        for node in layers[r]:
            seen = [position[other] for other in near[node] if rank[other] == r + step]
            mean[node] = float(np.mean(seen)) if seen else position[node]
        layers[r] = sorted(layers[r], key=mean.__getitem__)
        position |= {node: float(i) for i, node in enumerate(layers[r])}
    return layers


def _swapped(layers: list[list[int]], near: list[list[int]]) -> list[list[int]]:
    """Adjacent nodes of a rank are swapped as long as that reduces the faults."""
    layers = [list(layer) for layer in layers]
    for _ in range(_SWEEPS):
        helped = False
        for r, layer in enumerate(layers):
            around = slice(max(r - 1, 0), r + 2)
            for i in range(len(layer) - 1):
                before = _faults(layers[around], near)
                layer[i : i + 2] = layer[i + 1], layer[i]
                if _faults(layers[around], near) < before:
                    helped = True
                else:
                    layer[i : i + 2] = layer[i + 1], layer[i]
        if not helped:
            break
    return layers


def _faults(layers: list[list[int]], near: list[list[int]]) -> int:
    """The number of edges between neighbouring ranks that cross, plus the number of nodes that
    edges within a rank must avoid (counted twice, as such an edge is twice in `near`)."""
    total = 0
    places = [{node: i for i, node in enumerate(layer)} for layer in layers]
    for own in places:
        within = (abs(i - own[o]) - 1 for node, i in own.items() for o in near[node] if o in own)
        total += sum(within)
    for left, right in pairwise(places):
        ends = [(i, right[o]) for node, i in left.items() for o in near[node] if o in right]
        a, b = np.array(ends, np.int64).reshape(-1, 2).T
        total += int(((a[:, None] < a) & (b[:, None] > b)).sum())
    return total


def _across(
    drawing: Drawing, rank: np.ndarray, size: np.ndarray, label_size: np.ndarray
) -> np.ndarray:
    """float64 [ranks]: x of each rank, with room for labels between two ranks."""
    n_ranks = int(rank.max()) + 1
    half, gap, inside = np.zeros(n_ranks), np.zeros(n_ranks), np.zeros(n_ranks)
    np.maximum.at(half, rank, size[:, 0] / 2)
    for edge, (width, _) in zip(drawing.edges, label_size, strict=True):
        r, s = sorted((rank[edge.source], rank[edge.target]))
        if s - r == 1:
            gap[r] = max(gap[r], width)
        elif edge.source == edge.target:  # the label hangs over the sides of its node
            gap[r] = max(gap[r], width / 2 - half[r])
        elif s == r:
            inside[r] = max(inside[r], width)
    gap += inside + _ARROW
    return np.concatenate([[0.0], np.cumsum(half[:-1] + gap[:-1] + half[1:])])


def _gaps(
    drawing: Drawing, layers: list[list[int]], size: np.ndarray, label_size: np.ndarray
) -> list[np.ndarray]:
    """For each rank, the distance that each node and the next need for loops and labels."""
    rank = {node: r for r, layer in enumerate(layers) for node in layer}
    tall, between = [_SPACE] * len(layers), dict[frozenset[int], float]()
    for edge, (_, height) in zip(drawing.edges, label_size, strict=True):
        ends = frozenset((edge.source, edge.target))
        if len({rank[node] for node in ends}) == 2:
            for node in ends:
                tall[rank[node]] = max(tall[rank[node]], height + 4)
        elif len(ends) == 2:
            between[ends] = between.get(ends, _ARROW) + height
    rise, half = _loop_rise(drawing, label_size), size[:, 1] / 2
    return [
        np.array(
            [
                half[a] + half[b] + rise[b] + max(tall[r], between.get(frozenset((a, b)), 0))
                for a, b in pairwise(layer)
            ]
        )
        for r, layer in enumerate(layers)
    ]


def _heights(drawing: Drawing, layers: list[list[int]], gaps: list[np.ndarray]) -> np.ndarray:
    """float64 [n]: y of each node, near the mean of its neighbours."""
    y = np.zeros(len(drawing.nodes))
    near: list[list[int]] = [[] for _ in drawing.nodes]
    for edge in drawing.edges:
        if edge.source != edge.target:
            near[edge.source].append(edge.target)
            near[edge.target].append(edge.source)
    for sweep in range(_SWEEPS):
        for r in range(len(layers))[:: 1 if sweep % 2 == 0 else -1]:
            wanted = np.array([y[near[i]].mean() if near[i] else y[i] for i in layers[r]])
            y[layers[r]] = spread(wanted, gaps[r])
    return y


def spread(wanted: np.ndarray, apart: np.ndarray) -> np.ndarray:
    """The heights closest to `wanted` (least squares) such that each is at least `apart` below the
    one before: isotonic regression by pooling."""
    offset = np.concatenate([[0.0], np.cumsum(apart)])
    pools: list[tuple[float, int]] = []
    for value in -wanted - offset:  # to be made ascending
        pools.append((float(value), 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (a, n), (b, k) = pools[-2:]
            pools[-2:] = [((a * n + b * k) / (n + k), n + k)]
    return -(np.repeat([p for p, _ in pools], [n for _, n in pools]) + offset)


# Routes of edges. For each edge some curves are tried, flat ones first, and the cheapest is taken;
# it costs to cross a node, to put the label on something, and to run along another edge. If there
# are many edges, fewer curves are tried, so that the time is about the same.

_T = np.linspace(0, 1, 33)
_BASIS = np.stack([(1 - _T) ** 3, 3 * _T * (1 - _T) ** 2, 3 * _T**2 * (1 - _T), _T**3], axis=1)
_LABEL_AT = np.array([0.5, 0.43, 0.57, 0.36, 0.64, 0.29, 0.71, 0.22, 0.78])  # the middle first
_SIDES = tuple(side * bow for bow in (14, 28, 46, 70, 105, 155, 230, 330) for side in (-1, 1))
# Costs, in points of bow: a line through a node, across a label, close to another line (for each of
# its points), above instead of below; a label on a node or label, or on a line.
_NODE, _ACROSS, _ALONG, _UP, _LABEL, _LINE = 300.0, 50.0, 10.0, 3.0, 500.0, 25.0
# Distances: around nodes, between edges, and around the ends of an edge, where others may be close.
_CLEAR, _NEAR, _FREE = 5.0, np.array([7.0, 7.0]), 16.0
_HEAD = np.array([18.0, 6.0])  # the distance of a label from the heads of arrows
_POINT = np.zeros(2)
_MANY = 70  # edges: with more, only plain bows are tried


@dataclass(frozen=True)
class Routes:
    """curves: float64 [m, 4, 2], control points from centre to centre. labels: float64 [m, 2],
    the centres of the labels."""

    curves: np.ndarray
    labels: np.ndarray


def points(curve: np.ndarray) -> np.ndarray:
    """float64 [33, 2]: points of a cubic curve."""
    return _BASIS @ curve


def route(drawing: Drawing, layout: Layout) -> Routes:
    """The curves of all edges: self-loops first, which have one route, then forward edges, then the
    others."""
    m = len(drawing.edges)
    router = _Router(layout, m)
    span = [int(layout.rank[e.target] - layout.rank[e.source]) for e in drawing.edges]
    order = sorted(range(m), key=lambda i: (span[i] != 1, abs(span[i]), i))
    for i in sorted(order, key=lambda i: drawing.edges[i].source != drawing.edges[i].target):
        router.add(i, drawing.edges[i].source, drawing.edges[i].target)
    return Routes(router.curves, router.labels)


class _Router:
    """Routes one edge after another, away from those already routed."""

    def __init__(self, layout: Layout, n_edges: int) -> None:
        self.layout, self.bows = layout, _BOWS if n_edges <= _MANY else _PLAIN
        self.curves, self.labels = np.zeros((n_edges, 4, 2)), np.zeros((n_edges, 2))
        self.lying = np.zeros((0, 2))  # points of the curves so far
        self.boxes = np.zeros((0, 2, 2))  # centre and size of the labels so far
        self.over = np.zeros(len(layout.rank))  # height of the loops above each node
        for node in np.flatnonzero(layout.rank == 0):  # the arrow into a start
            x, y = layout.centre[node] - (layout.size[node, 0] / 2, 0)
            self.lying = np.concatenate([self.lying, np.linspace((x - 24, y), (x, y), 9)])

    def add(self, edge: int, source: int, target: int) -> None:
        """Route an edge between two nodes; later edges avoid its curve and its label."""
        size = self.layout.label_size[edge]
        if source == target:
            curve, label = self._loop(source, size)
        else:
            curve, label = self._best(source, target, size)
        self.curves[edge], self.labels[edge] = curve, label
        self.lying = np.concatenate([self.lying, points(curve)[2:-2]])
        self.boxes = np.concatenate([self.boxes, [[label, size]]])

    def _loop(self, node: int, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A loop above the node; several loops of a node coincide, and their labels are stacked."""
        (x, y), (_, height) = self.layout.centre[node], self.layout.size[node]
        top, foot = y + height / 2, min(9.0, height / 3)
        feet, arms = top - 2, top + LOOP
        curve = np.array([[x - foot, feet], [x - 14, arms], [x + 14, arms], [x + foot, feet]])
        label = np.array([x, top + 0.75 * LOOP + self.over[node] + size[1] / 2])
        self.over[node] += size[1]
        return curve, label

    def _best(self, source: int, target: int, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The cheapest curve, and the cheapest position of the label on it."""
        start, end = self.layout.centre[[source, target]]
        cost, best, at = np.inf, np.zeros((4, 2)), np.zeros(2)
        for bows in self.bows:
            if _bent(bows) >= cost:
                break
            curve = bowed(start, end, bows)
            line = points(curve)
            upward = curve[1:3, 1].mean() > curve[[0, 3], 1].mean()  # below is a bit cheaper
            found = _bent(bows) + _UP * upward + self._through(line, [source, target])
            if found < cost:
                found += self._along(line, [source, target])
            if found < cost:
                fault, position = self._label(self._free(line, [source, target], 0), size)
                if found + fault < cost:
                    cost, best, at = found + fault, curve, position
        return best, at

    def _through(self, line: np.ndarray, ends: list[int]) -> float:
        """The cost of the nodes and labels that a line crosses."""
        nodes = _overlaps(line, _POINT, self.layout.centre, self.layout.size + 2 * _CLEAR)
        nodes[:, ends] = False
        labels = _overlaps(line, _POINT, self.boxes[:, 0], self.boxes[:, 1])
        return _NODE * int(nodes.any(axis=0).sum()) + _ACROSS * int(labels.any(axis=0).sum())

    def _along(self, line: np.ndarray, ends: list[int]) -> float:
        """The cost of running close to other lines, except near the two ends."""
        middle = self._free(line, ends, _FREE)
        return _ALONG * int(_overlaps(middle, _POINT, self.lying, 2 * _NEAR).any(axis=1).sum())

    def _free(self, line: np.ndarray, ends: list[int], around: float) -> np.ndarray:
        """The points of a line that are outside of the nodes at its ends and `around` them."""
        centre, size = self.layout.centre[ends], self.layout.size[ends]
        free = line[~_overlaps(line, _POINT, centre, size + 2 * around).any(axis=1)]
        return free if len(free) else line

    def _label(self, line: np.ndarray, size: np.ndarray) -> tuple[float, np.ndarray]:
        """(cost, position) of the label at the cheapest of some positions on the line."""
        at = line[np.rint(_LABEL_AT * (len(line) - 1)).astype(np.int64)]
        nodes = _overlaps(at, size, self.layout.centre, self.layout.size + _HEAD).sum(axis=1)
        labels = _overlaps(at, size, self.boxes[:, 0], self.boxes[:, 1]).sum(axis=1)
        lines = _overlaps(at, size, self.lying, _POINT).any(axis=1)
        faults = _LABEL * (nodes + labels) + _LINE * lines + np.arange(len(at))
        best = int(np.argmin(faults))
        return float(faults[best]), at[best]


def bowed(start: np.ndarray, end: np.ndarray, bows: tuple[float, float]) -> np.ndarray:
    """float64 [4, 2]: a curve that departs to the left from the straight line, by about `bows` in
    its first and its second half."""
    along = end - start
    left = np.array([-along[1], along[0]]) / max(float(np.hypot(*along)), 1e-9)
    first, second = (left * bow * 4 / 3 for bow in bows)
    return np.stack([start, start + along / 4 + first, end - along / 4 + second, end])


def _bent(bows: tuple[float, float]) -> float:
    """The cost of the shape of a curve; symmetric bows are cheaper than others."""
    return (abs(bows[0]) + abs(bows[1])) / 2 + 0.3 * abs(bows[0] - bows[1])


_BOWS = sorted(((a, b) for a in (0, *_SIDES) for b in (0, *_SIDES)), key=_bent)
_PLAIN = [(a, b) for a, b in _BOWS if a == b]


def _overlaps(
    at: np.ndarray, size: np.ndarray, centre: np.ndarray, extent: np.ndarray
) -> np.ndarray:
    """bool [k, n]: whether a box of this size at each of k positions meets each of n boxes."""
    reach = (size + extent) / 2
    meets = np.abs(at[:, None, 0] - centre[:, 0]) < reach[..., 0]
    meets &= np.abs(at[:, None, 1] - centre[:, 1]) < reach[..., 1]
    return meets
