"""The subset construction (Rabin and Scott 1959), with moves that read nothing.

state after w  =  { q : some start --w--> q, moves without a symbol included }
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from bpe_automata.budget import check
from bpe_automata.errors import BudgetExceededError
from bpe_automata.token_automata.table import Table, from_edges

Subset = frozenset[int]
_MOST_STATES = 1_000_000


def determinised(
    edges: Iterable[tuple[int, int | None, int]],
    accepting: np.ndarray,
    starts: Subset,
    most_states: int = _MOST_STATES,
) -> Table:
    """The deterministic automaton of (source, symbol, target), numbered breadth-first by symbol.

    symbol None: reads nothing. accepting: bool [n]. Raises BudgetExceededError over `most_states`.
    """
    out, silent = _by_source(edges)
    subsets = [_closed(starts, silent)]
    number = {subsets[0]: 0}
    found: list[tuple[int, int, int]] = []
    for source, subset in enumerate(subsets):  # grows while we go
        for symbol, target in _moves(subset, out, silent):
            check()
            if target not in number:
                number[target] = len(subsets)
                subsets.append(target)
            found.append((source, symbol, number[target]))
        if len(subsets) > most_states:
            advice = "a deterministic automaton may need as many as there are sets of states"
            raise BudgetExceededError("states", most_states, advice)
    ends = np.array([bool(accepting[list(subset)].any()) for subset in subsets])
    return from_edges(0, ends, *np.array(found, dtype=np.int64).reshape(-1, 3).T)


def _by_source(
    edges: Iterable[tuple[int, int | None, int]],
) -> tuple[dict[int, dict[int, set[int]]], dict[int, set[int]]]:
    """(source -> symbol -> targets, source -> targets of moves that read nothing)."""
    out: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    silent: dict[int, set[int]] = defaultdict(set)
    for source, symbol, target in edges:
        (silent[source] if symbol is None else out[source][symbol]).add(target)
    return out, silent


def _closed(states: Iterable[int], silent: dict[int, set[int]]) -> Subset:
    """With all that can be reached without reading."""
    found, todo = set(states), list(states)
    while todo:
        for target in silent.get(todo.pop(), ()):
            if target not in found:
                found.add(target)
                todo.append(target)
    return frozenset(found)


def _moves(
    subset: Subset, out: dict[int, dict[int, set[int]]], silent: dict[int, set[int]]
) -> list[tuple[int, Subset]]:
    """(symbol, subset after it), by symbol."""
    reads: dict[int, set[int]] = defaultdict(set)
    for state in subset:
        for symbol, targets in out.get(state, {}).items():
            reads[symbol] |= targets
    return [(symbol, _closed(reads[symbol], silent)) for symbol in sorted(reads)]
