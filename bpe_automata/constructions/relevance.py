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

import hashlib
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bpe_automata.budget import check
from bpe_automata.constructions.geometry import Geometry
from bpe_automata.constructions.hypothesis_sets import NONE
from bpe_automata.constructions.memo import BoundedMemo
from bpe_automata.constructions.product_tables import ProductTables
from bpe_automata.kernels.beside import unpacked
from bpe_automata.kernels.bits import members, set_bits, without
from bpe_automata.kernels.dead_sets import NOTHING, UNSETTLED
from bpe_automata.sharing import locked

Node = tuple[int, int]

_SHALLOW = 2  # bytes: where much can follow, tokens this short are looked at first
_MUCH = 8  # bytes
_FEW = 16  # ids of a node


class Row(NamedTuple):
    """free, bound: packed int32 ids, those with and without a boundary at the joint."""

    free: np.ndarray
    bound: np.ndarray


@dataclass
class _Open:
    """A node whose dead set is being found.

    suspects: packed ids that no id seen so far follows, `count` of them; leads: packed ids known to
    lead on;
    waiting: (node, ids) still to be settled; on_cycle: some of them were being found themselves;
    complete: have all tokens been looked at, not just the shortest?
    """

    node: Node
    suspects: np.ndarray
    count: int
    leads: np.ndarray
    waiting: list[tuple[Node, np.ndarray]]
    complete: bool
    on_cycle: bool = False


