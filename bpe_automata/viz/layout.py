"""A small layered layout: where the nodes of a drawing stand.

Ranks go from left to right: without cycles by the longest way from the start, so every edge leads
to the right, and a drawing reads like the texts that it stands for; with cycles by the shortest
way, so an edge leads at most one rank forward. Within a rank, the order comes from barycentre
sweeps (Sugiyama, Tagawa and Toda 1981), and the heights from the least squares that keep this order
and the distances. The same drawing gives the same layout. Units: points, for text of 10 points; y
goes up.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from bpe_automata.viz.drawing import Drawing, Edge, Node, circles
from bpe_automata.viz.visible import columns, printable, wrapped

LINE = 12.5  # height of a line of text of 10 points
_WIDE, _SLIM, _OTHER = 9.6, 4.0, 6.4  # about the widths of characters of 10 points
_WIDE_ONES, _SLIM_ONES = frozenset("mwMW@%…→"), frozenset(" .,:;!|'‘’`\"()[]/\\ijlftrI-")
LOOP = 26.0  # how far a self-loop rises over its node
_CIRCLE, _SPACE, _ARROW, _SWEEPS = 26.0, 16.0, 34.0, 12


@dataclass(frozen=True)
class Places:
    """rank: int64 [n], 0 at a start. centre, size: float64 [n, 2], of the nodes (width, height).
    label_size: float64 [m, 2], of the labels of the edges. round: whether nodes are circles."""

    rank: np.ndarray
    centre: np.ndarray
    size: np.ndarray
    label_size: np.ndarray
    round: bool


def place(drawing: Drawing) -> Places:
    """Ranks and coordinates; no two nodes overlap."""
    n = len(drawing.nodes)
    round_ = circles(drawing)
    size = np.array([_node_size(node, round_) for node in drawing.nodes]).reshape(n, 2)
    label_size = np.array([_label_size(edge) for edge in drawing.edges]).reshape(-1, 2)
    rank = ranks(drawing)
    layers = _ordered(drawing, rank)
    centre = np.zeros((n, 2))
    centre[:, 0] = _across(drawing, rank, size, label_size)[rank] if n else 0
    centre[:, 1] = _heights(drawing, layers, _gaps(drawing, layers, size, label_size))
    return Places(rank, centre, size, label_size, round_)


def ranks(drawing: Drawing) -> np.ndarray:
    """int64 [n]: see above; a node that no start reaches is taken for one more."""
    longest = _longest(drawing)
    return _shortest(drawing) if longest is None else longest


def _longest(drawing: Drawing) -> np.ndarray | None:
    """int64 [n]: edges on the longest way to each node; None if there is a cycle. Self-loops do not
    count."""
    edges = [(e.source, e.target) for e in drawing.edges if e.source != e.target]
    entering = [0] * len(drawing.nodes)
    for _, target in edges:
        entering[target] += 1
    rank = np.zeros(len(drawing.nodes), np.int64)
    ready = [node for node, count in enumerate(entering) if not count]
    for node in ready:  # grows while we go
        for target in (q for p, q in edges if p == node):
            rank[target] = max(rank[target], rank[node] + 1)
            entering[target] -= 1
            if not entering[target]:
                ready.append(target)
    return rank if len(ready) == len(drawing.nodes) else None


def _shortest(drawing: Drawing) -> np.ndarray:
    """int64 [n]: steps from the nearest start."""
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
    """float64 [n]: what a node's self-loops, with their labels, need above it."""
    rise = np.zeros(len(drawing.nodes))
    for edge, size in zip(drawing.edges, label_size, strict=True):
        if edge.source == edge.target:
            rise[edge.source] += LOOP * 0.75 * (rise[edge.source] == 0) + size[1]
    return rise


def _ordered(drawing: Drawing, rank: np.ndarray) -> list[list[int]]:
    """The nodes of each rank from the top: the best of some sweeps, then of some swaps."""
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
    """Each layer sorted by the mean place of the neighbours in the layer before it."""
    place = {node: float(i) for layer in layers for i, node in enumerate(layer)}
    step, layers = -1 if forward else 1, list(layers)
    for r in range(len(layers))[::-step]:
        mean: dict[int, float] = {}
        for node in layers[r]:
            seen = [place[other] for other in near[node] if rank[other] == r + step]
            mean[node] = float(np.mean(seen)) if seen else place[node]
        layers[r] = sorted(layers[r], key=mean.__getitem__)
        place |= {node: float(i) for i, node in enumerate(layers[r])}
    return layers


def _swapped(layers: list[list[int]], near: list[list[int]]) -> list[list[int]]:
    """Neighbours within a rank change places as long as that helps."""
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
    """Pairs of edges between neighbouring ranks that cross, and nodes that an edge within a rank
    must go around (they count double, as such an edge stands twice in `near`)."""
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
    """The x of each rank: between two ranks there is room for the labels."""
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
    """For each rank, how far each node must be over the next: room for loops and labels."""
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
    """float64 [n]: y, near the mean of the neighbours."""
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
    """The heights nearest to `wanted` (least squares) of which each is lower than the one before
    by at least `apart`: isotonic regression by pooling."""
    offset = np.concatenate([[0.0], np.cumsum(apart)])
    pools: list[tuple[float, int]] = []
    for value in -wanted - offset:  # to be made ascending
        pools.append((float(value), 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (a, n), (b, k) = pools[-2:]
            pools[-2:] = [((a * n + b * k) / (n + k), n + k)]
    return -(np.repeat([p for p, _ in pools], [n for _, n in pools]) + offset)
