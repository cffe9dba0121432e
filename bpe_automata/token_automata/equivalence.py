"""Are two languages equal? If not, a shortest sequence that is in one only.

Decided by union-find (Hopcroft and Karp, "A linear algorithm for testing equivalence of finite
automata", 1971); only where the answer is no are pairs of states searched breadth-first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bpe_automata.kernels import token_table as kernels
from bpe_automata.token_automata.reach import trimmed
from bpe_automata.token_automata.table import Table

_MOST_EDGES = 2**62  # the search ends at the first difference


@dataclass(frozen=True)
class Counterexample:
    """ids: the first sequence, in length-lexicographic order, that only one automaton accepts;
    in_first: is it the first one?"""

    ids: tuple[int, ...]
    in_first: bool

    def __str__(self) -> str:
        return f"{list(self.ids)} is in the {'first' if self.in_first else 'second'} language only"


def difference_of(one: Table, other: Table) -> Counterexample | None:
    """None if L(one) == L(other)."""
    one, other = trimmed(one), trimmed(other)
    if kernels.same_language(one.rows(), other.rows()):
        return None
    pairs, offsets, symbols, targets, found = kernels.product(
        one.rows(), other.rows(), False, False, True, _MOST_EDGES
    )
    in_first = bool(pairs[found, 0] >= 0 and one.accepting[pairs[found, 0]])
    return Counterexample(_word(offsets, symbols, targets, found), in_first)


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
