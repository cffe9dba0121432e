"""Better bounds on how far nodes are from acceptance, without looking at single ids.

chase      one short way to acceptance, found greedily: a bound from above
close      all ways of at most k ids: bounds from both sides, by least distances
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bpe_automata.budget import check
from bpe_automata.constructions.horizon_graph import NEVER, Graph
from bpe_automata.kernels.bits import without
from bpe_automata.kernels.nearest import nearest

_MOST_MET = 2000  # by one chase


@dataclass
class _Step:
    """A node of the way. waiting: nodes that it leads to, nearest first; free: do they stand behind
    a boundary, so that one of them is enough? suspects: packed ids that nothing met so far
    follows; high: the greatest level that was used; last: the node to be settled."""

    node: int
    waiting: Iterator[int]
    free: bool
    suspects: np.ndarray | None = None
    high: int = 0
    last: int = -1


def chase(graph: Graph, root: int) -> None:
    """Lower `final` of the root, and of what is met on the way, to what a greedy search finds:

    1 + final(target)                  for one target that can be behind a boundary
    1 + max of final(target)           for as many targets as it takes until what is dead at the
                                       node is what is dead there in the end
    """
    stack, met = [_begun(graph, root)], {root}
    while stack and len(met) < _MOST_MET:
        check()
        top = stack[-1]
        if top.last >= 0 and graph.final[top.last] < NEVER and _used(graph, top):
            stack.pop()
            continue
        top.last = _next(graph, top, met)
        if top.last < 0:
            if not _turned(graph, top):
                stack.pop()
        elif graph.final[top.last] == NEVER:
            met.add(top.last)
            stack.append(_begun(graph, top.last))


def _begun(graph: Graph, node: int) -> _Step:
    """Where nothing is dead in the end there mostly is a boundary."""
    graph.look(np.array([node]))
    free = bool(graph.whole[node])
    edges = graph.edges(node)
    return _Step(node, _nearest_first(graph, edges.free if free else edges.any), free)


def _turned(graph: Graph, step: _Step) -> bool:
    """Go on without a boundary, if that was not tried."""
    if step.free:
        step.waiting = _nearest_first(graph, graph.edges(step.node).any)
        step.free, step.high = False, 0
        return True
    return False


def _nearest_first(graph: Graph, targets: np.ndarray) -> Iterator[int]:
    order = np.lexsort((graph.final[targets], ~graph.whole[targets], graph.hint[targets]))
    return iter(targets[order].tolist())


def _next(graph: Graph, step: _Step, met: set[int]) -> int:
    """The next target that is settled, or can be; -1: none."""
    for target in step.waiting:
        check()
        if graph.final[target] < NEVER:
            return target
        if target not in met:
            graph.look(np.array([target]))
            if graph.lower[target] < NEVER:
                return target
    return -1


def _used(graph: Graph, step: _Step) -> bool:
    """Take the target that was settled last; is the node settled now?"""
    node, target = step.node, step.last
    goal, reached = graph.goal(target), 1 + int(graph.final[target])
    if step.free and goal is None:
        graph.final[node] = min(graph.final[node], reached)
        return True
    spread = graph.spread(node)
    sides = spread.free if step.free else spread.bound
    ids = graph.ids(node, np.flatnonzero(sides == target))
    ids = ids if goal is None else without(ids, goal)
    if not len(ids):
        return False
    step.high = max(step.high, reached)
    if not step.free and not _narrowed(graph, step, ids):
        return False
    graph.final[node] = min(graph.final[node], step.high)
    return True


def _narrowed(graph: Graph, step: _Step, ids: np.ndarray) -> bool:
    """Is dead now what is dead in the end?"""
    goal = graph.goal(step.node)
    if step.suspects is None:
        step.suspects = graph.universe(step.node)
    if graph.source.narrow(ids, step.suspects) == 0:
        return True
    return goal is not None and bool(np.array_equal(goal, step.suspects))


def close(graph: Graph, roots: np.ndarray, k: int) -> None:
    """Better `lower` and `final` of the roots and of all that is met within k ids of them, as far
    as the bounds say that it may matter."""
    expanded = _within(graph, roots, k)
    edges = [graph.edges(node) for node in expanded.tolist()]
    n = len(graph.keys)
    own = graph.lower.copy()
    own[expanded] = NEVER
    found = nearest(own, *_listed(expanded, [e.any for e in edges]))
    np.maximum(graph.lower, found, out=graph.lower, where=graph.final > 0)
    own = np.where(graph.whole, graph.final, NEVER).astype(np.int32)
    found = nearest(own, *_listed(expanded, [e.free for e in edges]))
    np.minimum(graph.final[:n], found, out=graph.final[:n], where=found < NEVER)


def _listed(nodes: np.ndarray, targets: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    counts = [len(some) for some in targets]
    empty = np.empty(0, dtype=np.int32)
    return np.repeat(nodes, counts).astype(np.int32), np.concatenate([empty, *targets])


def _within(graph: Graph, roots: np.ndarray, k: int) -> np.ndarray:
    """The nodes to be opened: breadth-first from the roots, as long as they are open for the ids
    that are left."""
    seen: set[int] = set()
    opened: list[np.ndarray] = []
    frontier = np.unique(roots)
    for left in range(k, 0, -1):
        check()
        frontier = graph.open(frontier, left)
        graph.tighten(frontier, left)
        for node in graph.open(frontier, left).tolist():
            if graph.final[node] == NEVER:  # one way that is short enough saves all the others
                chase(graph, node)
        frontier = graph.open(frontier, left)
        if not len(frontier):
            break
        seen.update(frontier.tolist())
        opened.append(frontier)
        after = np.concatenate([graph.edges(node).any for node in frontier.tolist()])
        fresh = set(np.unique(after).tolist()) - seen
        frontier = np.array(sorted(fresh), dtype=np.int32)
    return np.concatenate([np.empty(0, dtype=np.int32), *opened])
