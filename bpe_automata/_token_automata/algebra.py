"""Boolean operations, minimisation and equivalence of token automata. In a product of two automata
-1 stands for "no state any more".

    L(union) = L(one) | L(other),  L(intersection) = L(one) & L(other),
    L(difference) = L(one) - L(other),  L(complement) = alphabet* - L(automaton)

Only states within reach of the start are made, numbered breadth-first by symbol.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from bpe_automata._automata.minimise import blocks
from bpe_automata._kernels import token_table as kernels
from bpe_automata._kernels.watch import watched
from bpe_automata._limits import NUMBERS, check_fits
from bpe_automata._token_automata.explain import symbol_text
from bpe_automata._token_automata.graph import by_head, reached, renumbered, trimmed, with_only
from bpe_automata._token_automata.table import AnyTable, Table
from bpe_automata.errors import BudgetExceededError

_ADVICE = (
    "the automata are too large to be combined; trim or minimise them first, or raise max_edges"
)


def combined(
    one: AnyTable,
    other: Table,
    accepts: Callable[[np.ndarray, np.ndarray], np.ndarray],
    need: tuple[bool, bool],
    max_edges: int,
) -> AnyTable:
    """{ w : accepts(w in L(one), w in L(other)) }. need: must the first, the second have read all
    of w for that? Raises BudgetExceededError."""
    pairs, offsets, symbols, targets, found = watched(
        kernels.product, one.rows(), other.rows(), *need, False, max_edges
    )
    if found == kernels.TOO_MANY:
        raise BudgetExceededError("edges", max_edges, _ADVICE)
    return replace(
        one,
        start=0,
        accepting=accepts(_accepts(one, pairs[:, 0]), _accepts(other, pairs[:, 1])),
        offsets=offsets,
        symbols=symbols,
        targets=targets,
        alphabet=np.union1d(one.alphabet, other.alphabet),
        spellings=other.spellings if one.spellings is None else one.spellings,
    )


def _accepts(automaton: Table, states: np.ndarray) -> np.ndarray:
    return (states >= 0) & automaton.accepting[states]


def complement(automaton: AnyTable, max_edges: int) -> AnyTable:
    """{ w in alphabet* : w not in L }. Every state then reads all of the alphabet, the last one
    being where the sequences go that `automaton` cannot read. Raises BudgetExceededError."""
    n, alphabet = automaton.n_states, automaton.alphabet
    k = len(alphabet)
    if (n + 1) * k > max_edges:
        raise BudgetExceededError("edges", max_edges, f"{n + 1} states by {k} symbols are more")
    targets = np.full((n + 1, k), n, dtype=np.int32)
    columns = np.searchsorted(alphabet, automaton.symbols)
    targets[automaton.sources(), columns] = automaton.targets
    return replace(
        automaton,
        accepting=np.append(~automaton.accepting, np.True_),
        offsets=np.arange(n + 2) * k,
        symbols=np.tile(alphabet, n + 1),
        targets=targets.reshape(-1),
    )


def minimised(automaton: AnyTable) -> AnyTable:
    """One state for each class of relevant states, p ~ q <=> L(p) == L(q). They are numbered
    breadth-first by symbol, so equal languages give equal arrays, up to the alphabet and the
    spellings. Raises BudgetExceededError for 2**31 transitions.

    Source: A. Valmari, "Fast brief practical DFA minimization", IPL 112, 2012.
    """
    automaton = trimmed(automaton)
    check_fits("transitions", automaton.n_transitions, NUMBERS - 1, "more than are numbered")
    ptr, tail, edge = by_head(automaton)
    label = np.searchsorted(automaton.alphabet, automaton.symbols).astype(np.int32)[edge]
    block, _ = blocks(ptr, tail, label, automaton.accepting)
    _, one_of_each = np.unique(block, return_index=True)
    merged = renumbered(automaton, one_of_each, block)
    return with_only(merged, reached(merged))


# Equivalence: are two languages equal, and if not, which is a shortest sequence in only one?

_MOST_EDGES = 2**62  # the search ends at the first difference


@dataclass(frozen=True)
class Counterexample:
    """ids: the first sequence, in length-lexicographic order, that only one automaton accepts;
    in_first: is it the first one? tokens: what the ids spell, visibly, where that is known."""

    ids: tuple[int, ...]
    in_first: bool
    tokens: tuple[str, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        spelled = f" ({', '.join(self.tokens)})" if self.tokens else ""
        which = "first" if self.in_first else "second"
        return f"{list(self.ids)}{spelled} is in the {which} language only"


def difference_of(one: Table, other: Table) -> Counterexample | None:
    """None if L(one) == L(other): then the minimal automata are the same. Else pairs of states are
    searched breadth-first for the first of which only one accepts."""
    one, other = minimised(one), minimised(other)
    arrays = zip(one.rows()[:-1], other.rows()[:-1], strict=True)
    if one.start == other.start and all(itertools.starmap(np.array_equal, arrays)):
        return None
    pairs, offsets, symbols, targets, found = watched(
        kernels.product, one.rows(), other.rows(), False, False, True, _MOST_EDGES
    )
    in_first = bool(pairs[found, 0] >= 0 and one.accepting[pairs[found, 0]])
    ids, speller = _word(offsets, symbols, targets, found), other if one.spellings is None else one
    known = speller.spellings is not None
    tokens = tuple(symbol_text(speller, symbol) for symbol in ids) if known else ()
    return Counterexample(ids, in_first, tokens)


def _word(
    offsets: np.ndarray, symbols: np.ndarray, targets: np.ndarray, found: int
) -> tuple[int, ...]:
    """Back along the first edge into each pair."""
    into = np.full(int(targets.max(initial=0)) + 1, -1, dtype=np.int64)
    into[targets[::-1]] = np.arange(len(targets))[::-1]
    word = []
    while found:
        edge = into[found]
        word.append(int(symbols[edge]))
        found = int(np.searchsorted(offsets, edge, side="right")) - 1
    return tuple(reversed(word))
