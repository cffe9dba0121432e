"""What the bounds leave open: after which last ids acceptance is near enough.

An id n is live at level k, with or without a boundary before it, if it leads to a configuration
from which k - 1 ids are enough after n. From a configuration k ids are enough

    after every r    if the configuration accepts, or some n is live behind a boundary
    after r          if some n is live without a boundary, and may follow r

So a question about some last ids leads to the same question about the ids that may come next:
depth-first, nearest targets first, and no further than whoever asked needs it. Ids that led on
elsewhere are tried before a configuration is opened: most configurations of a mask are near enough
by the same few.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np

from bpe_automata._budget import check
from bpe_automata._constructions.horizon_graph import NEVER, Graph
from bpe_automata._sharing import BYTES


class _Known(NamedTuple):
    """The last ids after which so many ids are enough, and those after which they are not."""

    live: np.ndarray
    dead: np.ndarray


class _Words(NamedTuple):
    """A set of few ids: the words of it that are not 0, and where they stand."""

    at: np.ndarray
    words: np.ndarray


_NO_WORDS = _Words(np.empty(0, dtype=np.int64), np.empty(0, dtype=bool))


class _Kept(NamedTuple):
    """The same as `_Known`. Mostly small: what is live or dead for all ids goes into the bounds."""

    live: _Words = _NO_WORDS
    dead: _Words = _NO_WORDS

    @property
    def n_bytes(self) -> int:
        return 16 * (len(self.live.at) + len(self.dead.at)) + _BYTES_OF_ENTRY


class _Visit(NamedTuple):
    """A target that is looked at: with how many ids (the target's and those after it), by which ids
    it is reached (int64), and whether they stand behind a boundary."""

    target: int
    level: int
    behind: bool
    via: np.ndarray


_REMEMBERED = 8  # ids, for each number of ids that are left
# By them, before a configuration is opened: more where they help.
_FEWEST_STEPS, _MOST_STEPS = 32, 64
_BYTES_OF_ENTRY = 1000  # of Python's objects, about
_NOWHERE = _Visit(-1, 0, False, np.empty(0, dtype=np.int64))


@dataclass
class _Question:
    """After which last ids are k ids enough from a configuration?

    asked: those that are asked about; never written to
    unknown, live: last ids, asked or not, of which it is not known, and after which they are enough
    any_will_do: is it enough to know one of them?
    targets: what is still to be looked at
    visit: what is looked at now"""

    configuration: int
    k: int
    asked: np.ndarray
    unknown: np.ndarray
    live: np.ndarray
    any_will_do: bool
    targets: Iterator[_Visit]
    visit: _Visit = _NOWHERE

    @property
    def answered(self) -> bool:
        if self.any_will_do and (self.live & self.asked).any():
            return True
        return not (self.unknown & self.asked).any()


class Search:
    """Answers questions about one graph, and keeps what its bounds cannot say."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._kept: dict[tuple[int, int], _Kept] = {}
        self._n_bytes = 0
        self._led_on: dict[int, list[int]] = {}
        self._steps = _MOST_STEPS

    def live(self, configuration: int, k: int, asked: np.ndarray) -> np.ndarray:
        """Those of a set of last ids after which k ids are enough from a configuration."""
        level, step, graph, known = k, 1, self._graph, self._known(configuration, k)
        if not self._still_unknown(configuration, k, asked & ~known.live & ~known.dead).any():
            return asked & ~known.dead
        if (
            graph.source.near(graph.keys[configuration]) == NEVER
        ):  # nothing says which targets are near
            level = min(k, graph.near(configuration, k) + 1)
        while True:
            known = self._known(configuration, level)
            root = self._question(configuration, level, asked, known, any_will_do=False)
            stack = [] if root.answered else [root]
            while stack:
                check()
                self._go_on(stack)
            if level == k or not (asked & ~root.live).any():
                return root.live & asked
            level, step = min(k, level + step), 2 * step

    def _go_on(self, stack: list[_Question]) -> None:
        """Take the last question one step on: look at its next target, or close it."""
        top, graph = stack[-1], self._graph
        top.visit = visit = next(top.targets, _NOWHERE)
        if visit is _NOWHERE:  # whatever may follow what is asked has been looked at
            self._keep_dead(top, top.unknown & top.asked)
            stack.pop()
        elif graph.final[visit.target] < visit.level:
            goal = graph.goal(visit.target)
            live = visit.via if goal is None else graph.source.outside(visit.via, goal)
            self._report(stack, live)
        elif graph.lower[visit.target] < visit.level:
            self._ask(stack, top, visit)

    def _ask(self, stack: list[_Question], top: _Question, visit: _Visit) -> None:
        """After which of the ids by which a target is reached is it near enough?"""
        graph, level = self._graph, visit.level - 1
        known = self._known(visit.target, level)
        live = graph.among(visit.via, known.live)
        if len(live):
            self._report(stack, live)
            if not stack or stack[-1] is not top:
                return
        via, settled = visit.via, known.live | known.dead
        asked = graph.reached_by(visit.target, via)
        if not (asked & ~settled).any():  # mostly
            return
        if not visit.behind:
            via = graph.source.following(via, top.unknown)
            top.visit = visit._replace(via=via)
            if not len(via) or not (graph.reached_by(visit.target, via) & ~settled).any():
                return
            # About all at once: others will come by other ids, and mostly all have one answer.
            asked = graph.universe(visit.target)
        unknown = asked & ~settled
        shown = unknown & ~self._still_unknown(visit.target, level, unknown)
        if shown.any():
            live = graph.among(via, shown)
            if len(live):
                self._report(stack, live)
                if not stack or stack[-1] is not top:
                    return
            known = self._known(visit.target, level)
            reached = graph.reached_by(visit.target, via)
            if not (reached & ~known.live & ~known.dead).any():
                return
        stack.append(self._question(visit.target, level, asked, known, any_will_do=visit.behind))

    def _report(self, stack: list[_Question], ids: np.ndarray) -> None:
        """These ids of the last question's visit are live. What does that make live there, and so
        in the question before it, and so on? Those that are answered are dropped, and all that they
        asked."""
        n_left = len(stack)
        for i in range(len(stack) - 1, -1, -1):
            if not len(ids):
                break
            question, new = stack[i], stack[i].unknown.copy()
            self._remember(question.visit.level, int(ids[0]))
            if question.visit.behind:
                question.unknown[:] = 0
            else:
                self._graph.source.narrow(ids, question.unknown)
                new &= ~question.unknown
            if not new.any():
                break
            question.live |= new
            self._keep_live(question, new)
            if question.answered:
                n_left = i
            if i > 0:
                ids = self._graph.among(stack[i - 1].visit.via, new)
        del stack[n_left:]

    # ------------------------------------------------------------ what led on elsewhere

    def _remember(self, k: int, token: int) -> None:
        """The last that helped are the first to be tried."""
        led_on = self._led_on.setdefault(k, [])
        if token in led_on:
            led_on.remove(token)
        led_on.insert(0, token)
        del led_on[_REMEMBERED:]

    def _still_unknown(self, configuration: int, k: int, asked: np.ndarray) -> np.ndarray:
        """`_not_shown`, in as many steps as have been worth it."""
        steps = [self._steps]
        rest = self._not_shown(configuration, k, asked, steps)
        if steps[0] < self._steps and rest.any():
            self._steps = max(self._steps // 2, _FEWEST_STEPS)
        elif steps[0] < self._steps:
            self._steps = min(2 * self._steps, _MOST_STEPS)
        return rest

    def _not_shown(
        self, configuration: int, k: int, asked: np.ndarray, steps: list[int]
    ) -> np.ndarray:
        """Those of a set of last ids of which remembered ids do not show that k are enough after
        them. steps: how many may still be made, one number, counted down."""
        graph, asked = self._graph, self._not_known(configuration, k, asked)
        if not self._hopeful(configuration, k, asked):
            return asked
        ways: list[tuple[int, int, bool]] = []
        led_on = (self._led_on.get(level, []) for level in self._levels(configuration, k))
        for token in [*dict.fromkeys(chain.from_iterable(led_on))][: steps[0]]:
            steps[0] -= 1
            free, bound = graph.step(configuration, token)
            ways += [(token, free, True)] if free >= 0 else []
            ways += [(token, bound, False)] if bound >= 0 else []
        for further in (False, True):  # most lead to where it is known
            for token, after, behind in ways:
                rest = self._not_known(after, k - 1, graph.reached_by(after, np.array([token])))
                if further and rest.any():
                    rest = self._not_shown(after, k - 1, rest, steps)
                if rest.any():
                    continue
                self._remember(graph.near(configuration, k), token)
                if behind:
                    graph.final[configuration], graph.whole[configuration] = (
                        min(graph.final[configuration], k),
                        True,
                    )
                    return np.zeros_like(asked)
                rest = asked.copy()
                graph.source.narrow(np.array([token]), rest)
                self._add_live(configuration, k, asked & ~rest)
                asked = rest
                if not asked.any():
                    return asked
        return asked

    def _hopeful(self, configuration: int, k: int, asked: np.ndarray) -> bool:
        """Are there some of which it is not known that k ids are too few after them?"""
        graph, kept = self._graph, self._kept.get((configuration, k))
        if not graph.lower[configuration] <= k < graph.final[configuration]:
            return False  # it is known of all
        return bool((asked if kept is None else _without(asked, kept.dead)).any())

    def _not_known(self, configuration: int, k: int, asked: np.ndarray) -> np.ndarray:
        """Those of a set of last ids of which it is not known that k ids are enough after them."""
        graph = self._graph
        if graph.final[configuration] <= k:
            goal = graph.goal(configuration)
            return np.zeros_like(asked) if goal is None else asked & goal
        kept = self._kept.get((configuration, k))
        return asked if kept is None else _without(asked, kept.live)

    # ------------------------------------------------------------ what is known

    def _question(
        self, configuration: int, k: int, asked: np.ndarray, known: _Known, *, any_will_do: bool
    ) -> _Question:
        unknown = self._graph.universe(configuration) & ~known.live & ~known.dead
        return _Question(
            configuration,
            k,
            asked,
            unknown,
            known.live,
            any_will_do,
            self._targets(configuration, k),
        )

    def _known(self, configuration: int, k: int) -> _Known:
        """`live` is a new set; `dead` may be shared, and is not written to."""
        graph = self._graph
        everything, goal = graph.universe(configuration), graph.goal(configuration)
        nothing = np.zeros_like(everything)
        if k < graph.lower[configuration]:
            return _Known(nothing, everything)
        dead = nothing if goal is None else goal
        if k >= graph.final[configuration]:
            return _Known(everything & ~dead, dead)
        live = nothing.copy()
        for level in self._levels(configuration, k):
            kept = self._kept.get((configuration, level))
            if kept is not None:
                live[kept.live.at] |= kept.live.words
                if level == k:
                    dead = _with(dead, kept.dead)
        return _Known(live, dead)

    def _keep_live(self, question: _Question, new: np.ndarray) -> None:
        """What is complete goes into the bounds."""
        graph, configuration, level = self._graph, question.configuration, question.visit.level
        if question.visit.behind:
            graph.final[configuration] = min(graph.final[configuration], level)
            graph.whole[configuration] = True
            return
        left = self._add_live(configuration, level, new)
        if left and not (self._may_accept(configuration) & ~question.live).any():
            graph.final[configuration] = min(graph.final[configuration], question.k)

    def _add_live(self, configuration: int, k: int, new: np.ndarray) -> bool:
        """Is some last id left of which it is not known?"""
        graph = self._graph
        kept = self._kept.get((configuration, k), _Kept())
        live = _with(new, kept.live)
        if not (self._may_accept(configuration) & ~live).any():
            graph.final[configuration] = min(graph.final[configuration], k)
            return False
        self._keep(configuration, k, kept._replace(live=_words_of(live)))
        return True

    def _keep_dead(self, question: _Question, new: np.ndarray) -> None:
        graph, configuration, k = self._graph, question.configuration, question.k
        kept = self._kept.get((configuration, k), _Kept())
        dead = _with(new, kept.dead)
        if not (self._may_accept(configuration) & ~dead).any():
            graph.lower[configuration] = max(graph.lower[configuration], k + 1)
        else:
            self._keep(configuration, k, kept._replace(dead=_words_of(dead)))

    def _may_accept(self, configuration: int) -> np.ndarray:
        """The set of ids after which the configuration accepts some time, as far as is known."""
        everything, goal = self._graph.universe(configuration), self._graph.goal(configuration)
        return everything if goal is None else everything & ~goal

    def _keep(self, configuration: int, k: int, known: _Kept) -> None:
        """What was kept first goes first, where there is too much of it."""
        old = self._kept.pop((configuration, k), None)
        self._n_bytes -= 0 if old is None else old.n_bytes
        self._kept[configuration, k] = known
        self._n_bytes += known.n_bytes
        while self._n_bytes > BYTES:
            self._n_bytes -= self._kept.pop(next(iter(self._kept))).n_bytes

    # ------------------------------------------------------------ where to look

    def _levels(self, configuration: int, k: int) -> list[int]:
        """With about as many ids as it takes, first: with more, most targets are detours."""
        near = self._graph.near(configuration, k)
        return sorted({near, min(near + 1, k), k})

    def _targets(self, configuration: int, k: int) -> Iterator[_Visit]:
        """What is settled first, then what is nearest."""
        graph, goal = self._graph, self._graph.goal(configuration)
        for level in self._levels(configuration, k):
            edges = graph.edges(configuration, level)
            targets = edges.any[graph.lower[edges.any] < level]
            graph.tighten(targets, level - 1)
            targets = targets[graph.lower[targets] < level]
            sides = graph.spread(configuration, level)
            far = graph.final[targets] >= level
            bound, n_groups = np.unique(sides.bound, return_counts=True)
            bound, n_groups = np.append(bound, NEVER), np.append(n_groups, 0)
            at = np.searchsorted(bound, targets)
            size = np.where(bound[at] == targets, n_groups[at], 0)
            order = np.lexsort((graph.hint[targets], np.where(far, 0, -size), far))
            behind = set(edges.free.tolist()) if goal is None else set()
            for target, n in zip(targets[order].tolist(), size[order].tolist(), strict=True):
                if target in behind:
                    yield self._visit(configuration, target, level, behind=True)
                if n:
                    yield self._visit(configuration, target, level, behind=False)

    def _visit(self, configuration: int, target: int, level: int, *, behind: bool) -> _Visit:
        spread = self._graph.spread(configuration, level)
        groups = np.flatnonzero((spread.free if behind else spread.bound) == target)
        return _Visit(target, level, behind, self._graph.ids(configuration, level, groups))


def _words_of(ids: np.ndarray) -> _Words:
    at = np.flatnonzero(ids)
    return _Words(at, ids[at])


def _with(ids: np.ndarray, more: _Words) -> np.ndarray:
    """A set with more ids, new."""
    found = ids.copy()
    found[more.at] |= more.words
    return found


def _without(ids: np.ndarray, fewer: _Words) -> np.ndarray:
    """A set without some ids, new."""
    found = ids.copy()
    found[fewer.at] &= ~fewer.words
    return found
