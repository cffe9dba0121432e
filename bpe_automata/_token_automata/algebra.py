"""Boolean operations, minimisation and equivalence of token automata. In a product of two automata
-1 stands for "no state any more".

    L(union) = L(one) | L(other),  L(intersection) = L(one) & L(other),
    L(difference) = L(one) - L(other),  L(complement) = alphabet* - L(table)

Only states within reach of the start are made, numbered breadth-first by symbol.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bpe_automata._kernels import token_table as kernels
from bpe_automata._kernels.minimise import blocks
from bpe_automata._kernels.token_table import by_head
from bpe_automata._kernels.watch import watched
from bpe_automata._limits import NUMBERS, check_fits
from bpe_automata._token_automata.explain import symbol_text
from bpe_automata._token_automata.table import Table, breadth_first, renumbered, trimmed
from bpe_automata.errors import BudgetExceededError

_ADVICE = (
    "the automata are too large to be combined; trim or minimise them first, or raise max_edges"
)


def union(one: Table, other: Table, max_edges: int) -> Table:
    """{ w : w in L(one) or w in L(other) }"""
    accepts, parts = _product(one, other, (False, False), max_edges)
    return Table(0, accepts[0] | accepts[1], *parts)


def intersection(one: Table, other: Table, max_edges: int) -> Table:
    """{ w : w in L(one) and w in L(other) }"""
    accepts, parts = _product(one, other, (True, True), max_edges)
    return Table(0, accepts[0] & accepts[1], *parts)


def difference(one: Table, other: Table, max_edges: int) -> Table:
    """{ w : w in L(one) and not w in L(other) }"""
    accepts, parts = _product(one, other, (True, False), max_edges)
    return Table(0, accepts[0] & ~accepts[1], *parts)


def complement(table: Table, max_edges: int) -> Table:
    """{ w in alphabet* : w not in L }. Every state then reads all of the alphabet, the last one
    being where the sequences go that `table` cannot read."""
    n, k = table.n_states, len(table.alphabet)
    if (n + 1) * k > max_edges:
        raise BudgetExceededError("edges", max_edges, f"{n + 1} states by {k} symbols are more")
    targets = np.full((n + 1, k), n, dtype=np.int32)
    targets[table.sources(), np.searchsorted(table.alphabet, table.symbols)] = table.targets
    accepting = np.append(~table.accepting, np.True_)
    offsets = np.arange(n + 2, dtype=np.int64) * k
    symbols = np.tile(table.alphabet, n + 1)
    parts = offsets, symbols, targets.reshape(-1), table.alphabet, table.spellings
    return Table(table.start, accepting, *parts)


_Parts = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, tuple[bytes, ...] | None]


def _product(
    one: Table, other: Table, need: tuple[bool, bool], max_edges: int
) -> tuple[tuple[np.ndarray, np.ndarray], _Parts]:
    """(who accepts in each pair, all but start and accepting of the product). `need`: must the
    first, the second have a state?"""
    pairs, offsets, symbols, targets, found = watched(
        kernels.product, one.rows(), other.rows(), *need, False, max_edges
    )
    if found == kernels.TOO_MANY:
        raise BudgetExceededError("edges", max_edges, _ADVICE)
    accepts = _accepts(one, pairs[:, 0]), _accepts(other, pairs[:, 1])
    alphabet = np.union1d(one.alphabet, other.alphabet)
    spellings = other.spellings if one.spellings is None else one.spellings
    return accepts, (offsets, symbols, targets, alphabet, spellings)


def _accepts(table: Table, states: np.ndarray) -> np.ndarray:
    return (states >= 0) & table.accepting[states]


# Minimisation: the smallest automaton of a language.
#
#     p ~ q  <=>  L(p) == L(q),   one state for each class of relevant states
#
# Its states are numbered breadth-first by symbol, so equal languages give equal arrays (up to the
# alphabet and the spellings, which are no part of the language).
# Source: A. Valmari, "Fast brief practical DFA minimization", IPL 112, 2012 (`_kernels.minimise`).


def minimised(table: Table) -> Table:
    """L(table), with as few states as there can be (a partial automaton has no dead state). Raises
    BudgetExceededError for 2**31 transitions."""
    table = trimmed(table)
    check_fits("transitions", len(table.targets), NUMBERS - 1, "more than are numbered")
    ptr, tail, edge = watched(by_head, table.offsets, table.targets)
    label = np.searchsorted(table.alphabet, table.symbols).astype(np.int32)[edge]
    block, _ = watched(blocks, ptr, tail, label, len(table.alphabet), table.accepting)
    _, one_of_each = np.unique(block, return_index=True)
    return breadth_first(renumbered(table, one_of_each, block))


# Equivalence: are two languages equal, and if not, which is a shortest sequence in only one?
#
# Decided by union-find (Hopcroft and Karp, "A linear algorithm for testing equivalence of finite
# automata", 1971); only where the answer is no are pairs of states searched breadth-first.

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
    """None if L(one) == L(other)."""
    one, other = trimmed(one), trimmed(other)
    if watched(kernels.same_language, one.rows(), other.rows()):
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
