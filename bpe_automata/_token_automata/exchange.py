"""Token automata as graphs of networkx, and from automata of networkx and of interegular."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bpe_automata._arguments import short
from bpe_automata._optional import require
from bpe_automata._token_automata.explain import symbol_text
from bpe_automata._token_automata.files import as_texts, from_ranges, from_texts, ranges
from bpe_automata._token_automata.table import Table, trimmed
from bpe_automata._token_automata.table import checked_symbols as checked
from bpe_automata._token_automata.transitions import from_transitions
from bpe_automata.errors import MalformedAutomatonError


def to_networkx(table: Table) -> Any:
    """A `MultiDiGraph`. See `TokenAutomaton.to_networkx`."""
    networkx = require("networkx", "pip install networkx")
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


# From interegular: an `FSM` over characters, whose `anything_else` stands for all characters
# that its alphabet does not name.

_PLACEHOLDER = 0x110000  # no code point: stands for anything else, to see whether it matters
_MOST_SPELLED = 1 << 18


def from_interegular(
    fsm: Any,
    symbols: Mapping[str, int] | None = None,
    anything_else: Iterable[int] | None = None,
    spellings: Sequence[bytes] | None = None,
) -> Table:
    """See `TokenAutomaton.from_interegular`."""
    _check(fsm, symbols)
    named = _named(fsm, symbols is None)
    if symbols is None:
        found = {key: [ord(c) for c in letters] for key, letters in named.items()}
    else:
        found = {
            key: [symbols[c] for c in letters if c in symbols] for key, letters in named.items()
        }
        letters = {c for of_key in named.values() for c in of_key}
        if anything_else is None:
            anything_else = [number for c, number in symbols.items() if c not in letters]
    others = [_PLACEHOLDER]
    if anything_else is not None:
        others = checked(anything_else, "anything_else")
    for key, of_key in fsm.alphabet.by_transition.items():
        if len(list(of_key)) > len(named[key]):
            found[key] = found[key] + others
    table = _table(fsm, found)
    table = _without_placeholder(fsm, table, found) if anything_else is None else table
    spelled = _spellings(table, symbols) if spellings is None else spellings
    return replace(table, spellings=spelled)  # type: ignore[arg-type]  # made a tuple there


def _check(fsm: Any, symbols: Any) -> None:
    """Raises MalformedAutomatonError."""
    if not hasattr(fsm, "map") or not hasattr(fsm, "alphabet"):
        raise MalformedAutomatonError(
            f"{short(fsm)} is no FSM of interegular: give interegular.parse_pattern(regex).to_fsm()"
        )
    if symbols is not None and not isinstance(symbols, Mapping):
        raise MalformedAutomatonError(
            f"symbols is {short(symbols)}: give a mapping from characters to numbers"
        )


def _named(fsm: Any, code_points: bool) -> dict[Any, list[str]]:
    """The characters of each transition key. Raises MalformedAutomatonError for other symbols."""
    other = require("interegular.fsm", "pip install interegular").anything_else
    found = {
        key: [c for c in letters if c is not other]
        for key, letters in fsm.alphabet.by_transition.items()
    }
    for character in (c for letters in found.values() for c in letters):
        if not isinstance(character, str) or (code_points and len(character) != 1):
            raise MalformedAutomatonError(
                f"the FSM reads {short(character)}, not a character: build it over text"
            )
    return found


def _spellings(table: Table, symbols: Mapping[str, int] | None) -> list[bytes]:
    """What each number below `_MOST_SPELLED` spells, if it stands for one character that there can
    be in UTF-8; no bytes for the others."""
    used = [s for s in table.alphabet.tolist() if s < _MOST_SPELLED]
    if symbols is None:
        of_symbol = {s: chr(s) for s in used if s < _PLACEHOLDER}
    else:
        often = Counter(symbols.values())
        of_symbol = {number: c for c, number in symbols.items() if often[number] == 1}
    found = [b""] * (max(used, default=-1) + 1)
    for symbol in used:
        found[symbol] = of_symbol.get(symbol, "").encode(errors="ignore")
    return found


def _table(fsm: Any, found: Mapping[Any, list[int]]) -> Table:
    """`found`: the symbols of each transition key."""
    transitions = [
        (source, symbol, target)
        for source, targets in fsm.map.items()
        for key, target in targets.items()
        for symbol in found[key]
    ]
    alphabet = {symbol for of_key in found.values() for symbol in of_key}
    shared = sum(len(set(of_key)) for of_key in found.values()) > len(alphabet)
    return from_transitions(
        transitions, fsm.initial, fsm.finals, alphabet, None, shared, fsm.states
    )


def _without_placeholder(fsm: Any, table: Table, found: dict[Any, list[int]]) -> Table:
    if _PLACEHOLDER in trimmed(table).symbols:
        raise MalformedAutomatonError(
            "the FSM accepts texts with characters that its alphabet does not name, and there are "
            "over a million of those: give `anything_else`, the symbols that they are, or "
            "`symbols`, the number of each character"
        )
    for key, symbols in found.items():
        found[key] = [symbol for symbol in symbols if symbol != _PLACEHOLDER]
    return _table(fsm, found)
