"""How the edges of a placed drawing run: one cubic curve each, and where its label stands.

For each edge a few bows are tried, flat ones first; the cheapest is taken, where it costs to run
through a node, to put the label on something, and to run along another edge. Where there are many
edges, fewer bows are tried, so that the time stays about the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bpe_automata.viz.drawing import Drawing
from bpe_automata.viz.layout import LOOP, Places

_T = np.linspace(0, 1, 33)
_BASIS = np.stack([(1 - _T) ** 3, 3 * _T * (1 - _T) ** 2, 3 * _T**2 * (1 - _T), _T**3], axis=1)
_LABEL_AT = np.array([0.5, 0.43, 0.57, 0.36, 0.64, 0.29, 0.71, 0.22, 0.78])  # the middle first
_SIDES = tuple(side * bow for bow in (14, 28, 46, 70, 105, 155, 230, 330) for side in (-1, 1))
# What faults cost, in points of bow: a line through a node, across a label, beside another line
# (for each of its points), above instead of below; a label on a node or label, or on a line.
_NODE, _ACROSS, _ALONG, _UP, _LABEL, _LINE = 300.0, 50.0, 10.0, 3.0, 500.0, 25.0
# Points: around nodes, between edges, around the ends of an edge, where others may be close.
_CLEAR, _NEAR, _FREE = 5.0, np.array([7.0, 7.0]), 16.0
_HEAD = np.array([18.0, 6.0])  # a label keeps off the heads of arrows
_POINT = np.zeros(2)
_MANY = 70  # edges: with more, only plain bows are tried


@dataclass(frozen=True)
class Routes:
    """curves: float64 [m, 4, 2], control points from centre to centre. labels: float64 [m, 2],
    the centres of the labels."""

    curves: np.ndarray
    labels: np.ndarray


def points(curve: np.ndarray) -> np.ndarray:
    """float64 [33, 2] on a cubic curve."""
    return _BASIS @ curve


def route(drawing: Drawing, places: Places) -> Routes:
    """Self-loops first, which have no choice, then the edges forward, then those that go back."""
    m = len(drawing.edges)
    router = _Router(places, m)
    span = [int(places.rank[e.target] - places.rank[e.source]) for e in drawing.edges]
    order = sorted(range(m), key=lambda i: (span[i] != 1, abs(span[i]), i))
    for i in sorted(order, key=lambda i: drawing.edges[i].source != drawing.edges[i].target):
        router.add(i, drawing.edges[i].source, drawing.edges[i].target)
    return Routes(router.curves, router.labels)


class _Router:
    """The edges that already lie, and the choice of the next one."""

    def __init__(self, places: Places, n_edges: int) -> None:
        self.places, self.bows = places, _BOWS if n_edges <= _MANY else _PLAIN
        self.curves, self.labels = np.zeros((n_edges, 4, 2)), np.zeros((n_edges, 2))
        self.lying = np.zeros((0, 2))  # points of the curves so far
        self.boxes = np.zeros((0, 2, 2))  # centre and size of the labels so far
        self.over = np.zeros(len(places.rank))  # what stands above each node: its loops
        for node in np.flatnonzero(places.rank == 0):  # the arrow into a start
            x, y = places.centre[node] - (places.size[node, 0] / 2, 0)
            self.lying = np.concatenate([self.lying, np.linspace((x - 24, y), (x, y), 9)])

    def add(self, edge: int, source: int, target: int) -> None:
        """Lay the curve and the label of an edge between two nodes; later ones keep off them."""
        size = self.places.label_size[edge]
        if source == target:
            curve, label = self._loop(source, size)
        else:
            curve, label = self._best(source, target, size)
        self.curves[edge], self.labels[edge] = curve, label
        self.lying = np.concatenate([self.lying, points(curve)[2:-2]])
        self.boxes = np.concatenate([self.boxes, [[label, size]]])

    def _loop(self, node: int, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Above the node; where it has several, one loop with their labels above one another."""
        (x, y), (_, height) = self.places.centre[node], self.places.size[node]
        top, foot = y + height / 2, min(9.0, height / 3)
        feet, arms = top - 2, top + LOOP
        curve = np.array([[x - foot, feet], [x - 14, arms], [x + 14, arms], [x + foot, feet]])
        label = np.array([x, top + 0.75 * LOOP + self.over[node] + size[1] / 2])
        self.over[node] += size[1]
        return curve, label

    def _best(self, source: int, target: int, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The cheapest curve, and the cheapest place for the label on it."""
        start, end = self.places.centre[[source, target]]
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
                fault, place = self._label(self._free(line, [source, target], 0), size)
                if found + fault < cost:
                    cost, best, at = found + fault, curve, place
        return best, at

    def _through(self, line: np.ndarray, ends: list[int]) -> float:
        """What it costs that a line runs through nodes and labels."""
        nodes = _overlaps(line, _POINT, self.places.centre, self.places.size + 2 * _CLEAR)
        nodes[:, ends] = False
        labels = _overlaps(line, _POINT, self.boxes[:, 0], self.boxes[:, 1])
        return _NODE * int(nodes.any(axis=0).sum()) + _ACROSS * int(labels.any(axis=0).sum())

    def _along(self, line: np.ndarray, ends: list[int]) -> float:
        """What it costs that a line runs beside others, but for what is near its own ends."""
        middle = self._free(line, ends, _FREE)
        return _ALONG * int(_overlaps(middle, _POINT, self.lying, 2 * _NEAR).any(axis=1).sum())

    def _free(self, line: np.ndarray, ends: list[int], around: float) -> np.ndarray:
        """The points of a line that are not in the nodes at its ends, nor so near to them."""
        centre, size = self.places.centre[ends], self.places.size[ends]
        free = line[~_overlaps(line, _POINT, centre, size + 2 * around).any(axis=1)]
        return free if len(free) else line

    def _label(self, line: np.ndarray, size: np.ndarray) -> tuple[float, np.ndarray]:
        """What the label costs at the best of some places on the line, and that place."""
        at = line[np.rint(_LABEL_AT * (len(line) - 1)).astype(np.int64)]
        nodes = _overlaps(at, size, self.places.centre, self.places.size + _HEAD).sum(axis=1)
        labels = _overlaps(at, size, self.boxes[:, 0], self.boxes[:, 1]).sum(axis=1)
        lines = _overlaps(at, size, self.lying, _POINT).any(axis=1)
        faults = _LABEL * (nodes + labels) + _LINE * lines + np.arange(len(at))
        best = int(np.argmin(faults))
        return float(faults[best]), at[best]


def bowed(start: np.ndarray, end: np.ndarray, bows: tuple[float, float]) -> np.ndarray:
    """float64 [4, 2]: a curve that swings out to the left of the straight line, about so far in
    its first and in its second half."""
    along = end - start
    left = np.array([-along[1], along[0]]) / max(float(np.hypot(*along)), 1e-9)
    first, second = (left * bow * 4 / 3 for bow in bows)
    return np.stack([start, start + along / 4 + first, end - along / 4 + second, end])


def _bent(bows: tuple[float, float]) -> float:
    """What the shape of a curve costs: plain bows are cheaper than others."""
    return (abs(bows[0]) + abs(bows[1])) / 2 + 0.3 * abs(bows[0] - bows[1])


_BOWS = sorted(((a, b) for a in (0, *_SIDES) for b in (0, *_SIDES)), key=_bent)
_PLAIN = [(a, b) for a, b in _BOWS if a == b]


def _overlaps(
    at: np.ndarray, size: np.ndarray, centre: np.ndarray, extent: np.ndarray
) -> np.ndarray:
    """bool [k, n]: whether a box of this size at each of k places meets each of n boxes."""
    reach = (size + extent) / 2
    meets = np.abs(at[:, None, 0] - centre[:, 0]) < reach[..., 0]
    meets &= np.abs(at[:, None, 1] - centre[:, 1]) < reach[..., 1]
    return meets
