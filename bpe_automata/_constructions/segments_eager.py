"""A whole product put together from segments, which a `SegmentCache` keeps for other products.

    assembled(engine, state, cache) = explore(engine, state)              as languages
    prepared(engine, state, cache): makes the rows of all configurations; says how many

Written out, each segment is a `Piece`, and the pieces are laid side by side; at a cut all ways meet
in one state, as the last id changes nothing there. Languages that are too large for that, as nearly
all are that hold a string, have few configurations still: no configuration of a segment in the
cache is visited, as its rows are in the cache, and its `Closure` says at which cuts its ids arrive.

A row that is asked for alone costs less to make than to look up: the lazy engine has no segments.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import chain
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from bpe_automata._budget import check
from bpe_automata._constructions.canonical import NO_TOKEN
from bpe_automata._constructions.cartesian_merge import CartesianMerge, ProductState
from bpe_automata._constructions.hypothesis_sets import BEGINNING
from bpe_automata._constructions.relevance import Configuration, Readable
from bpe_automata._constructions.segments import At, Located, Segment, Segments
from bpe_automata._constructions.segments_cache import Closure, Piece, SegmentCache
from bpe_automata._kernels.bits import contained
from bpe_automata._kernels.product import PARTLY
from bpe_automata._token_automata.automaton import TokenAutomaton
from bpe_automata.errors import BudgetExceededError

ANY = -2
"""As the last id: one after which every id may stand that is read at the configuration."""

_ADVICE = "the automaton is too large to list; raise max_edges, or ask the engine step by step"
K = TypeVar("K", bound=Hashable)
Start = tuple[int, int, int]  # state pair, hypothesis set, last id


def assembled(
    engine: CartesianMerge, state: ProductState, cache: SegmentCache, max_edges: int = 1_000_000
) -> TokenAutomaton:
    """{ ids : the engine accepts after them, from `state` }, end-of-sequence left out.

    Pieces stand in the order in which they are come to, each as it was written out. Raises
    BudgetExceededError over `max_edges`."""
    maker = _Maker(engine, cache, max_edges)
    starts = _Numbered[Start]()
    starts.number((state.state_pair, state.hypotheses, state.last))
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
        self._strange = False  # did the last piece lead out of its segment? It is not kept then

    def piece(self, start: Start) -> tuple[Piece, list[Start]]:
        """The token automaton from here to the cuts, and where its exits lead; outside of segments
        all that follows, without exits."""
        located = self._segments.of(*start[:2])
        if located is None:
            return self._written(start, None), []
        segment, cache = located.segment, self._cache
        known = cache.of(segment.key).pieces.get(located.at) if start[2] == ANY else None
        if known is None:
            known = self._written(start, segment)
            if start[2] == ANY and not self._strange:
                cache.add(segment.key, located.at, known)
        return known, [(*self._segments.configuration(segment, at), ANY) for at in known.exits]

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
        leads, row = engine.leads(*here[:2]), engine.relevance.readable(*here[:2])
        bound = row.bound if here[2] == ANY else engine.bound(ProductState(*here))
        binds = contained(bound, leads.ids)
        kept = binds | contained(row.free, leads.ids)
        ids, added = leads.ids[kept], leads.added[kept]
        numbers = np.where(binds, leads.bound, leads.free)[kept]
        targets = np.empty(len(ids), dtype=np.int64)
        cuts: dict[Configuration, At | None] = {}
        columns = leads.state_pairs[kept].tolist(), numbers.tolist(), ids.tolist(), added.tolist()
        for k, (state_pair, number, token, is_added) in enumerate(zip(*columns, strict=True)):
            check()
            after: Start = (state_pair, number, token)
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

    def _cut(self, segment: Segment | None, state_pair: int, number: int) -> At | None:
        if segment is None:
            return None
        located = self._segments.within(segment, state_pair, number)
        self._strange |= located is None
        return located.at if located is not None and located.is_cut else None


# ---------------------------------------------------------------- the rows of all configurations


def prepared(engine: CartesianMerge, state: ProductState, cache: SegmentCache) -> int:
    """Make the rows of all configurations that ids from `state` lead to, so that `SharedRelevance`
    finds them; returns how many configurations. In a segment that is entered in several ways a
    configuration counts for each of them; at a cut, those that go on alike count once."""
    walk = _Walk(SharedRelevance(engine, cache))
    start = state.state_pair, state.hypotheses
    seen, todo, count = {start}, [start], 0
    while todo:
        check()
        n_configurations, after = walk.to_cuts(todo.pop())
        count += n_configurations
        fresh = after - seen
        seen |= fresh
        todo += fresh
    return count


class SharedRelevance:
    """The rows of one product, out of a cache where it has them; for one thread."""

    def __init__(self, engine: CartesianMerge, cache: SegmentCache) -> None:
        self.engine, self.cache, self.segments = engine, cache, Segments(engine.tables)

    def readable(self, state_pair: int, number: int) -> Readable:
        """The ids readable at a configuration that lead to relevant states."""
        located = self.segments.of(state_pair, number)
        if located is None:
            self.cache.count_apart()
            return self.engine.relevance.readable(state_pair, number)
        found = self.cache.of(located.segment.key).rows.get(located.at)
        if found is None:
            found = self.engine.relevance.readable(state_pair, number)
            self.cache.add(located.segment.key, located.at, found)
        return found


class _Walk:
    """From cuts to cuts."""

    def __init__(self, rows: SharedRelevance) -> None:
        self._rows, self._segments = rows, rows.segments
        self._after: dict[Configuration, set[Configuration]] = {}

    def to_cuts(self, start: Configuration) -> tuple[int, set[Configuration]]:
        """How many configurations there are from here to the next cuts, and those at the cuts; of a
        configuration in no segment, itself and where its ids lead."""
        located, cache = self._segments.of(*start), self._rows.cache
        if located is None:
            return 1, self._after_configuration(start)
        key, strange = located.segment.key, set[Configuration]()
        closure = cache.of(key).closures.get(located.at)
        if closure is None:
            closure, strange = self._closure(located, start)
            if not strange:
                cache.add(key, located.at, closure)
        exits = {self._segments.configuration(located.segment, at) for at in closure.exits}
        return closure.n_inner, strange | exits

    def _closure(
        self, located: Located, start: Configuration
    ) -> tuple[Closure, set[Configuration]]:
        """Up to the cuts of a segment, and what is met that is not in the segment."""
        inner, exits, strange, todo = {start}, dict[At, None](), set[Configuration](), [start]
        while todo:
            check()
            for configuration in self._after_configuration(todo.pop()) - inner:
                found = self._segments.within(located.segment, *configuration)
                if found is None:
                    strange.add(configuration)
                elif found.is_cut:
                    exits[found.at] = None
                else:
                    inner.add(configuration)
                    todo.append(configuration)
        return Closure(len(inner), tuple(exits)), strange

    def _after_configuration(self, configuration: Configuration) -> set[Configuration]:
        if configuration not in self._after:
            self._after[configuration] = successors(
                self._rows.engine, configuration, self._rows.readable(*configuration)
            )
        return self._after[configuration]


# The eager engine: all configurations of a product and their dead sets, before any is visited.
#
#     configurations  contains  { (state pair, hypotheses) : some ids lead there from the start }
#
# and besides only what an id of a configuration's row leads to that may not follow each last id
# there.
#
# A state of CartesianMerge is a configuration with the last id, and its mask follows from the row
# of the configuration; so the rows of all configurations are the whole automaton, in as many
# numbers as the lift has. Written out with its transitions (`engine.explore`) it has one state for
# each last id.


class Where(NamedTuple):
    """A configuration, for any product of the same automata: the DFA's state, the text automaton's,
    and the number of the hypothesis set."""

    state: int
    text: int
    hypotheses: int


def all_configurations(engine: CartesianMerge, state: ProductState) -> list[Where]:
    """All configurations that ids lead to from a state, itself first. Their rows are found on the
    way."""
    first = (state.state_pair, state.hypotheses)
    found: dict[Configuration, None] = {first: None}
    todo = [first]
    while todo:
        check()
        here = todo.pop()
        for configuration in successors(engine, here, engine.relevance.readable(*here)):
            if configuration not in found:
                found[configuration] = None
                todo.append(configuration)
    memo = engine.tables.memo
    return [Where(int(memo.state[p]), int(memo.text_state[p]), number) for p, number in found]


def settle(engine: CartesianMerge, configurations: Iterable[Where]) -> int:
    """Find what is dead at each of these configurations; returns at how many anything is."""
    tables, relevance = engine.tables, engine.relevance
    states, texts, numbers = (
        np.fromiter(chain.from_iterable(configurations), np.int64).reshape(-1, 3).T
    )
    state_pairs = tables.state_pairs(states, texts)
    partly = np.flatnonzero(tables.statuses(state_pairs, numbers.copy()) == PARTLY)
    relevance.settle(state_pairs[partly], numbers[partly])
    found = zip(state_pairs[partly].tolist(), numbers[partly].tolist(), strict=True)
    return sum(map(relevance.any_dead, found))


def successors(
    engine: CartesianMerge, configuration: Configuration, row: Readable
) -> set[Configuration]:
    """Where the ids of a configuration's row lead, whatever the last id was."""
    tables, sets = engine.tables, engine.canonical.sets
    state_pairs, token_classes, start, ids = tables.edges(
        configuration[0], sets.sets[configuration[1]].utf8_row
    )
    free, bound = sets.successors(configuration[1])
    is_free, is_bound = (contained(side, ids) for side in row)
    leads: set[Configuration] = set()
    for side, after in ((is_free, free), (is_bound & ~is_free, bound)):
        groups = np.flatnonzero(_any(side, start))
        leads |= {
            *zip(state_pairs[groups].tolist(), after[token_classes[groups]].tolist(), strict=True)
        }
    for group in np.flatnonzero(_any(is_free & is_bound, start)).tolist():
        number = sets.union(int(free[token_classes[group]]), int(bound[token_classes[group]]))
        leads.add((int(state_pairs[group]), number))
    added, after = tables.added_steps(configuration[0])
    return leads | {(p, BEGINNING) for p in after[contained(row.free, added)].tolist()}


def _any(flags: np.ndarray, start: np.ndarray) -> np.ndarray:
    """bool [groups]: is any flag of the group set?"""
    total = np.concatenate([[0], np.cumsum(flags)])
    return total[start[1:]] > total[start[:-1]]
