"""A whole product put together from segments.

    assembled(engine, state) = explore(engine, state)                     as languages

Each segment is written out once, as a `Piece`, and the pieces are laid side by side; at a cut all
ways meet in one state, as the last id changes nothing there. What is known of a segment comes out
of the engine's `SegmentCache`; without one, everything is one piece. For languages that are too
large to write out see `segments_nodes`.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

import numpy as np

from bpe_automata.budget import check
from bpe_automata.constructions.canonical import NO_TOKEN
from bpe_automata.constructions.cartesian_merge import CartesianMerge, ProductState
from bpe_automata.constructions.relevance import Node as Pair
from bpe_automata.constructions.segments import At, Segment
from bpe_automata.constructions.segments_pieces import Piece
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

    def __init__(self, engine: CartesianMerge, max_edges: int) -> None:
        self._engine, self._max_edges = engine, max_edges
        self._rows, self._tables = engine.rows, engine.tables
        self._leads = Successors(self._tables, self._rows, engine.prefixed).of_node
        self._shared = self._rows if isinstance(self._rows, SharedRows) else None
        self._strange = False  # did what was written last come to what is not in its segment?

    def piece(self, start: Start) -> tuple[Piece, list[Start]]:
        """The token automaton from here to the cuts, and where its exits lead."""
        shared = self._shared
        node = None if shared is None else shared.segments.of(*start[:2])
        if shared is None or node is None:
            return self._written(start, None), []
        segment, cache = node.segment, shared.cache
        known = cache.of(segment.key).pieces.get(node.at) if start[2] == ANY else None
        if known is None:
            known = self._written(start, segment)
            if start[2] == ANY and not self._strange:
                cache.add_piece(segment.key, node.at, known)
        return known, [(*shared.segments.pair(segment, at), ANY) for at in known.exits]

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
            check()
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
        self._strange |= node is None
        return node.at if node is not None and node.is_cut else None
