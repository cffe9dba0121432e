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
from bpe_automata.kernels.nearest import nearest

_MOST_IN_VAIN = 500  # nodes met by chases that found nothing, one after the other


@dataclass
class _Step:
    """A node of the way, with `left` ids left. stages: what is to be tried, (behind a boundary, so
    that one target is enough?, how many ids may be left before it); waiting: the targets of the
    first of them, nearest first; suspects: the set of ids that nothing met so far may follow; high:
    the greatest level that was used for that; last: the target to be settled."""

    node: int
    left: int
    stages: list[tuple[bool, int]]
    waiting: Iterator[int]
    suspects: np.ndarray | None = None
    high: int = 0
    last: int = -1


def chase_closely(graph: Graph, root: int, k: int) -> None:
    """`chase` with few ids first: those that lead astray are too far then, and left out."""
    near = graph.near(root, k)
    for most in sorted({int(graph.lower[root]) + 1, near, near + 1, k}):
        chase(graph, root, min(most, k))


def chase(graph: Graph, root: int, k: int) -> None:
    """Lower `final` of the root to k or less, and of what is met on the way, if a greedy search
    finds

    1 + final(target)                  for one target that can be behind a boundary
    1 + max of final(target)           for as many targets as it takes until what is dead at the
                                       node is what is dead there in the end
    """
    tried = graph.chased
    if graph.final[root] <= k or tried.get(root, 0) >= k or graph.in_vain > _MOST_IN_VAIN:
        return
    tried[root] = k
    stack, n_met = [_begun(graph, root, k)], 1
    while stack and n_met < 64 + 3 * k:
        check()
        top = stack[-1]
        if top.last >= 0 and graph.final[top.last] < top.left and _used(graph, top):
            stack.pop()
            continue
        top.last = _next(graph, top)
        if top.last < 0:
            if not _turned(graph, top):
                stack.pop()
        elif graph.final[top.last] >= top.left:
            n_met += 1
            tried[top.last] = top.left - 1
            stack.append(_begun(graph, top.last, top.left - 1))
    graph.in_vain = 0 if graph.final[root] <= k else graph.in_vain + n_met


def _begun(graph: Graph, node: int, k: int) -> _Step:
    """Where nothing is dead in the end there mostly is a boundary; and targets that are no detour
    come first, for ids that are left over are needed most near the end."""
    graph.look(np.array([node]))
    sides = (True, False) if graph.whole[node] else (False,)
    stages = [(behind, most) for most in sorted({graph.near(node, k), k}) for behind in sides]
    return _Step(node, k, stages, _nearest_first(graph, node, k, stages[0]))


def _turned(graph: Graph, step: _Step) -> bool:
    """Go on to the next stage, if there is one."""
    del step.stages[0]
    if step.stages:
        step.waiting = _nearest_first(graph, step.node, step.left, step.stages[0])
    return bool(step.stages)


def _nearest_first(graph: Graph, node: int, k: int, stage: tuple[bool, int]) -> Iterator[int]:
    behind, most = stage
    edges = graph.edges(node, most)
    targets = edges.free if behind else edges.any
    targets = targets[graph.lower[targets] < most]
    graph.tighten(targets, most - 1)
    targets = targets[graph.lower[targets] < most]
    order = np.lexsort((graph.final[targets], ~graph.whole[targets], graph.hint[targets]))
    return iter(targets[order].tolist())


def _next(graph: Graph, step: _Step) -> int:
    """The next target that is settled, or can be; -1: none."""
    for target in step.waiting:
        check()
        if graph.final[target] < step.left:
            return target
        if graph.chased.get(target, 0) < step.left - 1:
            graph.look(np.array([target]))
            if graph.lower[target] < step.left:
                return target
    return -1


def _used(graph: Graph, step: _Step) -> bool:
    """Take the target that was settled last; is the node settled now?"""
    node, target, (behind, most) = step.node, step.last, step.stages[0]
    goal, reached = graph.goal(target), 1 + int(graph.final[target])
    if not behind or goal is not None:
        spread = graph.spread(node, most)
        sides = spread.free if behind else spread.bound
        ids = graph.ids(node, most, np.flatnonzero(sides == target))
        ids = ids if goal is None else graph.source.outside(ids, goal)
        if not len(ids):
            return False
        if not behind:
            step.high = reached = max(step.high, reached)
            if not _narrowed(graph, step, ids):
                return False
    graph.final[node] = min(graph.final[node], reached)
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
    expanded, left = _within(graph, roots, k)
    opened = [*zip(expanded.tolist(), left.tolist(), strict=True)]
    edges = [graph.edges(node, k) for node, k in opened]
    n = len(graph.keys)
    own = graph.lower.copy()
    # What was left out of the edges takes more ids than were left.
    own[expanded] = [min(graph.opened(node, k) + 1, NEVER) for node, k in opened]
    found = nearest(own, *_listed(expanded, [e.any for e in edges]))
    np.maximum(graph.lower, found, out=graph.lower, where=graph.final > 0)
    own = np.where(graph.whole, graph.final, NEVER).astype(np.int32)
    found = nearest(own, *_listed(expanded, [e.free for e in edges]))
    np.minimum(graph.final[:n], found, out=graph.final[:n], where=found < NEVER)


def _listed(nodes: np.ndarray, targets: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    counts = [len(some) for some in targets]
    empty = np.empty(0, dtype=np.int32)
    return np.repeat(nodes, counts).astype(np.int32), np.concatenate([empty, *targets])


def _within(graph: Graph, roots: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The nodes to be opened, and the ids left there: breadth-first from the roots, as long as they
    are open for the ids that are left."""
    seen: set[int] = set()
    opened: list[np.ndarray] = []
    frontier = np.unique(roots)
    for left in range(k, 0, -1):
        check()
        frontier = graph.open(frontier, left)
        graph.tighten(frontier, left)
        frontier = graph.open(frontier, left)
        for node in frontier[graph.lower[frontier] < left].tolist():
            chase(graph, node, left)  # one way that is short enough saves all the others
        frontier = graph.open(frontier, left)
        if not len(frontier):
            break
        seen.update(frontier.tolist())
        opened.append(frontier)
        after = np.concatenate([graph.edges(node, left).any for node in frontier.tolist()])
        fresh = set(np.unique(after).tolist()) - seen
        frontier = np.array(sorted(fresh), dtype=np.int32)
    counts = [len(some) for some in opened]
    left_at = np.repeat(k - np.arange(len(opened)), counts)
    return np.concatenate([np.empty(0, dtype=np.int32), *opened]), left_at
