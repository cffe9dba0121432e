"""From an `interegular.fsm.FSM` over characters, whose `anything_else` stands for all characters
that its alphabet does not name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bpe_automata.errors import MalformedAutomatonError
from bpe_automata.token_automata.reach import trimmed
from bpe_automata.token_automata.table import Table
from bpe_automata.token_automata.transitions import from_transitions

_PLACEHOLDER = 0x110000  # no code point: stands for anything else, to see whether it matters


def from_interegular(
    fsm: Any, symbols: Mapping[str, int] | None = None, anything_else: Iterable[int] | None = None
) -> Table:
    """See `TokenAutomaton.from_interegular`."""
    named = _named(fsm)
    if symbols is None:
        found = {key: [ord(c) for c in letters] for key, letters in named.items()}
    else:
        found = {
            key: [symbols[c] for c in letters if c in symbols] for key, letters in named.items()
        }
        letters = {c for of_key in named.values() for c in of_key}
        if anything_else is None:
            anything_else = [number for c, number in symbols.items() if c not in letters]
    others = [_PLACEHOLDER] if anything_else is None else list(anything_else)
    for key, of_key in fsm.alphabet.by_transition.items():
        if len(list(of_key)) > len(named[key]):
            found[key] = found[key] + others
    table = _table(fsm, found)
    return _without_placeholder(fsm, table, found) if anything_else is None else table


def _named(fsm: Any) -> dict[Any, list[str]]:
    """The characters of each transition key."""
    keys = fsm.alphabet.by_transition
    return {key: [c for c in letters if isinstance(c, str)] for key, letters in keys.items()}


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
