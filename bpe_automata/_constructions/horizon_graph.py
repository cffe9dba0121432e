"""The configurations of an engine, and what is known so far of how far each is from acceptance.

A configuration is what the future depends on, apart from the last id r. With D(c, r) the least
number of ids to acceptance, there is for each configuration c

    dead_k(c) = { r : D(c, r) > k },    which only shrinks as k grows

    lower: dead_k is everything for all k < lower        final: dead_k stays the same for k >= final

`whole` configurations end with nothing dead. For most configurations of most languages nothing lies
in between.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from bpe_automata._kernels.edges import distinct
from bpe_automata._sharing import BoundedMemo

NEVER = 2**30
_BYTES_OF_SPREAD = 8_000
_FEW = 32
_FEW_OPENINGS = 2
_TYPES = (np.int32, np.int32, bool, np.int32, bool)


class Facts(NamedTuple):
    """Of configurations, at first sight. lower, final: int32, in ids (NEVER: unknown, or not at
    all); whole: bool; hint: int32, where to look first for a short way: smaller is nearer; seen:
    bool, need they not be looked at any closer?"""

    lower: np.ndarray
    final: np.ndarray
    whole: np.ndarray
    hint: np.ndarray
    seen: np.ndarray


class Spread(NamedTuple):
    """Where the ids of a configuration lead, in groups that lead alike. free, bound: for each group
    the configuration that it leads to with and without a boundary at the joint, -1: none. As int64
    keys when a source gives it, as int32 numbers from a graph."""

    free: np.ndarray
    bound: np.ndarray


class Edges(NamedTuple):
    """The distinct configurations that one leads to, int32: in any way, and whatever the last id
    was."""

    any: np.ndarray
    free: np.ndarray


class Source(Protocol):
    """Where the configurations come from. A configuration is known by its key, a non-negative
    int64."""

    @property
    def n_words(self) -> int:
        """Length of a packed set of ids."""

    @property
    def partial(self) -> bool:
        """Does it save work to leave out of a spread what is too far?"""

    def facts(self, keys: np.ndarray) -> Facts:
        """What is known of configurations at once."""

    def look(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(never, whole, final), bool and int: at second sight, does the configuration never
        accept, is it `whole`, and for which k is dead_k surely what it stays (NEVER: unknown)?"""

    def spread(self, key: int, k: int) -> Spread:
        """Where the groups of a configuration lead. Ids that leave more than k - 1 others to
        acceptance may be left out."""

    def step(self, key: int, token: int) -> tuple[int, int]:
        """The configurations that an id leads to with and without a boundary before it, -1: none,
        or it is not told. The id is one of `members` of some configuration."""

    def members(self, key: int, k: int, groups: np.ndarray) -> np.ndarray:
        """The ids of some groups of that spread, int64."""

    def lower(self, keys: np.ndarray, k: int) -> np.ndarray:
        """int32: bounds from below that are worth more time, as far as they concern k."""

    def least(self, key: int) -> int:
        """The best of such bounds."""

    def near(self, key: int) -> int:
        """About how many ids it takes from a configuration to acceptance, NEVER where that is not
        known."""

    def goal(self, key: int) -> np.ndarray | None:
        """The set of ids after which the configuration never accepts; None: none. Configurations
        that are `whole` at first sight are not asked for."""

    def universe(self, key: int) -> np.ndarray:
        """The set of ids by which the configuration can be reached, or more; new."""

    def reached_by(self, key: int, ids: np.ndarray) -> np.ndarray:
        """The set of some ids (int64) that lead to a configuration; of a configuration that nothing
        is bound to, the universe; new."""

    def following(self, ids: np.ndarray, candidates: np.ndarray) -> np.ndarray:
        """int64: those of the ids (int64), bound to it, that may follow some of a set, or more."""

    def narrow(self, ids: np.ndarray, candidates: np.ndarray) -> int:
        """Take out of a set what some of the ids (int64), bound to it, may follow: how many are
        left?"""

    def outside(self, ids: np.ndarray, dead: np.ndarray) -> np.ndarray:
        """int64: those of the ids (int64) that are not in a set; added tokens are in none."""


