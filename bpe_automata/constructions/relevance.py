"""Relevance: which ids keep acceptance within reach, exactly and only where visited.

Whether acceptance can be reached after an id r depends on where r leads, a node (place, set), and
on r itself only through the pairs that r forbids. If a boundary can come at the node, or the text
can end there, every r is relevant. Otherwise the next id n stands in the same pretoken, and

    dead(node) = { r : every n that leads on from the node is forbidden after r }

    n leads on from the node  iff  n leads to a node where n is not dead       (least fixpoint)

So dead(node) is the intersection, over the n that lead on, of the ids that forbid n. A few n nearly
always make it empty; then the rest of the node is never looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from bpe_automata.constructions.geometry import Geometry
from bpe_automata.constructions.memo import BoundedMemo
from bpe_automata.constructions.product_tables import ProductTables
from bpe_automata.kernels.bits import clear_bits, has, members, set_bits

Node = tuple[int, int]

_SAMPLE = 24  # ids tried against all suspects before the few suspects left are tried one by one


class Row(NamedTuple):
    """free, bound: packed int32 ids, those with and without a boundary at the joint."""

    free: np.ndarray
    bound: np.ndarray


@dataclass
class _Open:
    """A node whose dead set is being found.

    suspects: packed ids that no id seen so far follows; leads: packed ids known to lead on;
    waiting: (node, ids) still to be settled; on_cycle: some of them were being found themselves.
    """

    node: Node
    suspects: np.ndarray
    leads: np.ndarray
    waiting: list[tuple[Node, np.ndarray]]
    on_cycle: list[tuple[Node, np.ndarray]] = field(default_factory=list)


class Relevance:
    """Rows and dead sets of one product, memoised."""

    def __init__(self, tables: ProductTables, geometry: Geometry) -> None:
        self._tables, self._geometry = tables, geometry
        self._rows: BoundedMemo[Node, Row] = BoundedMemo(2 * 4 * geometry.n_words)
        self._dead: dict[Node, np.ndarray | None] = {}  # None: no id is dead there

    def row(self, place: int, number: int) -> Row:
        """The ids readable at a node that lead to relevant states."""
        node = (place, number)
        found = self._rows.get(node)
        if found is None:
            free, bound, open_rows = self._tables.row(place, number)
            for target, entries in _by_target(open_rows):
                dead = self.dead(target)
                for is_free, bits in ((1, free), (0, bound)):
                    ids = entries[entries[:, 3] == is_free, 0]
                    set_bits(bits, _without(ids, dead))
            found = Row(free, bound)
            self._rows.put(node, found)
        return found

    def dead(self, node: Node) -> np.ndarray | None:
        """The ids that are irrelevant when they lead to this node (packed), None if none is."""
        if node not in self._dead:
            self._settle(node)
        return self._dead[node]

    # ------------------------------------------------------------ depth first, with early ends

    def _settle(self, first: Node) -> None:
        stack = [self._opened(first)]
        under_way = {first}
        while stack:
            top = stack[-1]
            if top.node in self._dead:  # settled meanwhile, as part of a cycle
                under_way.discard(stack.pop().node)
                continue
            if not top.suspects.any() or not top.waiting:
                self._finish(top)
                continue
            target, ids = top.waiting.pop()
            if target in self._dead:
                self._lead(top, _without(ids, self._dead[target]))
            elif target in under_way:
                top.on_cycle.append((target, ids))
            else:
                top.waiting.append((target, ids))
                stack.append(self._opened(target))
                under_way.add(target)

    def _opened(self, node: Node) -> _Open:
        _, bound, open_rows = self._tables.row(*node)
        waiting = [(target, entries[:, 0]) for target, entries in _by_target(open_rows)]
        # Long tokens first: they are nearest to the end of the pretoken.
        waiting.sort(key=lambda entry: entry[0][0])
        everything = np.full(len(bound), -1, dtype=np.int32)
        opened = _Open(node, everything, bound.copy(), waiting)
        self._suspect(opened, members(bound))
        return opened

    def _lead(self, opened: _Open, ids: np.ndarray) -> None:
        set_bits(opened.leads, ids)
        self._suspect(opened, ids)

    def _suspect(self, opened: _Open, ids: np.ndarray) -> None:
        """Clear from the suspects whatever one of `ids` may follow."""
        spread = ids[:: max(1, len(ids) // _SAMPLE)]
        for token in spread.tolist():
            if not opened.suspects.any():
                return
            self._clear(opened.suspects, token)
        if len(spread) == len(ids):
            return
        suspects = members(opened.suspects)
        if len(suspects) > len(ids):
            for token in ids.tolist():
                self._clear(opened.suspects, token)
            return
        cleared = [suspect for suspect in suspects.tolist() if self._followed(suspect, opened)]
        clear_bits(opened.suspects, np.array(cleared, dtype=np.int64))

    def _followed(self, suspect: int, opened: _Open) -> bool:
        followers = opened.leads.copy()
        self._geometry.clear_followers(suspect, followers)
        return bool(followers.any())

    def _clear(self, suspects: np.ndarray, token: int) -> None:
        predecessors = np.full(len(suspects), -1, dtype=np.int32)
        self._geometry.clear_predecessors(token, predecessors)
        np.bitwise_and(suspects, ~predecessors, out=suspects)

    def _finish(self, opened: _Open) -> None:
        if not opened.suspects.any():
            self._dead[opened.node] = None
        elif not opened.on_cycle:
            self._dead[opened.node] = opened.suspects
        else:
            self._settle_together(opened.node)

    # ------------------------------------------------------------ cycles, by plain iteration

    def _settle_together(self, first: Node) -> None:
        """The least fixpoint over all unsettled nodes within reach: start with every id dead
        everywhere, and let ids lead on until nothing changes."""
        opened = {first: self._opened(first)}
        todo = [first]
        while todo:
            for target, _ in opened[todo.pop()].waiting:
                if target not in self._dead and target not in opened:
                    opened[target] = self._opened(target)
                    todo.append(target)
        changed = True
        while changed:
            changed = False
            for entry in opened.values():
                for target, ids in entry.waiting:
                    dead = opened[target].suspects if target in opened else self._dead[target]
                    fresh = _without(ids, dead)
                    fresh = np.array([i for i in fresh.tolist() if not has(entry.leads, i)])
                    if len(fresh):
                        self._lead(entry, fresh.astype(np.int64))
                        changed = True
        for node, entry in opened.items():
            self._dead[node] = entry.suspects if entry.suspects.any() else None


def _by_target(open_rows: np.ndarray) -> list[tuple[Node, np.ndarray]]:
    """Group rows (id, place, set, is free) by the node that they lead to."""
    if not len(open_rows):
        return []
    key = open_rows[:, 1].astype(np.int64) << 32 | open_rows[:, 2]
    order = np.argsort(key, kind="stable")
    cuts = np.flatnonzero(np.diff(key[order])) + 1
    groups = np.split(open_rows[order], cuts)
    return [((int(g[0, 1]), int(g[0, 2])), g) for g in groups]


def _without(ids: np.ndarray, dead: np.ndarray | None) -> np.ndarray:
    if dead is None:
        return ids
    return ids[(dead[ids >> 5] >> (ids & 31)) & 1 == 0]
