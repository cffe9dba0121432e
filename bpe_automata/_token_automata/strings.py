"""Accepted sequences: the shortest, all in length-lexicographic order (shorter ones first, then by
symbol), how many there are, and uniform samples."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np

from bpe_automata._arguments import integer
from bpe_automata._budget import check
from bpe_automata._kernels.distance import NEVER
from bpe_automata._sharing import cached
from bpe_automata._token_automata.graph import Groups, distances, grouped, topological, trimmed
from bpe_automata._token_automata.table import Table
from bpe_automata.errors import BudgetExceededError, EmptyLanguageError, InfiniteLanguageError


def shortest(automaton: Table, state: int | None = None) -> tuple[int, ...] | None:
    """The first sequence, in length-lexicographic order, that leads from `state` (the start by
    default) to an accepting state; None if there is none."""
    distance, found = distances(automaton), list[int]()
    state = automaton.start if state is None else state
    if distance[state] == NEVER:
        return None
    while not automaton.accepting[state]:
        symbols, targets = automaton.row(state)
        first = int(np.argmax(distance[targets] == distance[state] - 1))
        found.append(int(symbols[first]))
        state = int(targets[first])
    return tuple(found)


def enumerated(
    automaton: Table, limit: int | None = None, max_length: int | None = None
) -> Iterator[tuple[int, ...]]:
    """All accepted sequences (of at most `max_length`) in length-lexicographic order.

    Lazy: length by length, depth-first by symbol. Raises BudgetExceededError after the first
    `limit` if there is one more; InfiniteLanguageError at once for an infinite language with
    neither limit nor max_length; ArgumentError.
    """
    limit = None if limit is None else integer(limit, "the limit")
    max_length = None if max_length is None else integer(max_length, "max_length")
    automaton = trimmed(automaton)
    if limit is None and max_length is None and topological(automaton) is None:
        raise InfiniteLanguageError(
            "infinitely many sequences are accepted: give a limit or a max_length"
        )
    return _by_length(automaton, limit, max_length)


def _by_length(
    automaton: Table, limit: int | None, max_length: int | None
) -> Iterator[tuple[int, ...]]:
    """`automaton` is trimmed."""
    groups = grouped(automaton)
    ends = [automaton.accepting]  # ends[k]: bool [n_states], accepts something of k symbols
    yielded = 0
    while ends[-1].any() and (max_length is None or len(ends) - 1 <= max_length):
        waiting: list[tuple[tuple[int, ...], int]] = []  # the next one is the last
        waiting += [((), automaton.start)] * bool(ends[-1][automaton.start])
        while waiting:
            check()
            word, state = waiting.pop()
            if len(word) == len(ends) - 1:
                if limit is not None and yielded >= limit:
                    raise BudgetExceededError("sequences", limit, "the language holds more")
                yielded += 1
                yield word
                continue
            symbols, targets = automaton.row(state)
            kept = np.flatnonzero(ends[-2 - len(word)][targets])[::-1]
            after = zip(symbols[kept].tolist(), targets[kept].tolist(), strict=True)
            waiting += [((*word, symbol), target) for symbol, target in after]
        ends.append(_sums(groups, ends[-1].astype(np.int64)) > 0)


# Counting, exactly, and uniform sampling by numbers.
#
#     ways(s, 0) = [s accepts],   ways(s, k + 1) = sum over s --a--> t of ways(t, k)
#
# Transitions with the same source and target count as one with a multiplicity, so a state that
# reads 100,000 ids to the same target costs one addition. The k-th sequence of a state is found by
# subtracting the ways of its groups of transitions: one random number below the count makes a
# uniform sample.


class Counts:
    """The numbers of accepted sequences of one automaton, each found when first asked for. Arrays
    of ways are object [n_states], Python integers."""

    def __init__(self, automaton: Table) -> None:
        self._automaton = trimmed(automaton)
        self._ends = np.array([int(accepts) for accepts in self._automaton.accepting], dtype=object)
        self._last = 0, self._ends  # the last length that was asked for, and its ways
        self._levels = [self._ends]  # of every length, for sampling

    @cached
    def _groups(self) -> Groups:
        return grouped(self._automaton)

    def of_length(self, length: int) -> int:
        """The number of accepted sequences of this length. Only the last array is kept."""
        length = integer(length, "the length")
        if length < 0:
            return 0
        at, ways = self._last
        if at > length:
            at, ways = 0, self._ends
        for _ in range(at, length):
            check()
            ways = _sums(self._groups, ways)
        self._last = length, ways
        return int(ways[self._automaton.start])

    def total(self) -> int:
        """The number of all accepted sequences. Raises InfiniteLanguageError."""
        return int(self._all[self._automaton.start])

    @cached
    def _all(self) -> np.ndarray:
        """Ways of any length. Raises InfiniteLanguageError."""
        order = topological(self._automaton)
        if order is None:
            raise InfiniteLanguageError(
                "infinitely many sequences are accepted: count or sample those of one length"
            )
        ways, groups = self._ends.copy(), self._groups
        for state in order[::-1].tolist():
            check()
            which = groups.of_state(state)
            ways[state] += sum(groups.size[which].tolist() * ways[groups.target[which]])
        return ways

    def sample(self, rng: random.Random, length: int | None) -> tuple[int, ...]:
        """Each accepted sequence (of this length) with the same probability, exactly.

        Raises EmptyLanguageError, InfiniteLanguageError (no length)."""
        count = self.total() if length is None else self.of_length(length)
        if not count:
            of = "" if length is None else f" of length {length}"
            raise EmptyLanguageError(f"no sequence{of} is accepted, so there is no sample")
        number, state, found = rng.randrange(count), self._automaton.start, list[int]()
        levels = [] if length is None else self._up_to(length)
        while length is None or len(found) < length:
            check()
            if length is None:
                number -= int(self._automaton.accepting[state])
                if number < 0:
                    break
            ways = self._all if length is None else levels[length - len(found) - 1]
            symbol, state, number = _member(self._groups, state, number, ways)
            found.append(symbol)
        return tuple(found)

    def _up_to(self, length: int) -> list[np.ndarray]:
        """The ways of every length below this one, and perhaps more."""
        levels = self._levels
        if len(levels) < length:
            levels = list(levels)
            while len(levels) < length:
                check()
                levels.append(_sums(self._groups, levels[-1]))
            self._levels = levels  # at once: other threads may be at work with the list before
        return levels


def _sums(groups: Groups, ways: np.ndarray) -> np.ndarray:
    """[n_states]: over a state's transitions, the sum of `ways` of their targets."""
    found = np.zeros_like(ways)
    busy = np.flatnonzero(np.diff(groups.offsets))
    if len(busy):
        weighted = groups.size.astype(ways.dtype) * ways[groups.target]
        found[busy] = np.add.reduceat(weighted, groups.offsets[busy])
    return found


def _member(groups: Groups, state: int, k: int, ways: np.ndarray) -> tuple[int, int, int]:
    """(symbol, target, number at the target) of a state's continuation number k."""
    group = int(groups.offsets[state])
    while k >= (here := int(groups.size[group]) * ways[groups.target[group]]):
        k -= here
        group += 1
    target = int(groups.target[group])
    which, rest = divmod(k, ways[target])
    return int(groups.symbols_of(group)[which]), target, rest
