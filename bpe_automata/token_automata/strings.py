"""Accepted sequences: the shortest, all in length-lexicographic order (shorter ones first, then by
symbol), how many there are, and uniform samples."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np

from bpe_automata._arguments import at_least, integer
from bpe_automata._budget import check
from bpe_automata._kernels.distance import NEVER
from bpe_automata.errors import BudgetExceededError, EmptyLanguageError, InfiniteLanguageError
from bpe_automata.token_automata.graph import distances, grouped, topological, trimmed
from bpe_automata.token_automata.table import Table


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

    The iterator is lazy: length by length, depth-first by symbol. It raises BudgetExceededError
    after the first `limit` sequences if there is one more. The call itself raises ArgumentError,
    and InfiniteLanguageError for an infinite language with neither limit nor max_length.
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
    """`enumerated`, for a trimmed automaton."""
    sources = automaton.sources()
    ends = [automaton.accepting]  # ends[k]: bool [n_states], some k symbols lead to acceptance
    yielded = 0
    while ends[-1].any() and (max_length is None or len(ends) - 1 <= max_length):
        waiting: list[tuple[tuple[int, ...], int]] = []  # a stack
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
        n_ways = np.bincount(sources, ends[-1][automaton.targets], automaton.n_states)
        ends.append(n_ways > 0)


# Exact counting, and uniform sampling by sequence numbers.
#
#     ways(s) = [s accepts] + sum over s --a--> t of ways(t), of all lengths
#     ways(s, 0) = [s accepts],   ways(s, k + 1) = sum over s --a--> t of ways(t, k)
#
# Transitions with the same source and target count as one with a multiplicity, so a state that
# reads 100,000 ids to the same target costs one addition. The k-th sequence of a state is found by
# subtracting the ways of its groups of transitions, so one random number below the count gives a
# uniform sample.


class Counts:
    """How many sequences (of one length, or of all) are accepted from each state."""

    def __init__(self, automaton: Table, length: int | None) -> None:
        """Raises ArgumentError; without a length InfiniteLanguageError."""
        self._automaton = automaton = trimmed(automaton)
        self._groups, self._length = grouped(automaton), length
        # Python integers are exact, however large.
        ends = automaton.accepting.astype(int).astype(object)
        if length is None:
            self._levels = [self._of_all_lengths(ends)]
        else:
            self._levels = [ends]  # of each length
            for _ in range(at_least(0, length, "the length")):
                after = [self._sum(state, self._levels[-1]) for state in range(automaton.n_states)]
                self._levels.append(np.array(after, dtype=object))
        self.total = int(self._levels[-1][automaton.start])

    def _of_all_lengths(self, ways: np.ndarray) -> np.ndarray:
        order = topological(self._automaton)
        if order is None:
            said = "infinitely many sequences are accepted: count or sample those of one length"
            raise InfiniteLanguageError(said)
        for state in order[::-1].tolist():
            ways[state] += self._sum(state, ways)
        return ways

    def _sum(self, state: int, ways: np.ndarray) -> int:
        check()
        which = self._groups.of_state(state)
        return int(sum(self._groups.size[which].tolist() * ways[self._groups.target[which]]))

    def sample(self, rng: random.Random) -> tuple[int, ...]:
        """A random sequence, each with exactly the same probability. Raises EmptyLanguageError."""
        if not self.total:
            of = "" if self._length is None else f" of length {self._length}"
            raise EmptyLanguageError(f"no sequence{of} is accepted, so there is no sample")
        number, state, found = rng.randrange(self.total), self._automaton.start, list[int]()
        while self._length is None or len(found) < self._length:
            check()
            if self._length is None:
                number -= int(self._automaton.accepting[state])
                if number < 0:
                    break
            ways = self._levels[-1 if self._length is None else self._length - len(found) - 1]
            symbol, state, number = self._member(state, number, ways)
            found.append(symbol)
        return tuple(found)

    def _member(self, state: int, k: int, ways: np.ndarray) -> tuple[int, int, int]:
        """(symbol, target, number of the rest at the target) of the state's k-th sequence."""
        groups = self._groups
        group = int(groups.offsets[state])
        while k >= (here := int(groups.size[group]) * ways[groups.target[group]]):
            k -= here
            group += 1
        target = int(groups.target[group])
        which, rest = divmod(k, ways[target])
        return int(groups.symbols_of(group)[which]), target, rest
