"""Token automata from lists of transitions, and to and from networkx graphs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import Any, SupportsIndex

import numpy as np

from bpe_automata._arguments import integer, short
from bpe_automata._budget import check
from bpe_automata._optional import require
from bpe_automata.errors import (
    ArgumentError,
    BudgetExceededError,
    MalformedAutomatonError,
    NondeterministicError,
)
from bpe_automata.token_automata.explain import symbol_text
from bpe_automata.token_automata.table import Table

Transition = tuple[Hashable, SupportsIndex | None, Hashable]
_LARGEST = 2**31 - 1
_MOST_STATES = 1_000_000
_ADVICE = "give each state and symbol one next state, or ask for determinise=True"

_Edge = tuple[int, int | None, int]  # source, symbol, target
_Columns = tuple[int, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def numbered(
    listed: Iterable[Transition],
    start: Hashable,
    accepting: Iterable[Hashable],
    states: Iterable[Hashable],
) -> tuple[list[_Edge], np.ndarray, dict[Hashable, int]]:
    """(the transitions with numbers for states, bool [n] accepting, the number of each state). See
    `TokenAutomaton.from_transitions`. Raises MalformedAutomatonError."""
    checked = [_checked(at, each) for at, each in enumerate(_listed(listed, "transitions"))]
    named = [state for source, _, target in checked for state in (source, target)]
    ends = _listed(accepting, "accepting")
    try:
        number = {s: i for i, s in enumerate(dict.fromkeys((*states, start, *named)))}
        final = np.isin(np.arange(len(number)), [number[state] for state in ends])
    except TypeError as error:
        raise MalformedAutomatonError(
            f"a state, accepting or start is not hashable: {error}"
        ) from None
    except KeyError as error:
        raise MalformedAutomatonError(
            f"the accepting state {error.args[0]!r} is in no transition: correct it, or name it in "
            "`states` if it is meant to be unreachable"
        ) from None
    return [(number[p], symbol, number[q]) for p, symbol, q in checked], final, number


def _checked(position: int, transition: Any) -> tuple[Hashable, int | None, Hashable]:
    try:
        source, symbol, target = transition
        hash((source, target))
    except (TypeError, ValueError) as error:
        raise MalformedAutomatonError(
            f"transition {position} is {short(transition)}, not (state, symbol, next state) with "
            f"hashable states and an integer (or None) as symbol: {error}"
        ) from None
    if symbol is None:
        return source, None, target
    return source, _symbol(symbol, f"the symbol of transition {position}"), target


def _symbol(value: Any, name: str) -> int:
    try:
        found = integer(value, name)
    except ArgumentError as error:
        raise MalformedAutomatonError(str(error)) from None
    if not 0 <= found <= _LARGEST:
        raise MalformedAutomatonError(f"{name} is {found}: give an integer from 0 to {_LARGEST}")
    return found


def checked_alphabet(symbols: Iterable[int]) -> np.ndarray:
    """int64: the symbols, ascending, each once. Raises MalformedAutomatonError."""
    listed = _listed(symbols, "alphabet")
    found = [_symbol(value, f"alphabet at {at}") for at, value in enumerate(listed)]
    return np.array(sorted(set(found)), dtype=np.int64)


def _listed(values: Any, name: str) -> list[Any]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise MalformedAutomatonError(f"{name} is {short(values)}: give a list")
    return list(values)


def refuse_choice(edges: list[_Edge], states: list[Hashable]) -> None:
    """Raises NondeterministicError where a state has a choice of transitions."""
    seen: dict[tuple[int, int | None], int] = {}
    for source, symbol, target in edges:
        before = seen.setdefault((source, symbol), target)
        if before != target or symbol is None:
            first, second = ((states[source], symbol, states[after]) for after in (before, target))
            raise NondeterministicError(first, second, _ADVICE)


# The subset construction (Rabin and Scott 1959), with moves that read nothing.
#
# state after w  =  { q : start --w--> q on some path, which may also have moves without a symbol }


def determinised(edges: list[_Edge], accepting: np.ndarray, start: int) -> _Columns:
    """(start, accepting, sources, symbols, targets) of the deterministic automaton, numbered
    breadth-first by symbol. Raises BudgetExceededError over a million states."""
    out: dict[int, dict[int | None, set[int]]] = defaultdict(lambda: defaultdict(set))
    for source, symbol, target in edges:
        out[source][symbol].add(target)
    subsets, found = [_closed({start}, out)], list[tuple[int, int, int]]()
    number = {subsets[0]: 0}
    for source, subset in enumerate(subsets):  # grows while we go
        reads: dict[int | None, set[int]] = defaultdict(set)
        for state in subset:
            for symbol, targets in out[state].items():
                reads[symbol] |= targets
        for symbol in sorted(symbol for symbol in reads if symbol is not None):
            check()
            after = _closed(reads[symbol], out)
            found.append((source, symbol, number.setdefault(after, len(subsets))))
            subsets += [after] * (found[-1][2] == len(subsets))
        if len(subsets) > _MOST_STATES:
            advice = "a deterministic automaton may need as many as there are sets of states"
            raise BudgetExceededError("states", _MOST_STATES, advice)
    ends = np.array([bool(accepting[list(subset)].any()) for subset in subsets])
    return 0, ends, *np.array(found, dtype=np.int64).reshape(-1, 3).T


def _closed(states: set[int], out: dict[int, dict[int | None, set[int]]]) -> frozenset[int]:
    """The states, with all that can be reached from them without reading."""
    found, todo = set(states), list(states)
    while todo:
        new = out[todo.pop()].get(None, set()) - found
        found |= new
        todo += new
    return frozenset(found)


# Graphs of networkx.


def to_networkx(automaton: Table) -> Any:
    """A `networkx.MultiDiGraph`: nodes have accepting and start (bool), edges have symbol (int) and
    text (its visible spelling). Raises MissingDependencyError."""
    networkx = require("networkx", "pip install networkx")
    graph = networkx.MultiDiGraph()
    for state in automaton.states():
        accepting, start = bool(automaton.accepting[state]), state == automaton.start
        graph.add_node(state, accepting=accepting, start=start)
    for source, symbol, target in automaton.transitions():
        graph.add_edge(source, target, symbol=symbol, text=symbol_text(automaton, symbol))
    return graph


def of_networkx(graph: Any) -> tuple[list[Transition], Hashable, list[Hashable]]:
    """(transitions, start, accepting), see `TokenAutomaton.from_transitions`. Raises
    MalformedAutomatonError."""
    if not (hasattr(graph, "is_directed") and graph.is_directed()):
        raise MalformedAutomatonError(f"{short(graph)} is no directed graph: give a DiGraph")
    starts = [node for node, value in graph.nodes(data="start") if value]
    if len(starts) != 1:
        raise MalformedAutomatonError(
            f"{len(starts)} nodes of the graph have start=True, not one: {starts[:5]!r}"
        )
    transitions = []
    for source, target, attributes in graph.edges(data=True):
        if "symbol" not in attributes:
            edge = f"the edge from {source!r} to {target!r}"
            raise MalformedAutomatonError(f"{edge} has no attribute 'symbol'")
        transitions.append((source, attributes["symbol"], target))
    accepting = [node for node, value in graph.nodes(data="accepting") if value]
    return transitions, starts[0], accepting
