"""A token automaton from a plain list of transitions, with states of any hashable kind."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import SupportsIndex

import numpy as np

from bpe_automata.arguments import short
from bpe_automata.errors import MalformedAutomatonError, NondeterministicError
from bpe_automata.token_automata import checks
from bpe_automata.token_automata.determinise import determinised
from bpe_automata.token_automata.table import Table, from_edges

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
    checked, final = list(_checked(transitions)), checks.states(accepting, "accepting")
    checks.state(start, "start")
    named = [state for source, _, target in checked for state in (source, target)]
    listed = dict.fromkeys((*checks.states(states, "states"), start, *named))
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
        given = np.array(sorted(set(checks.symbols(alphabet, "alphabet"))), dtype=np.int64)
    parts = table.start, table.accepting, table.offsets, table.symbols, table.targets
    return Table(*parts, given, spellings)  # type: ignore[arg-type]  # made a tuple there


def _checked(
    transitions: Iterable[Transition],
) -> Iterator[tuple[Hashable, int | None, Hashable]]:
    for place, transition in enumerate(transitions):
        try:
            source, symbol, target = transition
            hash((source, target))
        except (TypeError, ValueError) as error:
            raise MalformedAutomatonError(
                f"transition {place} is {transition!r}, not {_SPELLED} with hashable states and an "
                f"integer (or None) as symbol: {error}"
            ) from None
        where = f"the symbol of transition {place}, {short(transition)},"
        yield source, None if symbol is None else checks.symbol(symbol, where), target


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
