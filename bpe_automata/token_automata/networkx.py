"""To and from networkx."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from typing import Any

from bpe_automata.errors import MalformedAutomatonError, MissingDependencyError
from bpe_automata.token_automata.names import symbol_text
from bpe_automata.token_automata.table import Table
from bpe_automata.token_automata.transitions import from_transitions


def to_networkx(table: Table) -> Any:
    """A `MultiDiGraph`. See `TokenAutomaton.to_networkx`."""
    try:
        networkx = importlib.import_module("networkx")
    except ImportError as error:
        raise MissingDependencyError(
            "a graph needs the package networkx: pip install networkx"
        ) from error
    graph = networkx.MultiDiGraph(alphabet=table.alphabet.tolist(), spellings=table.spellings)
    for state in table.states():
        graph.add_node(state, accepting=bool(table.accepting[state]), start=state == table.start)
    texts = {symbol: symbol_text(table, symbol) for symbol in set(table.symbols.tolist())}
    for source, symbol, target in table.transitions():
        graph.add_edge(source, target, symbol=symbol, text=texts[symbol])
    return graph


def from_networkx(
    graph: Any,
    symbol: str = "symbol",
    alphabet: Iterable[int] | None = None,
    spellings: Sequence[bytes] | None = None,
    determinise: bool = False,
) -> Table:
    """See `TokenAutomaton.from_networkx`."""
    if not graph.is_directed():
        raise MalformedAutomatonError(
            "the graph is not directed: an automaton's edges lead one way"
        )
    starts = [node for node, is_start in graph.nodes(data="start") if is_start]
    if len(starts) != 1:
        raise MalformedAutomatonError(
            f"{len(starts)} nodes of the graph have start=True, not one: {starts[:5]!r}"
        )
    transitions = []
    for source, target, attributes in graph.edges(data=True):
        if symbol not in attributes:
            raise MalformedAutomatonError(
                f"the edge from {source!r} to {target!r} has no attribute {symbol!r}"
            )
        transitions.append((source, attributes[symbol], target))
    return from_transitions(
        transitions,
        starts[0],
        [node for node, accepting in graph.nodes(data="accepting") if accepting],
        graph.graph.get("alphabet") if alphabet is None else alphabet,
        graph.graph.get("spellings") if spellings is None else spellings,
        determinise,
        graph.nodes,
    )
