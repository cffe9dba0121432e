"""Accepted sequences in length-lexicographic order: shorter ones first, then by symbol."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bpe_automata.arguments import integer
from bpe_automata.budget import check
from bpe_automata.errors import BudgetExceededError, InfiniteLanguageError
from bpe_automata.kernels.distance import NEVER
from bpe_automata.token_automata.groups import Groups, grouped
from bpe_automata.token_automata.reach import distances, topological, trimmed
from bpe_automata.token_automata.table import Table


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
