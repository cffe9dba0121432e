"""Accepted sequences: the shortest, all in length-lexicographic order (shorter ones first, then by
symbol), how many there are, and uniform samples."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np

from bpe_automata._arguments import integer
from bpe_automata._budget import check
from bpe_automata._kernels.distance import NEVER
from bpe_automata._sharing import Lock, cached, locked
from bpe_automata._token_automata.table import (
    Groups,
    Table,
    distances,
    grouped,
    relevant,
    topological,
    trimmed,
)
from bpe_automata.errors import BudgetExceededError, EmptyLanguageError, InfiniteLanguageError


def shortest(table: Table, state: int | None = None) -> tuple[int, ...] | None:
    """The first sequence that leads from `state` (the start by default) to an accepting state."""
    distance, found = distances(table), list[int]()
    here = table.start if state is None else state
    if distance[here] == NEVER:
        return None
    while not table.accepting[here]:
        symbols, targets = table.row(here)
        first = int(np.argmax(distance[targets] == distance[here] - 1))
        found.append(int(symbols[first]))
        here = int(targets[first])
    return tuple(found)


def enumerated(
    table: Table, limit: int | None, max_length: int | None
) -> Iterator[tuple[int, ...]]:
    """All accepted sequences in order. See `TokenAutomaton.enumerate`."""
    limit = None if limit is None else integer(limit, "the limit")
    max_length = None if max_length is None else integer(max_length, "max_length")
    table = trimmed(table)
    if limit is None and max_length is None and topological(table) is None:
        raise InfiniteLanguageError(
            "infinitely many sequences are accepted: give a limit or a max_length"
        )
    return _by_length(table, limit, max_length)


def _by_length(
    table: Table, limit: int | None, max_length: int | None
) -> Iterator[tuple[int, ...]]:
    """`table` is trimmed. Only one sequence and a row of bool for each length are held."""
    groups = grouped(table)
    ends = [table.accepting]  # ends[k]: bool [n_states], accepts something of k symbols
    yielded = 0
    while ends[-1].any() and (max_length is None or len(ends) - 1 <= max_length):
        if ends[-1][table.start]:
            for word in _of_length(table, ends):
                check()
                if limit is not None and yielded >= limit:
                    raise BudgetExceededError("sequences", limit, "the language holds more")
                yielded += 1
                yield word
        ends.append(_one_longer(groups, ends[-1]))


def _one_longer(groups: Groups, ends: np.ndarray) -> np.ndarray:
    """bool [n_states]: does a transition lead to a state of `ends`?"""
    found = np.zeros(len(ends), dtype=np.bool_)
    busy = np.flatnonzero(np.diff(groups.offsets))
    if len(busy):
        found[busy] = np.logical_or.reduceat(ends[groups.target], groups.offsets[busy])
    return found


def _of_length(table: Table, ends: list[np.ndarray]) -> Iterator[tuple[int, ...]]:
    """The accepted sequences of len(ends) - 1 symbols, by symbol; there is at least one."""
    length, word = len(ends) - 1, list[int]()
    if not length:
        yield ()
        return
    stack = [_live(table, table.start, ends[length - 1])]
    while stack:
        for symbol, target in stack[-1]:
            word.append(symbol)
            if len(word) < length:
                stack.append(_live(table, target, ends[length - len(word) - 1]))
                break
            yield tuple(word)
            word.pop()
        else:
            stack.pop()
            del word[-1:]


def _live(table: Table, state: int, ends: np.ndarray) -> Iterator[tuple[int, int]]:
    """(symbol, target) of the transitions to a state of `ends`, by symbol."""
    symbols, targets = table.row(state)
    kept = ends[targets]
    return zip(symbols[kept].tolist(), targets[kept].tolist(), strict=True)


# Counting, exactly, and uniform sampling by numbers.
#
#     ways(s, 0) = [s accepts],   ways(s, k + 1) = sum over s --a--> t of ways(t, k)
#
# Transitions with the same source and target count as one with a multiplicity, so a state that
# reads 100,000 ids to the same target costs one addition. The k-th sequence of a state is found by
# subtracting the ways of its groups of transitions: one random number below the count makes a
# uniform sample.

_MOST_BYTES = 64_000_000  # of levels that are kept between two samples


class Counts:
    """The numbers of accepted sequences of one automaton, each found when first asked for."""

    def __init__(self, table: Table) -> None:
        self.lock = Lock()
        self._table = trimmed(table)
        self._empty = not relevant(self._table)[self._table.start]
        self._ends = np.array(list(map(int, self._table.accepting)), dtype=object)
        self._last = 0, self._ends  # the last length that was asked for, and its ways
        self._levels = [self._ends]  # of every length, for sampling

    @cached
    def _groups(self) -> Groups:
        return grouped(self._table)

    def of_length(self, length: int) -> int:
        """The number of accepted sequences of this length."""
        length = integer(length, "the length")
        return int(self._ways(length)[self._table.start]) if length >= 0 else 0

    def total(self) -> int:
        """The number of all accepted sequences. Raises InfiniteLanguageError."""
        return int(self._all[self._table.start])

    @locked
    def sample(self, rng: random.Random, length: int | None) -> tuple[int, ...]:
        """Each accepted sequence (of this length) with the same probability, exactly.

        Raises EmptyLanguageError, InfiniteLanguageError (no length)."""
        count = self.total() if length is None else self.of_length(length)
        if not count:
            of = "" if length is None else f" of length {length}"
            raise EmptyLanguageError(f"no sequence{of} is accepted, so there is no sample")
        if length is not None:
            self._level(length - 1)
        found = self._sequence(rng.randrange(count), length)
        if self._bytes_of_levels() > _MOST_BYTES:
            self._levels = [self._ends]
        return found

    def _sequence(self, k: int, length: int | None) -> tuple[int, ...]:
        """The sequence number k, in an order of our own; without a length, of all."""
        state, found = self._table.start, list[int]()
        while length is None or len(found) < length:
            check()
            if length is None:
                k -= int(self._table.accepting[state])
                if k < 0:
                    break
            ways = self._all if length is None else self._levels[length - len(found) - 1]
            symbol, state, k = _member(self._groups, state, k, ways)
            found.append(symbol)
        return tuple(found)

    def _ways(self, length: int) -> np.ndarray:
        """object [n_states]: Python integers. Only the last is kept."""
        at, ways = self._last if self._last[0] <= length else (0, self._ends)
        for _ in range(at, length):
            check()
            ways = _sums(self._groups, ways)
        self._last = length, ways
        return ways

    def _level(self, length: int) -> None:
        """Find the ways of every length up to this one."""
        while len(self._levels) <= length:
            check()
            self._levels.append(_sums(self._groups, self._levels[-1]))

    def _bytes_of_levels(self) -> int:
        """About: numbers grow evenly with the length."""
        bits = max(int(ways).bit_length() for ways in self._levels[-1])
        return len(self._levels) * self._table.n_states * (32 + bits // 16)

    @cached
    def _all(self) -> np.ndarray:
        """object [n_states]: of every length. Raises InfiniteLanguageError."""
        order = topological(self._table)
        if order is None:
            raise InfiniteLanguageError(
                "infinitely many sequences are accepted: count or sample those of one length"
            )
        ways = self._ends.copy()
        for state in order[::-1].tolist():
            ways[state] += _sum_of(self._groups, state, ways)
        return ways


def _sums(groups: Groups, ways: np.ndarray) -> np.ndarray:
    """object [n_states]: over a state's transitions, the sum of `ways` of their targets."""
    found = np.zeros(len(ways), dtype=object)
    busy = np.flatnonzero(np.diff(groups.offsets))
    if len(busy):
        weighted = groups.size.astype(object) * ways[groups.target]
        found[busy] = np.add.reduceat(weighted, groups.offsets[busy])
    return found


def _sum_of(groups: Groups, state: int, ways: np.ndarray) -> int:
    """The same for one state."""
    which = groups.of_state(state)
    sizes, targets = groups.size[which].tolist(), groups.target[which]
    return sum(n * w for n, w in zip(sizes, ways[targets].tolist(), strict=True))


def _member(groups: Groups, state: int, k: int, ways: np.ndarray) -> tuple[int, int, int]:
    """(symbol, target, number at the target) of a state's continuation number k."""
    group = int(groups.offsets[state])
    while k >= (here := int(groups.size[group]) * ways[groups.target[group]]):
        k -= here
        group += 1
    which, rest = divmod(k, ways[groups.target[group]])
    return int(groups.symbols[groups.first[group] + which]), int(groups.target[group]), rest
