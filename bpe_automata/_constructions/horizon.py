"""How many ids it takes, exactly: the least number to acceptance, and what can be complete in time.

    least(state) = min { |w| : the engine accepts after w, from `state` }
    mask(state, k) = { n : some w with |w| < k, and the engine accepts after n w }

End-of-sequence is not counted. Lazy: only what the states that are visited depend on is looked at,
and of that only as much as the number asked for needs: bounds first, from below
(`_kernels.fewest_tokens`) and from above (`_kernels.shortest_texts`), and then `Search`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

import numpy as np

from bpe_automata._budget import Budget, check, spent
from bpe_automata._constructions.horizon_graph import NEVER, Graph, Source
from bpe_automata._constructions.horizon_search import Search
from bpe_automata._constructions.relevance import Readable
from bpe_automata._kernels.bits import set_bits
from bpe_automata._sharing import BoundedMemo, Lock, locked

_MOST_UNSURE = 64  # configurations from which a mask looks for ways before it opens its own
State = TypeVar("State", bound=Hashable)
Read = TypeVar("Read", bound=Hashable, contravariant=True)


class Reader(Source, Protocol[Read]):
    """A source that knows its engine's states."""

    def key(self, state: Read) -> int:
        """The configuration of a state."""

    def before(self, state: Read) -> tuple[int, int | None]:
        """(configuration, last id) of the state: of the configuration what is dead after the id
        counts; None: the configuration is one that nothing is bound to."""

    def at_most(self, key: int) -> int:
        """A bound on the ids from a configuration to acceptance, whatever the last id was; NEVER:
        none is known."""

    def bounded(self, key: int, k: int) -> bool:
        """Does surely no way from a configuration to acceptance take more than k ids?"""

    def unsure(self, key: int, k: int) -> list[int] | None:
        """Keys of configurations that ids of a configuration lead to, each once: all that are not
        dead and of which it is not known that k ids are enough to acceptance. None: nothing is
        known."""

    def plain(self, state: Read) -> np.ndarray:
        """The engine's own mask."""

    def mask(self, state: Read, free: np.ndarray, bound: np.ndarray) -> np.ndarray:
        """The packed mask that consists of these rows, end-of-sequence included, new."""


class Horizon(ABC, Generic[State]):
    """Of one engine; what has been found out is kept. For any number of threads."""

    lock: Lock
    budget: Budget | None

    @abstractmethod
    def least(self, state: State) -> int:
        """Ids from the state to the nearest accepting one. The state must be a relevant one."""

    @abstractmethod
    def reaches(self, state: State, k: int) -> bool:
        """Is `least(state)` at most k? Much cheaper where k is large."""

    @abstractmethod
    def mask(self, state: State, k: int) -> np.ndarray:
        """Packed int32 ids after which the text can be complete with k ids in all; and
        end-of-sequence, where the state accepts. Read-only."""


