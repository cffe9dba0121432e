"""Are two languages equal? If not, a shortest sequence that is in one only.

Decided by union-find (Hopcroft and Karp, "A linear algorithm for testing equivalence of finite
automata", 1971); only where the answer is no are pairs of states searched breadth-first.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bpe_automata.kernels import token_table as kernels
from bpe_automata.kernels.watch import watched
from bpe_automata.token_automata.names import symbol_text
from bpe_automata.token_automata.reach import trimmed
from bpe_automata.token_automata.table import Table

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
