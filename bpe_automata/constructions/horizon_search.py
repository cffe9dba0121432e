"""What the bounds leave open: after which last ids acceptance is near enough.

An id n is live at level k, behind a boundary or without one, if it leads to a node from which k - 1
ids are enough after n. From a node k ids are enough

    after every last id    if the node accepts, or some id is live behind a boundary
    after r                if some n that r does not forbid is live without one

So a question about some last ids leads to the same question about the ids that may come next:
depth-first, nearest targets first, and no further than whoever asked needs it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from bpe_automata.budget import check
from bpe_automata.constructions.horizon_graph import Graph
from bpe_automata.constructions.memo import BoundedMemo

_no_ids = partial(np.empty, 0, dtype=np.int64)


class _Known(NamedTuple):
    """The last ids after which k ids are enough, and those after which they are not."""

    live: np.ndarray
    dead: np.ndarray


@dataclass
class _Question:
    """After which of the last ids `asked` are k ids enough from a node? open, live: of all that
    lead to the node, those of which it is not known yet, and those after which k are enough; one:
    does one of them do?; waiting: targets that are to be looked at, for how many ids, and are they
    meant behind a boundary? most, ids, behind: for the target that is looked at, that number, the
    ids that lead there, and that."""

    node: int
    k: int
    asked: np.ndarray
    open: np.ndarray
    live: np.ndarray
    one: bool
    waiting: Iterator[tuple[int, int, bool]]
    ids: np.ndarray = field(default_factory=_no_ids)
    behind: bool = False
    most: int = 0

    @property
    def answered(self) -> bool:
        if self.one and (self.live & self.asked).any():
            return True
        return not (self.open & self.asked).any()


class Search:
    """Of a graph. What was found is kept, where the graph's bounds do not say it."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._kept: BoundedMemo[tuple[int, int], _Known] = BoundedMemo(
            2 * graph.source.bytes_of_set
        )

    def live(self, node: int, k: int, asked: np.ndarray) -> np.ndarray:
        """Those of a set of last ids after which k ids are enough from a node."""
        root = self._question(node, k, one=False)
        root.asked = asked
        stack = [] if root.answered else [root]
        while stack:
            check()
            self._look_further(stack)
        return root.live & asked

    def _look_further(self, stack: list[_Question]) -> None:
        """At the next target of the last question."""
        top, graph = stack[-1], self._graph
        top.most, target, top.behind = next(top.waiting, (top.k, -1, False))
        if target < 0:
            self._keep(top, np.zeros_like(top.open), top.open & top.asked)
            stack.pop()
            return
        if graph.lower[target] >= top.most:
            return
        spread = graph.spread(top.node, top.most)
        sides = spread.free if top.behind else spread.bound
        top.ids = graph.ids(top.node, top.most, np.flatnonzero(sides == target))
        if graph.final[target] < top.most:
            goal = graph.goal(target)
            live = top.ids if goal is None else graph.source.outside(top.ids, goal)
            self._lead_on(stack, live)
            return
        question = self._question(target, top.most - 1, one=top.behind)
        live = graph.among(top.ids, question.live)
        if len(live):
            self._lead_on(stack, live)
            if not stack or stack[-1] is not top:
                return
        if not top.behind:
            top.ids = graph.source.following(top.ids, top.open)
        question.asked = graph.reached_by(target, top.ids)
        if len(top.ids) and not question.answered:
            stack.append(question)

    def _lead_on(self, stack: list[_Question], ids: np.ndarray) -> None:
        """Some of the last question's ids are live: what that answers, from the last question to
        the first one; those that are answered go, and those that they asked."""
        answered = len(stack)
        for i in range(len(stack) - 1, -1, -1):
            if not len(ids):
                break
            question, new = stack[i], stack[i].open.copy()
            if question.behind:
                question.open[:] = 0
            else:
                self._graph.source.narrow(ids, question.open)
                new &= ~question.open
            if not new.any():
                break
            question.live |= new
            self._keep(question, new, np.zeros_like(new))
            if question.answered:
                answered = i
            if i > 0:
                ids = self._graph.among(stack[i - 1].ids, new)
        del stack[answered:]

    def _question(self, node: int, k: int, *, one: bool) -> _Question:
        """With what is known of it; nothing is asked yet."""
        graph = self._graph
        everything, goal = graph.universe(node), graph.goal(node)
        nothing = np.zeros_like(everything)
        open_ = everything if goal is None else everything & ~goal
        question = _Question(node, k, nothing, nothing, nothing, one, self._targets(node, k))
        if k < graph.lower[node]:
            return question
        if k >= graph.final[node]:
            question.live = open_
            return question
        question.open, question.live = open_, nothing.copy()
        for most in {graph.near(node, k), k}:
            kept = self._kept.get((node, most))
            if kept is not None:
                question.live |= kept.live
                question.open &= ~kept.live
                if most == k:
                    question.open &= ~kept.dead
        return question

    def _keep(self, question: _Question, live: np.ndarray, dead: np.ndarray) -> None:
        graph, node, k = self._graph, question.node, question.most
        if question.behind and live.any():
            graph.final[node], graph.whole[node] = min(graph.final[node], k), True
            return
        kept, goal = self._kept.get((node, k)), graph.goal(node)
        known = _Known(live, dead) if kept is None else _Known(kept.live | live, kept.dead | dead)
        self._kept.put((node, k), known)
        rest = graph.universe(node) if goal is None else graph.universe(node) & ~goal
        if not (rest & ~known.dead).any():
            graph.lower[node] = max(graph.lower[node], k + 1)
        elif not (rest & ~known.live).any():
            graph.final[node] = min(graph.final[node], k)
        elif not (rest & ~question.live).any():
            graph.final[node] = min(graph.final[node], question.k)

    def _targets(self, node: int, k: int) -> Iterator[tuple[int, int, bool]]:
        """(for how many ids, target, behind a boundary?): what is settled first, then the nearest
        ones."""
        graph, goal = self._graph, self._graph.goal(node)
        near = graph.near(node, k)
        for most in sorted({near, min(near + 1, k), k}):  # with few ids, most lead too far astray
            edges = graph.edges(node, most)
            targets = edges.any[graph.lower[edges.any] < most]
            graph.tighten(targets, most - 1)
            targets = targets[graph.lower[targets] < most]
            behind = set(edges.free.tolist()) if goal is None else set()
            sides, open_ = graph.spread(node, most).bound, graph.final[targets] >= most
            bound = set(sides.tolist())
            n_groups = np.bincount(sides[sides >= 0], minlength=len(graph.keys))[targets]
            order = np.lexsort((graph.hint[targets], np.where(open_, 0, -n_groups), open_))
            for target in targets[order].tolist():
                if target in behind:
                    yield most, target, True
                if target in bound:
                    yield most, target, False
