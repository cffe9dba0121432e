"""A whole product put together from segments.

    assembled(engine, state) = explore(engine, state)                     as languages
    prepared(engine, state)  = all nodes that a matcher can come to, their rows made

`assembled` writes out each segment once, as a `Piece`, and lays the pieces side by side; at a cut
all ways meet in one state, as the last id changes nothing there. `prepared` is for languages that
are too large to write out, as nearly all that hold a string are. Both take what is known of a
segment out of the engine's `SegmentCache`; without one, everything is one piece.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

import numpy as np

from bpe_automata.constructions.canonical import NO_TOKEN
from bpe_automata.constructions.cartesian_merge import CartesianMerge, ProductState
from bpe_automata.constructions.hypothesis_sets import NONE
from bpe_automata.constructions.relevance import Node as Pair
from bpe_automata.constructions.segments import At, Node, Segment
from bpe_automata.constructions.segments_pieces import Closure, Piece
from bpe_automata.constructions.segments_rows import SharedRows
from bpe_automata.constructions.successors import Successors
from bpe_automata.errors import BudgetExceededError
from bpe_automata.kernels.bits import contained
from bpe_automata.token_automata import TokenAutomaton

ANY = -2
"""As the last id: one after which every id may stand that is read at the node."""

_ADVICE = "the automaton is too large to list; raise max_edges, or ask the engine step by step"
K = TypeVar("K", bound=Hashable)
Start = tuple[int, int, int]  # place, hypothesis set, last id


def assembled(
    engine: CartesianMerge, state: ProductState, max_edges: int = 1_000_000
) -> TokenAutomaton:
    """{ ids : the engine accepts after them, from `state` }, end-of-sequence left out.

    Pieces stand in the order in which they are come to, each as it was written out. Raises
    BudgetExceededError over `max_edges`."""
    maker = _Maker(engine, max_edges)
    starts = _Numbered[Start]()
    starts.number((state.place, state.hypotheses, state.last))
    pieces: list[tuple[Piece, list[int]]] = []
    left = max_edges
    for here in starts.items:  # grows while we go
        piece, segment = maker.piece(here)
        left -= len(piece.symbols)
        if left < 0:
            raise BudgetExceededError("edges", max_edges, _ADVICE)
        exits = [maker.entry(segment, at) for at in piece.exits]
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


def prepared_common(engine: CartesianMerge, state: ProductState) -> int:
    """Make the rows of the nodes that ids from `state` lead to at characters' ends, with no added
    token begun; returns how many nodes. They are few, and nearly all that decoding visits."""
    maker, sets = _Maker(engine, 0), engine.canonical.sets.sets
    seen = {(state.place, state.hypotheses)}
    todo = list(seen)
    while todo:
        here = todo.pop()
        after = maker.after(here) - seen
        common = {n for n in after if not (engine.tables.memo.added[n[0]] or sets[n[1]].row)}
        seen |= common
        todo += common
    return len(seen)


def prepared(engine: CartesianMerge, state: ProductState) -> int:
    """Make the rows of all nodes that ids from `state` lead to; returns how many nodes. With added
    tokens and all of Unicode in a string they may be 100,000; see `prepared_common`."""
    maker, start = _Maker(engine, 0), (state.place, state.hypotheses)
    seen, todo = {start}, [start]
    count = 0
    while todo:
        closure, segment, others = maker.closure(todo.pop())
        count += len(closure.inner)
        exits = {maker.entry(segment, at)[:2] for at in closure.exits} if segment else set()
        fresh = (exits | others) - seen
        seen |= fresh
        todo += fresh
    return count


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

    def __init__(self, engine: CartesianMerge, max_edges: int) -> None:
        self._engine, self._max_edges = engine, max_edges
        self._rows, self._tables = engine.rows, engine.tables
        self._leads = Successors(self._tables, self._rows, engine.prefixed).of_node
        self._shared = self._rows if isinstance(self._rows, SharedRows) else None

    def entry(self, segment: Segment | None, at: At) -> Start:
        """The node of a cut, with only the members that can come true."""
        if segment is None:
            raise ValueError("what is in no segment has no exits")
        place = self._tables.place(int(segment.order[at.number]), at.text)
        return place, self._engine.canonical.sets.number(at.row, list(at.members)), ANY

    def _node(self, place: int, number: int) -> Node | None:
        return None if self._shared is None else self._shared.segments.of(place, number)

    # ------------------------------------------------------------ pieces

    def piece(self, start: Start) -> tuple[Piece, Segment | None]:
        """The token automaton from here to the cuts."""
        place, number, last = start
        node = self._node(place, number)
        if node is None or self._shared is None:
            return self._written(start, None), None
        if last != ANY:
            return self._written(start, node.segment), node.segment
        known = self._shared.cache.of(node.segment.key).pieces.get(node.at)
        if known is None:
            known = self._written(start, node.segment)
            self._shared.cache.add(node.segment.key, node.at, known)
        return known, node.segment

    def _written(self, start: Start, segment: Segment | None) -> Piece:
        states, exits = _Numbered[Start](), _Numbered[At]()
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
        leads, row = self._leads(*here[:2]), self._rows.row(*here[:2])
        bound = row.bound if here[2] == ANY else self._engine.bound(ProductState(*here))
        binds = contained(bound, leads.ids)
        kept = binds | contained(row.free, leads.ids)
        ids, added = leads.ids[kept], leads.added[kept]
        numbers = np.where(binds, leads.bound, leads.free)[kept]
        targets = np.empty(len(ids), dtype=np.int64)
        cuts: dict[Pair, At | None] = {}
        columns = leads.places[kept].tolist(), numbers.tolist(), ids.tolist(), added.tolist()
        for k, (place, number, token, is_added) in enumerate(zip(*columns, strict=True)):
            after: Start = (place, number, token)
            if is_added:
                after = self._engine.step(ProductState(*here[:2], NO_TOKEN), token)
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
        if segment is None or self._shared is None:
            return None
        node = self._shared.segments.within(segment, place, number)
        return node.at if node is not None and node.is_cut else None

    # ------------------------------------------------------------ nodes

    def closure(self, start: Pair) -> tuple[Closure, Segment | None, set[Pair]]:
        """The nodes from here to the cuts, and those that are in no segment."""
        node = self._node(*start)
        if node is None or self._shared is None:
            self._rows.row(*start)
            return Closure((At(0, 0, 0, ()),), ()), None, self.after(start)
        segment = node.segment
        known = self._shared.cache.of(segment.key).closures.get(node.at)
        if known is not None:
            return known, segment, set()
        inner, exits, strange, todo = {start: node.at}, dict[At, None](), set[Pair](), [start]
        while todo:
            for pair in self.after(todo.pop()):
                found = self._shared.segments.within(segment, *pair)
                if found is None:
                    strange.add(pair)
                elif found.is_cut:
                    exits[found.at] = None
                elif pair not in inner:
                    inner[pair] = found.at
                    todo.append(pair)
        closure = Closure(tuple(inner.values()), tuple(exits))
        if not strange:
            self._shared.cache.add(segment.key, node.at, closure)
        return closure, segment, strange

    def after(self, pair: Pair) -> set[Pair]:
        """The nodes that the ids of one lead to, whatever the last id was."""
        leads, found = self._leads(*pair), set[Pair]()
        plain = ~leads.added
        for numbers in (leads.free, leads.bound):
            here = plain & (numbers != NONE)
            keys = np.unique(leads.places[here] << 32 | numbers[here])
            found.update((key >> 32, key & 0xFFFFFFFF) for key in keys.tolist())
        for token in leads.ids[leads.added].tolist():
            found.add(self._engine.step(ProductState(*pair, NO_TOKEN), token)[:2])
        return found
