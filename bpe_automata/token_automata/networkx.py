"""To and from networkx."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from bpe_automata.arguments import short
from bpe_automata.errors import MalformedAutomatonError, MissingDependencyError
from bpe_automata.token_automata.explain import symbol_text
from bpe_automata.token_automata.files import as_texts, from_ranges, from_texts, ranges
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
    # Texts, because GraphML and GML hold nothing else.
    graph = networkx.MultiDiGraph(alphabet=json.dumps(ranges(table.alphabet)))
    if table.spellings is not None:
        graph.graph["spellings"] = json.dumps(as_texts(table.spellings))
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
    if not hasattr(graph, "is_directed"):
        raise MalformedAutomatonError(f"{short(graph)} is no graph of networkx: give a DiGraph")
    if not graph.is_directed():
        raise MalformedAutomatonError(
            "the graph is not directed: an automaton's edges lead one way"
        )
    starts = _marked(graph, "start")
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
        _marked(graph, "accepting"),
        _kept(graph, "alphabet", from_ranges) if alphabet is None else alphabet,
        _kept(graph, "spellings", from_texts) if spellings is None else spellings,
        determinise,
        graph.nodes,
    )


def _marked(graph: Any, name: str) -> list[Any]:
    """The nodes with this attribute, a bool (GML makes it 0 or 1)."""
    for node, value in graph.nodes(data=name):
        if value not in (True, False, None):
            raise MalformedAutomatonError(f"the node {node!r} has {name}={value!r}, not a bool")
    return [node for node, value in graph.nodes(data=name) if value]


def _kept(graph: Any, name: str, parsed: Callable[[Any], Any]) -> Any:
    """What `to_networkx` wrote, or what somebody put there."""
    value = graph.graph.get(name)
    if not isinstance(value, str):
        return value
    try:
        return parsed(json.loads(value))
    except (ValueError, RecursionError) as error:
        raise MalformedAutomatonError(
            f"the graph's attribute {name} cannot be read: {error}"
        ) from None
