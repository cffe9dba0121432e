"""Boolean operations, minimisation and equivalence of token automata. In a product, the state -1 of
an automaton means that it can read no more.

    L(union) = L(one) | L(other),  L(intersection) = L(one) & L(other),
    L(difference) = L(one) - L(other),  L(complement) = alphabet* - L(automaton)

Only states within reach of the start are made, numbered breadth-first by symbol.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from bpe_automata._budget import check
from bpe_automata._kernels.minimise import refine
from bpe_automata._limits import NUMBERS, check_fits
from bpe_automata.errors import BudgetExceededError
from bpe_automata.token_automata.explain import symbol_text
from bpe_automata.token_automata.graph import (
    by_head,
    edges_of,
    reached,
    renumbered,
    trimmed,
    with_only,
)
from bpe_automata.token_automata.strings import shortest
from bpe_automata.token_automata.table import AnyTable, Table

MOST_EDGES = 50_000_000
_NO_LIMIT = 2**62  # a search for the first difference ends there
_AT_ONCE = 1 << 16
_LOW = (1 << 32) - 1
_ADVICE = (
    "the automata are too large to be combined; trim or minimise them first, or raise max_edges"
)


def combined(
    one: AnyTable,
    other: Table,
    accepts: Callable[[np.ndarray, np.ndarray], np.ndarray],
    need: tuple[bool, bool],
    max_edges: int,
    until_accepted: bool = False,
) -> AnyTable:
    """{ w : accepts(w in L(one), w in L(other)) }. need: whether all of w must be readable in
    `one`, and in `other`. until_accepted: stop at a shortest such w. Raises BudgetExceededError.

    A pair (p, q) has the key (p + 1) * wide + q + 1. Pairs are expanded in order of discovery, as
    many at once as have `_AT_ONCE` transitions."""
    wide, n_edges, done = other.n_states + 1, 0, 0
    number, columns = {(one.start + 1) * wide + other.start + 1: 0}, [np.zeros((3, 0), np.int64)]
    keys, accepting = list(number), list[np.ndarray]()
    while done < len(keys):
        check()
        some = np.array(keys[done : done + _AT_ONCE])
        p, q = some // wide - 1, some % wide - 1
        sizes = np.cumsum(_sizes(one, p) + _sizes(other, q))
        p, q = (part[: max(1, int(np.searchsorted(sizes, _AT_ONCE)))] for part in (p, q))
        accepting.append(accepts(_accepts(one, p), _accepts(other, q)))
        if until_accepted and accepting[-1].any():
            break
        reads = _reads(one, p), _reads(other, q)
        read = np.union1d(reads[0][0], reads[1][0])
        after = np.zeros((2, len(read)), dtype=np.int64)
        for side, (symbols, targets) in enumerate(reads):
            after[side, np.searchsorted(read, symbols)] = targets + 1
        kept = ((after > 0) | ~np.array(need)[:, None]).all(axis=0)
        n_edges += int(np.count_nonzero(kept))
        if n_edges > max_edges:
            raise BudgetExceededError("edges", max_edges, _ADVICE)
        found = after[0, kept] * wide + after[1, kept]
        new, first, which = np.unique(found, return_index=True, return_inverse=True)
        keys += [key for key in new[np.argsort(first)].tolist() if key not in number]
        number.update(zip(keys[len(number) :], range(len(number), len(keys)), strict=True))
        targets = np.array([number[key] for key in new.tolist()], dtype=np.int64)[which]
        columns.append(np.stack([done + (read[kept] >> 32), read[kept] & _LOW, targets]))
        done += len(p)
    final = np.zeros(len(keys), dtype=np.bool_)
    final[: sum(map(len, accepting))] = np.concatenate(accepting)
    alphabet = np.union1d(one.alphabet, other.alphabet)
    spellings = other.spellings if one.spellings is None else one.spellings
    sources, symbols, targets = np.concatenate(columns, axis=1)
    return one.from_edges(0, final, sources, symbols, targets, alphabet, spellings)


def _sizes(automaton: Table, states: np.ndarray) -> np.ndarray:
    after = automaton.offsets[states + 1]
    return np.where(states < 0, 0, after - automaton.offsets[states])


def _reads(automaton: Table, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(index of the state << 32 | symbol, target) of each transition of these states, int64."""
    which = np.flatnonzero(states >= 0)
    edges = edges_of(automaton.offsets, states[which])
    owner = np.repeat(which, _sizes(automaton, states[which]))
    return owner << 32 | automaton.symbols[edges], automaton.targets[edges]


def _accepts(automaton: Table, states: np.ndarray) -> np.ndarray:
    return (states >= 0) & automaton.accepting[states]


def complement(automaton: AnyTable, max_edges: int = MOST_EDGES) -> AnyTable:
    """The sequences over `alphabet` that are not accepted. Raises BudgetExceededError over
    `max_edges`."""
    alphabet = automaton.alphabet
    to_itself = np.zeros_like(alphabet)
    every = automaton.from_edges(
        0, np.array([True]), to_itself, alphabet, to_itself, alphabet, automaton.spellings
    )
    return combined(every, automaton, np.greater, (True, False), max_edges)


def minimised(automaton: AnyTable) -> AnyTable:
    """The same language with as few states as there can be, one for each class of relevant states,
    p ~ q <=> L(p) == L(q). They are numbered breadth-first by symbol: equal languages over the same
    alphabet give equal arrays. Raises BudgetExceededError for 2**31 transitions.

    Source: A. Valmari, "Fast brief practical DFA minimization", IPL 112, 2012.
    """
    automaton = trimmed(automaton)
    check_fits("transitions", automaton.n_transitions, NUMBERS - 1, "more than are numbered")
    ptr, tail, edge = by_head(automaton)
    label = np.searchsorted(automaton.alphabet, automaton.symbols).astype(np.int32)[edge]
    block, _ = refine(ptr, tail, label, automaton.accepting)
    _, one_of_each = np.unique(block, return_index=True)
    merged = renumbered(automaton, one_of_each, block)
    return with_only(merged, reached(merged))


# Equivalence: are two languages equal, and if not, which is a shortest sequence in only one?


@dataclass(frozen=True)
class Counterexample:
    """ids: the first sequence, in length-lexicographic order, that only one automaton accepts;
    in_first: is that the first automaton? tokens: what the ids spell, made visible; empty if no
    spellings were given."""

    ids: tuple[int, ...]
    in_first: bool
    tokens: tuple[str, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        spelled = f" ({', '.join(self.tokens)})" if self.tokens else ""
        which = "first" if self.in_first else "second"
        return f"{list(self.ids)}{spelled} is in the {which} language only"


def equivalent(one: Table, other: Table) -> Counterexample | None:
    """None if the languages are equal; else the first sequence, in length-lexicographic order, that
    is in one only."""
    one, other = minimised(one), minimised(other)
    ids = shortest(combined(one, other, np.not_equal, (False, False), _NO_LIMIT, True))
    if ids is None:
        return None
    speller = other if one.spellings is None else one
    has_spellings = speller.spellings is not None
    tokens = tuple(symbol_text(speller, symbol) for symbol in ids) if has_spellings else ()
    return Counterexample(ids, one.accepts(ids), tokens)