class GraphHorizon(Horizon[State]):
    """That of an engine whose configurations a reader gives."""

    def __init__(
        self, reader: Reader[State], lock: Lock | None = None, budget: Budget | None = None
    ) -> None:
        """lock: of the tables that the reader reads; by default one of its own. budget: of each
        later call."""
        self._reader, self.lock, self.budget = reader, lock or Lock(), budget
        self._graph = Graph(reader)
        self._search = Search(self._graph)
        self._plain_from: dict[int, int] = {}
        self._unsure_to: dict[int, int] = {}
        nothing = np.zeros(reader.n_words, dtype=np.int32)
        self._nothing = Readable(nothing, nothing)
        self._rows: BoundedMemo[tuple[int, int], Readable] = BoundedMemo(2 * nothing.nbytes)

    @spent
    @locked
    def least(self, state: State) -> int:
        key, last = self._reader.before(state)
        configuration = self._number(key)
        low = max(int(self._graph.lower[configuration]), self._reader.least(key))
        high: int | None = None
        more = 0
        while high is None or low < high:
            check()
            k = low + more if high is None else (low + high) // 2
            if self._reached(configuration, last, k):
                high = k
            else:
                low, more = max(k + 1, int(self._graph.lower[configuration])), 2 * more + 1
                if high is None and self._graph.final[configuration] < NEVER:
                    high = int(self._graph.final[configuration])
        return high

    @spent
    @locked
    def reaches(self, state: State, k: int) -> bool:
        key, last = self._reader.before(state)
        if self._reader.at_most(key) <= k or self._reader.bounded(key, k):
            return True
        return self._reached(self._number(key), last, k)

    @spent
    @locked
    def mask(self, state: State, k: int) -> np.ndarray:
        key = self._reader.key(state)
        if self._plain_from.get(key, NEVER) <= k or self._reader.bounded(key, k):
            return self._reader.plain(state)
        if k > 0:
            fewer = 1 << (int(k).bit_length() - 1)  # asked for once, not at each of many masks
            if self._surely_plain(key, fewer) or self._surely_plain(key, k):
                return self._reader.plain(state)
        row = self._row(key, k)
        if row is None:
            self._plain_from[key] = k
            return self._reader.plain(state)
        bits = self._reader.mask(state, *row)
        bits.flags.writeable = False
        return bits

    def _number(self, key: int) -> int:
        return int(self._graph.numbers(np.array([key]))[0])

    def _reached(self, configuration: int, last: int | None, k: int) -> bool:
        graph = self._graph
        graph.tighten(np.array([configuration], dtype=np.int32), k)
        ids = np.array([] if last is None else [last], dtype=np.int64)
        return bool(self._search.live(configuration, k, graph.reached_by(configuration, ids)).any())

    def _row(self, key: int, k: int) -> Readable | None:
        """The ids of a configuration by which acceptance can be reached with k ids; None: all of
        them."""
        if k <= 0:
            return self._nothing
        row = self._rows.get((key, k))
        if row is None:
            configuration, left, graph = self._number(key), k - 1, self._graph
            targets = graph.edges(configuration, NEVER).any
            graph.tighten(graph.open(targets, left), left)
            if not ((graph.final[targets] > left) & (graph.lower[targets] < NEVER)).any():
                return None
            spread = graph.spread(configuration, NEVER)
            row = Readable(
                *(self._side(configuration, side, left) for side in (spread.free, spread.bound))
            )
            self._rows.put((key, k), row)
        return row

    def _surely_plain(self, key: int, k: int) -> bool:
        """With k ids left, are all ids of a configuration live that are live with any number? True
        is proved by texts, and by a search from the few configurations where those say nothing;
        False proves nothing."""
        if self._plain_from.get(key, NEVER) <= k:
            return True
        if k <= self._unsure_to.get(key, 0):
            return False
        keys = self._reader.unsure(key, k - 1)
        if keys is not None and len(keys) <= _MOST_UNSURE:
            graph, left = self._graph, k - 1
            unsure = graph.numbers(np.array(keys, dtype=np.int64))
            for configuration in graph.open(unsure, left).tolist():
                self._search.live(configuration, left, graph.universe(configuration))
                if graph.final[configuration] > left:
                    break
            if (graph.final[unsure] <= left).all():
                self._plain_from[key] = min(k, self._plain_from.get(key, NEVER))
                return True
        self._unsure_to[key] = k
        return False

    def _side(self, configuration: int, side: np.ndarray, k: int) -> np.ndarray:
        """Packed: the ids of the configuration's groups that are not dead at level k where they
        lead."""
        graph = self._graph
        bits = self._nothing.free.copy()
        known = side >= 0
        whole = known & (graph.final[side] <= k) & graph.whole[side]
        set_bits(bits, graph.ids(configuration, NEVER, np.flatnonzero(whole)))
        partly = known & ~whole & (graph.lower[side] <= k)
        for target in np.unique(side[partly]).tolist():
            ids = graph.ids(configuration, NEVER, np.flatnonzero(side == target))
            live = self._search.live(target, k, graph.reached_by(target, ids))
            set_bits(bits, graph.among(ids, live))
        return bits
