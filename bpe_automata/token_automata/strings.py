"""Accepted sequences in length-lexicographic order: shorter ones first, then by symbol."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bpe_automata.errors import BudgetExceededError, InfiniteLanguageError
from bpe_automata.kernels.token_table import NEVER
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
    table = trimmed(table)
    if limit is None and max_length is None and topological(table) is None:
        raise InfiniteLanguageError(
            "infinitely many sequences are accepted: give a limit or a max_length"
        )
    distance = distances(table)
    nearest = int(distance[table.start])
    if nearest == NEVER or (max_length is not None and nearest > max_length):
        return iter(())
    return _by_length(table, distance, limit, max_length)


def _by_length(
    table: Table, distance: np.ndarray, limit: int | None, max_length: int | None
) -> Iterator[tuple[int, ...]]:
    """At least one sequence is accepted, of at most `max_length`."""
    level: list[tuple[tuple[int, ...], int]] = [((), table.start)]
    yielded, length = 0, 0
    while level:
        # Each sequence of the level can be completed, and to different ones.
        if limit is not None and yielded + len(level) > limit:
            raise BudgetExceededError("sequences", limit, "the language holds more")
        for word, state in level:
            if table.accepting[state]:
                yielded += 1
                yield word
        length += 1
        left = None if max_length is None else max_length - length
        successors = {state: _live(table, distance, state, left) for _, state in level}
        level = [((*word, a), to) for word, state in level for a, to in successors[state]]


def _live(
    table: Table, distance: np.ndarray, state: int, left: int | None
) -> list[tuple[int, int]]:
    """(symbol, target) of the transitions after which acceptance is at most `left` away."""
    symbols, targets = table.row(state)
    if left is not None:
        near = distance[targets] <= left
        symbols, targets = symbols[near], targets[near]
    return list(zip(symbols.tolist(), targets.tolist(), strict=True))