class Graph:
    """Configurations by number, in the order in which they were met, with bounds that get
    better."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.keys: list[int] = []
        self._numbers: dict[int, int] = {}
        self._edges: dict[tuple[int, int], Edges] = {}
        self._opened: dict[int, tuple[int, int]] = {}  # for how many ids, and how often
        self._spreads: BoundedMemo[tuple[int, int], Spread] = BoundedMemo(_BYTES_OF_SPREAD)
        self._goals: dict[int, np.ndarray | None] = {}
        self._room = Facts(*(np.zeros(1024, dtype=t) for t in _TYPES))

    @property
    def lower(self) -> np.ndarray:
        """int32 [configurations], writable."""
        return self._room.lower[: len(self.keys)]

    @property
    def final(self) -> np.ndarray:
        """int32 [configurations], writable."""
        return self._room.final[: len(self.keys)]

    @property
    def whole(self) -> np.ndarray:
        """bool [configurations], writable."""
        return self._room.whole[: len(self.keys)]

    @property
    def hint(self) -> np.ndarray:
        """int32 [configurations]."""
        return self._room.hint[: len(self.keys)]

    def numbers(self, keys: np.ndarray) -> np.ndarray:
        """int32: the numbers of configurations; new ones are met."""
        known = self._numbers
        if len(keys) <= _FEW:
            listed, which = keys.tolist(), None
        else:
            distinct, which = np.unique(keys, return_inverse=True)
            listed = distinct.tolist()
        fresh = [key for key in listed if key not in known]
        if fresh:
            self._meet(list(dict.fromkeys(fresh)))
        found = np.array([known[key] for key in listed], dtype=np.int32)
        return found if which is None else found[which.reshape(-1)]

    def spread(self, configuration: int, k: int) -> Spread:
        """By number; what leads to acceptance with k ids is not left out."""
        k = self.opened(configuration, k)
        found = self._spreads.get((configuration, k))
        if found is None:
            keyed = self.source.spread(self.keys[configuration], k)
            both = np.concatenate([keyed.free, keyed.bound])
            numbers = np.full(len(both), -1, dtype=np.int32)
            numbers[both >= 0] = self.numbers(both[both >= 0])
            found = Spread(numbers[: len(keyed.free)], numbers[len(keyed.free) :])
            _, times = self._opened.get(configuration, (0, 0))
            self._opened[configuration] = k, times + 1
            self._spreads.put((configuration, k), found)
        return found

    def edges(self, configuration: int, k: int) -> Edges:
        """The same, as sets."""
        at = configuration, self.opened(configuration, k)
        found = self._edges.get(at)
        if found is None:
            spread = self.spread(configuration, k)
            found = Edges(*distinct(spread.free, spread.bound))
            self._edges[at] = found
        return found

    def ids(self, configuration: int, k: int, groups: np.ndarray) -> np.ndarray:
        """int64: the ids of some groups of that spread."""
        return self.source.members(self.keys[configuration], self.opened(configuration, k), groups)

    def step(self, configuration: int, token: int) -> tuple[int, int]:
        """The configurations that an id leads to with and without a boundary, by number, -1:
        none."""
        found = self.source.step(self.keys[configuration], token)
        free, bound = (int(self.numbers(np.array([key]))[0]) if key >= 0 else -1 for key in found)
        return free, bound

    def opened(self, configuration: int, k: int) -> int:
        """For how many ids a configuration is opened: what it was opened for, if k is no more; k,
        where little is near enough, _FEW_OPENINGS times; else any number."""
        for_, times = self._opened.get(configuration, (0, 0))
        if k <= for_:
            return for_
        few = self.source.partial and k <= self.near(configuration, k) + 1
        return k if few and times < _FEW_OPENINGS else NEVER

    def near(self, configuration: int, k: int) -> int:
        """At most k: about how many ids it takes."""
        near = self.source.near(self.keys[configuration])
        return min(k, max(int(self.lower[configuration]), 0 if near == NEVER else near))

    def goal(self, configuration: int) -> np.ndarray | None:
        """dead_k of the configuration for large k; None: nothing is dead."""
        self.look(np.array([configuration]))
        if self.whole[configuration]:
            return None
        if configuration not in self._goals:
            goal = self.source.goal(self.keys[configuration])
            goal = None if goal is None else goal & self.universe(configuration)
            self._goals[configuration] = goal if goal is not None and goal.any() else None
            self.whole[configuration] = self._goals[configuration] is None
        return self._goals[configuration]

    def universe(self, configuration: int) -> np.ndarray:
        """The set of ids among which dead ones are told apart at the configuration, new."""
        return self.source.universe(self.keys[configuration])

    def reached_by(self, configuration: int, ids: np.ndarray) -> np.ndarray:
        """The set of some ids that lead to a configuration, new."""
        return self.source.reached_by(self.keys[configuration], ids)

    def among(self, ids: np.ndarray, live: np.ndarray) -> np.ndarray:
        """int64: those of the ids, all of which lead to one configuration, that are in a set of
        last ids. Those without a position in sets lead to configurations where all last ids are
        alike: they are in each set that is not empty."""
        return self.source.outside(ids, ~live) if live.any() else ids[:0]

    def open(self, configurations: np.ndarray, k: int) -> np.ndarray:
        """Those of the configurations of which dead_k is not settled by the bounds."""
        configurations = configurations[
            (self.lower[configurations] <= k) & (self.final[configurations] > k)
        ]
        self.look(configurations)
        return configurations[(self.lower[configurations] <= k) & (self.final[configurations] > k)]

    def tighten(self, configurations: np.ndarray, k: int) -> None:
        """Raise `lower` of configurations, where that helps to say that they are farther than k."""
        keys = np.array(
            [self.keys[configuration] for configuration in configurations.tolist()], dtype=np.int64
        )
        self.lower[configurations] = np.maximum(
            self.lower[configurations], self.source.lower(keys, k)
        )

    def look(self, configurations: np.ndarray) -> None:
        """Look closer at configurations, once."""
        configurations = configurations[~self._room.seen[configurations]]
        if len(configurations):
            keys = self.keys
            looked = self.source.look(
                np.array([keys[configuration] for configuration in configurations.tolist()])
            )
            never, whole, final = looked
            self.lower[configurations[never]] = NEVER
            self.whole[configurations[whole]] = True
            self.final[configurations] = np.minimum(self.final[configurations], final)
            self._room.seen[configurations] = True  # not if the source was stopped

    def _meet(self, keys: list[int]) -> None:
        n = len(self.keys)
        while n + len(keys) > len(self._room.lower):
            self._room = Facts(*(np.concatenate([a, np.zeros_like(a)]) for a in self._room))
        for have, new in zip(self._room, self.source.facts(np.array(keys)), strict=True):
            have[n : n + len(keys)] = new
        self.keys.extend(keys)  # first: an interrupt leaves no number without its configuration
        self._numbers.update(zip(keys, range(n, n + len(keys)), strict=True))
