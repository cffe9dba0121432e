"""A token automaton from a plain list of transitions, with states of any hashable kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import SupportsIndex

import numpy as np

from bpe_automata._arguments import short
from bpe_automata._budget import check
from bpe_automata._token_automata.table import (
    Table,
    checked_state,
    checked_states,
    checked_symbol,
    checked_symbols,
    from_edges,
)
from bpe_automata.errors import BudgetExceededError, MalformedAutomatonError, NondeterministicError

# The subset construction (Rabin and Scott 1959), with moves that read nothing.
#
# state after w  =  { q : some start --w--> q, moves without a symbol included }

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


# What an automaton is made of is looked at once, on the way in: symbols, states, spellings.


Transition = tuple[Hashable, SupportsIndex | None, Hashable]
_SPELLED = "(state, symbol, next state)"
_ADVICE = "give each state and symbol one next state, or ask for determinise=True"


def from_transitions(
    transitions: Iterable[Transition],
    start: Hashable,
    accepting: Iterable[Hashable],
    alphabet: Iterable[int] | None = None,
    spellings: Sequence[bytes] | None = None,
    determinise: bool = False,
    states: Iterable[Hashable] = (),
) -> Table:
    """The automaton of (state, symbol, next state), each of which may be given twice. `states`:
    those that are numbered first. See `TokenAutomaton.from_transitions`."""
    checked, final = list(_checked(transitions)), checked_states(accepting, "accepting")
    checked_state(start, "start")
    named = [state for source, _, target in checked for state in (source, target)]
    listed = dict.fromkeys((*checked_states(states, "states"), start, *named))
    number = {state: i for i, state in enumerate(listed)}
    _refuse_unknown(final, number)
    edges = {(number[p], symbol, number[q]) for p, symbol, q in checked}
    ends = np.zeros(len(number), dtype=np.bool_)
    ends[[number[state] for state in final]] = True
    if determinise:
        table = determinised(edges, ends, frozenset({number[start]}))
    else:
        _refuse_choice(checked)
        columns = np.array(list(edges), dtype=np.int64).reshape(-1, 3)
        table = from_edges(number[start], ends, *columns.T)
    given = table.alphabet
    if alphabet is not None:
        given = np.array(sorted(set(checked_symbols(alphabet, "alphabet"))), dtype=np.int64)
    parts = table.start, table.accepting, table.offsets, table.symbols, table.targets
    return Table(*parts, given, spellings)  # type: ignore[arg-type]  # made a tuple there


def _checked(
    transitions: Iterable[Transition],
) -> Iterator[tuple[Hashable, int | None, Hashable]]:
    for position, transition in enumerate(transitions):
        try:
            source, symbol, target = transition
            hash((source, target))
        except (TypeError, ValueError) as error:
            raise MalformedAutomatonError(
                f"transition {position} is {transition!r}, not {_SPELLED} with hashable states and "
                f"an integer (or None) as symbol: {error}"
            ) from None
        where = f"the symbol of transition {position}, {short(transition)},"
        yield source, None if symbol is None else checked_symbol(symbol, where), target


def _refuse_unknown(final: list[Hashable], number: dict[Hashable, int]) -> None:
    """An accepting state that nothing else names is most likely misspelled."""
    for state in final:
        if state not in number:
            raise MalformedAutomatonError(
                f"the accepting state {state!r} is in no transition: correct it, or name it in "
                "`states` if it is meant to be unreachable"
            )


def _refuse_choice(checked: list[tuple[Hashable, int | None, Hashable]]) -> None:
    """Raises NondeterministicError."""
    seen: dict[tuple[Hashable, int | None], Hashable] = {}
    for source, symbol, target in checked:
        before = seen.setdefault((source, symbol), target)
        if before != target or symbol is None:
            raise NondeterministicError((source, symbol, before), (source, symbol, target), _ADVICE)