class Relevance:
    """Rows and dead sets of one product, memoised; for any number of threads."""

    def __init__(self, tables: ProductTables, geometry: Geometry) -> None:
        self._tables, self._geometry, self.lock = tables, geometry, tables.lock
        self._rows: BoundedMemo[Node, Row] = BoundedMemo(2 * 4 * geometry.n_words)
        self._dead: dict[Node, np.ndarray | None] = {}  # None: no id is dead there
        self._distinct: dict[bytes, np.ndarray] = {}  # these sets, by digest: most come up often
        self._sets: dict[Node, bytes] = {}  # as `kernels.dead_sets` has them: not unpacked yet
        self._rows_of_sets: dict[bytes, bytes] = {}  # each of these once
        self._narrowed: BoundedMemo[bytes, tuple[np.ndarray, int]] = BoundedMemo(
            8 * geometry.n_words
        )

    def row(self, place: int, number: int) -> Row:
        """The ids readable at a node that lead to relevant states."""
        found = self._rows.get((place, number))
        return self._new_row((place, number)) if found is None else found

    @locked
    def _new_row(self, node: Node) -> Row:
        found = self._rows.get(node)  # by another thread meanwhile
        if found is None:
            free, bound, open_rows = self._tables.row(*node)
            for target, entries in _by_target(open_rows):
                check()
                dead = self._dead_among(entries[:, 0], target)
                for is_free, bits in ((1, free), (0, bound)):
                    ids = entries[entries[:, 3] == is_free, 0]
                    set_bits(bits, _lively(ids, dead))
            found = Row(free, bound)
            self._rows.put(node, found)
        return found

    def _dead_among(self, ids: np.ndarray, node: Node) -> np.ndarray | None:
        """Which of `ids`, all of which lead to `node`, are dead there: packed, and other ids may be
        among them; None if none is. For a few of the others an id that may follow is remembered, so
        that other nodes of the same hypothesis set are settled without this."""
        number = node[1]
        if number == self._tables.steady:
            return self.dead(node)
        few = np.unique(ids[:_FEW])
        inside = self._tables.canonical.sets.sets[number].row != 0
        if not inside or len(few) < len(ids):
            dead = self.dead(node)
            self._find_witnesses(_lively(few, dead), node)
            return dead
        # Inside a character few ids can follow: where none of them is left undecided, those without
        # a sure follower are dead, and `dead` is not needed.
        unknown, followers = self._find_witnesses(few, node)
        if not len(unknown):
            return None
        if len(followers):
            return self.dead(node)
        dead = np.zeros(self._geometry.n_words, dtype=np.int32)
        set_bits(dead, unknown)
        return dead

    def _find_witnesses(self, ids: np.ndarray, node: Node) -> tuple[np.ndarray, np.ndarray]:
        """For each of a few ids, find and remember one that may follow it and surely leads on.
        Returns (int64, those for which there is none; int64, the undecided ids that may follow any
        of those)."""
        _, bound, open_ = self._tables.row(*node)
        canonical, partly, number = self._tables.canonical, np.zeros_like(bound), node[1]
        after = canonical.sets.rows(number)[1][canonical.actions.of_token]
        set_bits(partly, open_[:, 0].astype(np.int64))
        unknown, followers = [], np.zeros_like(bound)
        for token in ids.tolist():
            alive, maybe = bound.copy(), partly.copy()
            self._geometry.clear_followers(token, alive)
            self._geometry.clear_followers(token, maybe)
            if alive.any():
                follower = int(members(alive)[0])
                self._tables.remember_witness(token, number, follower, int(after[follower]))
            else:
                unknown.append(token)
                followers |= maybe
                if not maybe.any() and not self._any_follower(token, after >= 0):
                    self._tables.remember_witness(token, number, NONE, NONE)
        return np.array(unknown, dtype=np.int64), members(followers)

    def _any_follower(self, token: int, some: np.ndarray) -> bool:
        """May any of some ids (bool [n_ids]) follow one?"""
        followers = np.zeros(self._geometry.n_words, dtype=np.int32)
        set_bits(followers, np.flatnonzero(some))
        self._geometry.clear_followers(token, followers)
        return bool(followers.any())

    @locked
    def dead(self, node: Node) -> np.ndarray | None:
        """The ids that are irrelevant when they lead to this node (packed), None if none is."""
        if not self._knows(node) and node[1] == self._tables.steady:
            self.settle(np.array([node[0]]))
        if not self._knows(node):
            self._settle(node)
        return self._dead[node]

    @locked
    def any_dead(self, node: Node) -> bool:
        """Is any id dead at this node?"""
        return node in self._sets or self.dead(node) is not None

    def _knows(self, node: Node) -> bool:
        """Is its dead set known? It is unpacked then."""
        if node in self._sets:
            geometry = self._geometry
            n_ids = len(geometry.derivation.birth)
            places = np.frombuffer(self._sets.pop(node), dtype=np.int64).copy()
            found = unpacked(places, geometry.before.order, n_ids)
            if node not in self._dead:
                self._remember(node, found)
        return node in self._dead

    def _remember(self, node: Node, dead: np.ndarray) -> None:
        digest = hashlib.blake2b(dead.data, digest_size=16).digest()
        self._dead[node] = self._distinct.setdefault(digest, dead)

    @locked
    def settle(self, places: np.ndarray) -> None:
        """Find what is dead at many nodes of the steady set, those that a cycle needs excepted.
        places: int64."""
        number = self._tables.steady
        if not len(places):
            return
        found, dead = self._tables.dead_sets(places, number)
        settled = np.flatnonzero(found != UNSETTLED)
        for place, at in zip(settled.tolist(), found[settled].tolist(), strict=True):
            node = place, number
            if node not in self._dead and at == NOTHING:
                self._dead[node] = None
            elif node not in self._dead:
                row = dead[at].tobytes()
                self._sets[node] = self._rows_of_sets.setdefault(row, row)

    # ------------------------------------------------------------ depth first, with early ends

    def _settle(self, first: Node) -> None:
        stack = [self._begun(first)]
        under_way = {first}
        while stack:
            check()
            top = stack[-1]
            if top.node in self._dead:  # settled meanwhile, as part of a cycle
                under_way.discard(stack.pop().node)
            elif not top.count or (top.complete and not top.waiting):
                self._finish(top)
            elif not top.waiting:
                stack[-1] = self._opened(top.node, None)
            else:
                target, ids = top.waiting[-1]
                if not self._knows(target) and target not in under_way:
                    stack.append(self._begun(target))
                    under_way.add(target)
                    continue
                top.waiting.pop()
                if target in self._dead:
                    self._lead(top, _lively(ids, self._dead[target]))
                else:
                    top.on_cycle = True

    def _begun(self, node: Node) -> _Open:
        much = self._tables.fan_out(node[0]) >= _MUCH
        return self._opened(node, _SHALLOW if much else None)

    def _opened(self, node: Node, deepest: int | None) -> _Open:
        _, bound, open_rows = self._tables.row(*node, deepest)
        waiting = [(target, entries[:, 0]) for target, entries in _by_target(open_rows)]
        suspects, count = self._followed_by_none(members(bound))
        return _Open(node, suspects.copy(), count, bound, waiting, complete=deepest is None)

    def _lead(self, opened: _Open, ids: np.ndarray) -> None:
        if opened.leads.any():
            opened.count = self._geometry.narrow(ids, opened.suspects)
        else:
            suspects, opened.count = self._followed_by_none(ids)
            opened.suspects = suspects.copy()
        set_bits(opened.leads, ids)

    def _followed_by_none(self, ids: np.ndarray) -> tuple[np.ndarray, int]:
        """(packed, how many): the ids that none of `ids` may follow. Kept, because the nodes of a
        counted repeat ask for the same again and again."""
        key = ids.tobytes()
        found = self._narrowed.get(key)
        if found is None:
            suspects = np.full(self._geometry.n_words, -1, dtype=np.int32)
            found = suspects, self._geometry.narrow(ids, suspects)
            self._narrowed.put(key, found)
        return found

    def _finish(self, opened: _Open) -> None:
        if not opened.count:
            self._dead[opened.node] = None
        elif not opened.on_cycle:
            self._remember(opened.node, opened.suspects)
        else:
            self._settle_together(opened.node)

    # ------------------------------------------------------------ cycles, by plain iteration

    def _settle_together(self, first: Node) -> None:
        """The least fixpoint over all unsettled nodes within reach: start with every id dead
        everywhere, and let ids lead on until nothing changes."""
        opened = {first: self._opened(first, None)}
        todo = [first]
        while todo:
            check()
            for target, _ in opened[todo.pop()].waiting:
                if not self._knows(target) and target not in opened:
                    opened[target] = self._opened(target, None)
                    todo.append(target)
        changed = True
        while changed:
            changed = False
            for entry in opened.values():
                check()
                for target, ids in entry.waiting:
                    dead = opened[target].suspects if target in opened else self._dead[target]
                    fresh = without(_lively(ids, dead), entry.leads)
                    if len(fresh):
                        self._lead(entry, fresh)
                        changed = True
        for node, entry in opened.items():
            if entry.count:
                self._remember(node, entry.suspects)
            else:
                self._dead[node] = None


