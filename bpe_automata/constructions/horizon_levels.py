"""What the bounds leave open: the exact sets of dead ids, level by level.

An id n is live at level k, behind a boundary or without one, if it leads to a node where it is not
in dead_{k-1}. Then

    dead_k(node) = nothing                                  if the node accepts, or some id is live
                                                            behind a boundary
                 = { r : r forbids every n that is live }   otherwise, over n without a boundary
"""

from __future__ import annotations

import numpy as np

from bpe_automata.budget import check
from bpe_automata.constructions.horizon_graph import Graph
from bpe_automata.constructions.memo import BoundedMemo


class Levels:
    """Dead sets of a graph, memoised."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._dead: BoundedMemo[tuple[int, int], np.ndarray] = BoundedMemo(
            graph.source.bytes_of_set
        )

    def dead(self, node: int, k: int) -> np.ndarray | None:
        """dead_k(node); None: nothing."""
        graph = self._graph
        if k < graph.lower[node]:
            return graph.universe(node)
        if k >= graph.final[node]:
            return graph.goal(node)
        found = self._dead.get((node, k))
        if found is not None:
            return found
        self.settle(np.array([node], dtype=np.int32), k)
        return self.dead(node, k)

    def settle(self, roots: np.ndarray, k: int) -> None:
        """Find dead_k of the roots, from those of lower levels that it depends on."""
        for level, nodes in self._needed(roots, k):
            for node in nodes:
                check()
                self._settle(node, level)

    def _needed(self, roots: np.ndarray, k: int) -> list[tuple[int, list[int]]]:
        """(level, nodes), lowest level first."""
        needed = []
        nodes = self._unknown(roots, k)
        while nodes:
            check()
            needed.append((k, nodes))
            k -= 1
            targets = np.concatenate([self._graph.edges(node, k + 1).any for node in nodes])
            nodes = self._unknown(np.unique(targets), k)
        return needed[::-1]

    def _unknown(self, nodes: np.ndarray, k: int) -> list[int]:
        """Better bounds first: a node that is opened asks for all that it leads to."""
        graph = self._graph
        open_ = graph.open(nodes, k).tolist()
        fresh = np.array([n for n in open_ if self._dead.get((n, k)) is None], dtype=np.int32)
        graph.tighten(fresh, k)
        found: list[int] = graph.open(fresh, k).tolist()
        return found

    def _settle(self, node: int, k: int) -> None:
        graph = self._graph
        if not graph.lower[node] <= k < graph.final[node]:
            return  # settled by what the levels below have shown
        found = self._found(node, k)
        if isinstance(found, bool):
            if found:
                graph.final[node], graph.whole[node] = k, True
            else:
                graph.lower[node] = k + 1
            return
        goal = graph.goal(node)
        if goal is not None and np.array_equal(goal, found):
            graph.final[node] = k
        self._dead.put((node, k), found)

    def _found(self, node: int, k: int) -> np.ndarray | bool:
        """dead_k(node); False: everything, True: nothing."""
        graph = self._graph
        edges, bound = graph.edges(node, k), np.unique(graph.spread(node, k).bound)
        for target in edges.free.tolist():
            check()
            if len(self._live(node, target, k, behind=True)):
                return True
        parts = [self._live(node, t, k, behind=False) for t in bound[bound >= 0].tolist()]
        ids = np.concatenate([np.empty(0, dtype=np.int64), *parts])
        if not len(ids):
            return False
        everything = graph.universe(node)
        suspects = everything.copy()
        if graph.source.narrow(ids, suspects) == 0:
            return True
        return suspects if (suspects != everything).any() else False

    def _live(self, node: int, target: int, k: int, *, behind: bool) -> np.ndarray:
        """The ids, behind a boundary or without one, that lead to the target, where they are not
        dead at level k - 1."""
        graph = self._graph
        if k - 1 < graph.lower[target]:
            return np.empty(0, dtype=np.int64)
        spread = graph.spread(node, k)
        sides = spread.free if behind else spread.bound
        ids = graph.ids(node, k, np.flatnonzero(sides == target))
        dead = self.dead(target, k - 1)
        return ids if dead is None else graph.source.outside(ids, dead)
