"""A whole product put together from segments, which a `SegmentCache` keeps for other products.

    assembled(engine, state, cache) = explore(engine, state)              as languages
    prepared(engine, state, cache): the rows of all nodes, those of `all_nodes`

Written out, each segment is a `Piece`, and the pieces are laid side by side; at a cut all ways meet
in one state, as the last id changes nothing there. Languages that are too large for that, as nearly
all are that hold a string, have few nodes still: of a segment that the cache knows none is visited,
as its rows are in the cache, and its `Closure` says at which cuts its ids arrive.

A row that is asked for alone costs less to make than to look up: the lazy engine has no segments.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import chain
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from bpe_automata.budget import check
from bpe_automata.constructions.canonical import NO_TOKEN
from bpe_automata.constructions.cartesian_merge import CartesianMerge, ProductState
from bpe_automata.constructions.hypothesis_sets import BEGINNING
from bpe_automata.constructions.relevance import Node as ProductNode
from bpe_automata.constructions.relevance import Row
from bpe_automata.constructions.segments import At, Node, Segment, Segments
from bpe_automata.constructions.segments_cache import Closure, Piece, SegmentCache
from bpe_automata.errors import BudgetExceededError
from bpe_automata.kernels.bits import contained
from bpe_automata.kernels.product import PARTLY
from bpe_automata.token_automata import TokenAutomaton

ANY = -2
"""As the last id: one after which every id may stand that is read at the node."""

_ADVICE = "the automaton is too large to list; raise max_edges, or ask the engine step by step"
K = TypeVar("K", bound=Hashable)
Start = tuple[int, int, int]  # place, hypothesis set, last id


def assembled(
    engine: CartesianMerge, state: ProductState, cache: SegmentCache, max_edges: int = 1_000_000
) -> TokenAutomaton:
    """{ ids : the engine accepts after them, from `state` }, end-of-sequence left out.

    Pieces stand in the order in which they are come to, each as it was written out. Raises
    BudgetExceededError over `max_edges`."""
    maker = _Maker(engine, cache, max_edges)
    starts = _Numbered[Start]()
    starts.number((state.place, state.hypotheses, state.last))
    pieces: list[tuple[Piece, list[int]]] = []
    left = max_edges
    for here in starts.items:  # grows while we go
        check()  # pieces that are known are not written, but there may be many
        piece, exits = maker.piece(here)
        left -= len(piece.symbols)
        if left < 0:
            raise BudgetExceededError("edges", max_edges, _ADVICE)
        pieces.append((piece, [starts.number(exit_) for exit_ in exits]))
    return _joined(engine, pieces)


def _joined(engine: CartesianMerge, pieces: list[tuple[Piece, list[int]]]) -> TokenAutomaton:
    """One automaton; piece k begins at its own state 0, to which the exits numbered k lead."""
    sizes = [len(piece.accepting) for piece, _ in pieces]
    base = np.cumsum([0, *sizes])
    targets = [
        np.concatenate([base[k] + np.arange(sizes[k]), base[exits]]).astype(np.int32)[piece.targets]
        for k, (piece, exits) in enumerate(pieces)
    ]
    counts = [np.diff(piece.offsets) for piece, _ in pieces]
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    eos = np.array(engine.eos_ids, dtype=np.int64)
    return TokenAutomaton(
        0,
        np.concatenate([piece.accepting for piece, _ in pieces]),
        offsets.astype(np.int64),
        np.concatenate([piece.symbols for piece, _ in pieces]),
        np.concatenate(targets),
        np.setdiff1d(np.arange(engine.n_ids), eos),
        engine.tokenizer.spellings,
    )


class _Numbered(Generic[K]):
    """Numbers items as they come. items: in that order."""

    def __init__(self) -> None:
        self.items: list[K] = []
        self._numbers: dict[K, int] = {}

    def number(self, item: K) -> int:
        found = self._numbers.setdefault(item, len(self.items))
        if found == len(self.items):
            self.items.append(item)
        return found


class _Maker:
    """Writes out parts of one product, or finds them in the cache."""

    def __init__(self, engine: CartesianMerge, cache: SegmentCache, max_edges: int) -> None:
        self._engine, self._cache, self._max_edges = engine, cache, max_edges
        self._segments = Segments(engine.tables)
        self._strange = False  # did what was written last come to what is not in its segment?

    def piece(self, start: Start) -> tuple[Piece, list[Start]]:
        """The token automaton from here to the cuts, and where its exits lead."""
        node = self._segments.of(*start[:2])
        if node is None:
            return self._written(start, None), []
        segment, cache = node.segment, self._cache
        known = cache.of(segment.key).pieces.get(node.at) if start[2] == ANY else None
        if known is None:
            known = self._written(start, segment)
            if start[2] == ANY and not self._strange:
                cache.add(segment.key, node.at, known)
        return known, [(*self._segments.pair(segment, at), ANY) for at in known.exits]

    def _written(self, start: Start, segment: Segment | None) -> Piece:
        states, exits, self._strange = _Numbered[Start](), _Numbered[At](), False
        states.number(start)
        rows: list[tuple[np.ndarray, np.ndarray]] = []
        n_edges = 0
        for here in states.items:  # grows while we go
            ids, targets = self._edges(here, segment, states, exits)
            n_edges += len(ids)
            if n_edges > self._max_edges:
                raise BudgetExceededError("edges", self._max_edges, _ADVICE)
            rows.append((ids.astype(np.int32), targets))
        symbols, targets = (np.concatenate(column) for column in zip(*rows, strict=True))
        offsets = np.cumsum([0, *(len(ids) for ids, _ in rows)], dtype=np.int64)
        accepting = np.array([self._engine.accepting(ProductState(*s)) for s in states.items])
        after = np.where(targets < 0, len(states.items) - 1 - targets, targets)
        return Piece(accepting, offsets, symbols, after.astype(np.int32), tuple(exits.items))

    def _edges(
        self, here: Start, segment: Segment | None, states: _Numbered[Start], exits: _Numbered[At]
    ) -> tuple[np.ndarray, np.ndarray]:
        """(ids, targets) of one state; target -1 - k is exit k."""
        engine = self._engine
        leads, row = engine.leads(*here[:2]), engine.rows.row(*here[:2])
        bound = row.bound if here[2] == ANY else engine.bound(ProductState(*here))
        binds = contained(bound, leads.ids)
        kept = binds | contained(row.free, leads.ids)
        ids, added = leads.ids[kept], leads.added[kept]
        numbers = np.where(binds, leads.bound, leads.free)[kept]
        targets = np.empty(len(ids), dtype=np.int64)
        cuts: dict[ProductNode, At | None] = {}
        columns = leads.places[kept].tolist(), numbers.tolist(), ids.tolist(), added.tolist()
        for k, (place, number, token, is_added) in enumerate(zip(*columns, strict=True)):
            check()
            after: Start = (place, number, token)
            if is_added:
                after = engine.step(ProductState(*here[:2], NO_TOKEN), token)
            pair = after[:2]
            if pair not in cuts:
                cuts[pair] = self._cut(segment, *pair)
            at = cuts[pair]
            if at is None:
                targets[k] = states.number(after)
            else:
                targets[k] = -1 - exits.number(at)
        return ids, targets

    def _cut(self, segment: Segment | None, place: int, number: int) -> At | None:
        if segment is None:
            return None
        node = self._segments.within(segment, place, number)
        self._strange |= node is None
        return node.at if node is not None and node.is_cut else None


# ---------------------------------------------------------------- the rows of all nodes


def prepared(engine: CartesianMerge, state: ProductState, cache: SegmentCache) -> int:
    """Make the rows of all nodes that ids from `state` lead to, so that `SharedRows` finds them;
    returns how many nodes. In a segment that is entered in several ways a node counts for each of
    them; at a cut, those that go on alike count once."""
    walk = _Walk(SharedRows(engine, cache))
    start = state.place, state.hypotheses
    seen, todo, count = {start}, [start], 0
    while todo:
        check()
        n_nodes, after = walk.beyond(todo.pop())
        count += n_nodes
        fresh = after - seen
        seen |= fresh
        todo += fresh
    return count


class SharedRows:
    """The rows of one product, out of a cache where it has them; for one thread."""

    def __init__(self, engine: CartesianMerge, cache: SegmentCache) -> None:
        self.engine, self.cache, self.segments = engine, cache, Segments(engine.tables)

    def row(self, place: int, number: int) -> Row:
        """The ids readable at a node that lead to relevant states."""
        node = self.segments.of(place, number)
        if node is None:
            self.cache.count_apart()
            return self.engine.rows.row(place, number)
        row = self.cache.of(node.segment.key).rows.get(node.at)
        if row is None:
            row = self.engine.rows.row(place, number)
            self.cache.add(node.segment.key, node.at, row)
        return row


class _Walk:
    """From cuts to cuts."""

    def __init__(self, rows: SharedRows) -> None:
        self._rows, self._segments = rows, rows.segments
        self._after: dict[ProductNode, set[ProductNode]] = {}

    def beyond(self, start: ProductNode) -> tuple[int, set[ProductNode]]:
        """How many nodes there are from here to the next cuts, and those at the cuts; of a node in
        no segment, itself and where its ids lead."""
        node, cache = self._segments.of(*start), self._rows.cache
        if node is None:
            return 1, self._after_node(start)
        key, strange = node.segment.key, set[ProductNode]()
        closure = cache.of(key).closures.get(node.at)
        if closure is None:
            closure, strange = self._closure(node, start)
            if not strange:
                cache.add(key, node.at, closure)
        exits = {self._segments.pair(node.segment, at) for at in closure.exits}
        return closure.n_inner, strange | exits

    def _closure(self, node: Node, start: ProductNode) -> tuple[Closure, set[ProductNode]]:
        """Up to the cuts of a segment, and what is met that is not in the segment."""
        inner, exits, strange, todo = {start}, dict[At, None](), set[ProductNode](), [start]
        while todo:
            check()
            for pair in self._after_node(todo.pop()) - inner:
                found = self._segments.within(node.segment, *pair)
                if found is None:
                    strange.add(pair)
                elif found.is_cut:
                    exits[found.at] = None
                else:
                    inner.add(pair)
                    todo.append(pair)
        return Closure(len(inner), tuple(exits)), strange

    def _after_node(self, pair: ProductNode) -> set[ProductNode]:
        if pair not in self._after:
            self._after[pair] = beyond(self._rows.engine, pair, self._rows.row(*pair))
        return self._after[pair]


# The eager engine: all nodes of a product, and what is dead at each, before any is visited.
#
#     nodes  contains  { (place, hypotheses) : some ids lead there from the start }
#
# and besides only what an id of a node's row leads to that may not follow each last id there.
#
# A state of CartesianMerge is a node with the last id, and its mask follows from the node's row; so
# the rows of all nodes are the whole automaton, in as many numbers as the lift has. Written out
# with its transitions (`engine.explore`) it has one state for each last id.


class Where(NamedTuple):
    """A node, for any product of the same automata: the DFA's state, the text automaton's, and the
    number of the hypothesis set."""

    state: int
    text: int
    hypotheses: int


def all_nodes(engine: CartesianMerge, state: ProductState) -> list[Where]:
    """All nodes that ids lead to from a state, itself first. Their rows are found on the way."""
    first = (state.place, state.hypotheses)
    found: dict[ProductNode, None] = {first: None}
    todo = [first]
    while todo:
        check()
        here = todo.pop()
        for node in beyond(engine, here, engine.rows.row(*here)):
            if node not in found:
                found[node] = None
                todo.append(node)
    memo = engine.tables.memo
    return [Where(int(memo.state[p]), int(memo.added[p]), number) for p, number in found]


def settle(engine: CartesianMerge, nodes: Iterable[Where]) -> int:
    """Find what is dead at each of these nodes; returns at how many anything is."""
    tables, relevance = engine.tables, engine.rows
    states, texts, numbers = np.fromiter(chain.from_iterable(nodes), np.int64).reshape(-1, 3).T
    places = tables.places(states, texts)
    partly = np.flatnonzero(tables.statuses(places, numbers.copy()) == PARTLY)
    relevance.settle(places[partly], numbers[partly])
    found = zip(places[partly].tolist(), numbers[partly].tolist(), strict=True)
    return sum(map(relevance.any_dead, found))


def beyond(engine: CartesianMerge, node: ProductNode, row: Row) -> set[ProductNode]:
    """Where the ids of a node's row lead, whatever the last id was."""
    tables, sets = engine.tables, engine.canonical.sets
    places, kinds, start, ids = tables.edges(node[0], sets.sets[node[1]].row)
    free, bound = sets.rows(node[1])
    is_free, is_bound = (contained(side, ids) for side in row)
    leads: set[ProductNode] = set()
    for side, after in ((is_free, free), (is_bound & ~is_free, bound)):
        groups = np.flatnonzero(_any(side, start))
        leads |= {*zip(places[groups].tolist(), after[kinds[groups]].tolist(), strict=True)}
    for group in np.flatnonzero(_any(is_free & is_bound, start)).tolist():
        number = sets.union(int(free[kinds[group]]), int(bound[kinds[group]]))
        leads.add((int(places[group]), number))
    added, after = tables.added_steps(node[0])
    return leads | {(p, BEGINNING) for p in after[contained(row.free, added)].tolist()}


def _any(flags: np.ndarray, start: np.ndarray) -> np.ndarray:
    """bool [groups]: is any flag of the group set?"""
    total = np.concatenate([[0], np.cumsum(flags)])
    return total[start[1:]] > total[start[:-1]]