def _by_target(open_rows: np.ndarray) -> list[tuple[Node, np.ndarray]]:
    """Group rows (id, place, set, is free) by the node that they lead to, nearest place first."""
    if not len(open_rows):
        return []
    if len(open_rows) <= 8:
        return _few_by_target(open_rows)
    key = open_rows[:, 1].astype(np.int64) << 32 | open_rows[:, 2]
    order = np.argsort(key, kind="stable")
    key, open_rows = key[order], open_rows[order]
    cuts = [0, *(np.flatnonzero(key[1:] != key[:-1]) + 1).tolist(), len(key)]
    groups = [open_rows[low:high] for low, high in pairwise(cuts)]
    return [((int(g[0, 1]), int(g[0, 2])), g) for g in groups]


def _lively(ids: np.ndarray, dead: np.ndarray | None) -> np.ndarray:
    """The ids, int64, without the dead ones."""
    wide = ids.astype(np.int64)
    return wide if dead is None else without(wide, dead)


def _few_by_target(open_rows: np.ndarray) -> list[tuple[Node, np.ndarray]]:
    """The same for so few rows that plain Python is faster."""
    numbers: dict[Node, list[int]] = {}
    for number, (_, place, target, _) in enumerate(open_rows.tolist()):
        numbers.setdefault((place, target), []).append(number)
    return [(node, open_rows[rows]) for node, rows in sorted(numbers.items())]
