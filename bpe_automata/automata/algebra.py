"""Boolean operations on byte DFAs, and the quotient by a text.

    L(union) = L(one) | L(other),  L(intersection) = L(one) & L(other),
    L(difference) = L(one) - L(other),  L(complement) = UTF-8 - L(dfa),
    L(after(dfa, u)) = { w : u w in L(dfa) }

UTF-8 is what `(?s:.*)` matches, every well-formed text: the complement never holds bytes that are
no text. Results are minimal, trimmed and numbered as those of `compile_regex` are, so that equal
languages have equal arrays.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from bpe_automata.automata.budget import Budget, Clock, out_of_memory, out_of_states
from bpe_automata.automata.compile import compile_regex
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.kernels.byte_product import (
    MORE,
    OUT_OF_MEMORY,
    OUT_OF_STATES,
    Factors,
    begun,
    product,
)
from bpe_automata.kernels.minimise import minimise
from bpe_automata.kernels.utf8 import breadth_first, renumber

_DEFAULT = Budget()
STEPS = 4_000_000  # cells between two looks at the clock: some 20 ms
_EDGE_BYTES = 48  # what minimisation keeps for one edge


def union(one: ByteDFA, other: ByteDFA, budget: Budget = _DEFAULT) -> ByteDFA:
    """{ w : w in L(one) or w in L(other) }. This and the next three raise BudgetExceededError;
    max_states of the budget are states of the product here, over bytes."""
    found, (p, q) = _product(one, other, (False, False), budget)
    return reduced(found, one.accepting[p] | other.accepting[q], 1, budget)


def intersection(one: ByteDFA, other: ByteDFA, budget: Budget = _DEFAULT) -> ByteDFA:
    """{ w : w in L(one) and w in L(other) }. See `union`."""
    found, (p, q) = _product(one, other, (True, True), budget)
    return reduced(found, one.accepting[p] & other.accepting[q], 1, budget)


def difference(one: ByteDFA, other: ByteDFA, budget: Budget = _DEFAULT) -> ByteDFA:
    """{ w : w in L(one) and not w in L(other) }. See `union`."""
    found, (p, q) = _product(one, other, (True, False), budget)
    return reduced(found, one.accepting[p] & ~other.accepting[q], 1, budget)


def complement(dfa: ByteDFA, budget: Budget = _DEFAULT) -> ByteDFA:
    """{ w in UTF-8 : not w in L(dfa) }. See `union`."""
    return difference(all_texts(), dfa, budget)


@lru_cache(maxsize=1)
def all_texts() -> ByteDFA:
    """Every well-formed text: `(?s:.*)`."""
    return compile_regex(r"(?s:.*)")


def after(dfa: ByteDFA, data: bytes, budget: Budget = _DEFAULT) -> ByteDFA:
    """{ w : data w in L(dfa) }. `data` may end inside a character. Raises BudgetExceededError."""
    return reduced((dfa.trans, dfa.byte_class), dfa.accepting, dfa.walk(data), budget)


def followed(one: ByteDFA, start: int, other: ByteDFA, budget: Budget = _DEFAULT) -> ByteDFA:
    """{ u v : u not empty, `one` accepts after u from state `start`, v in L(other) }.

    Only for an `other` that needs no choice: one character after its start it has failed, or will
    accept whatever text follows, as `(?s:.*)` and `(\\W(?s:.*))?` do. Raises BudgetExceededError.
    """
    one, start = _with_new_start(one, start)
    sure = _sure(other)
    options = (False, False)
    found, (_, q) = _product(one, other, options, budget, (start, 0), other.start, sure)
    return reduced(found, other.accepting[q], 1, budget)


def reduced(
    table: tuple[np.ndarray, np.ndarray], accepting: np.ndarray, start: int, budget: Budget
) -> ByteDFA:
    """The minimal trimmed DFA of a complete one, numbered breadth-first by byte.

    table: (trans int32 [n, k], row 0 all 0; byte_class [256]); accepting: bool [n]. Raises
    BudgetExceededError.
    """
    trans, byte_class = table
    if np.count_nonzero(trans) * _EDGE_BYTES > budget.max_bytes:
        raise out_of_memory(budget)
    if start >= len(trans):  # a product whose start is dead
        start = 0
    columns, byte_class = _by_first_byte(byte_class)
    trans = np.ascontiguousarray(trans[:, columns])
    trans, accepting, start, column = minimise(trans, accepting, start)
    trans, accepting = renumber(trans, accepting, breadth_first(trans, start))
    return ByteDFA(trans, column[byte_class].astype(np.uint8), accepting, min(int(start), 1))


def _by_first_byte(byte_class: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the old number of each column, the new column of each byte), in order of first byte."""
    used, first, inverse = np.unique(byte_class, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(used), np.int64)
    number[order] = np.arange(len(used))
    return used[order].astype(np.int64), number[inverse.ravel()]


def _product(
    one: ByteDFA,
    other: ByteDFA,
    need: tuple[bool, bool],
    budget: Budget,
    starts: tuple[int, int] | None = None,
    restart: int = 0,
    sure: np.ndarray | None = None,
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """((trans, byte_class) of the product, which starts in state 1; the parts of each state)."""
    joint = one.byte_class.astype(np.int64) * 256 + other.byte_class
    kinds, byte_class = np.unique(joint, return_inverse=True)
    a = np.ascontiguousarray(one.trans[:, kinds // 256])
    b = np.ascontiguousarray(other.trans[:, kinds % 256])
    sure = np.zeros(len(b), np.bool_) if sure is None else sure
    factors = Factors(a, b, one.accepting, sure, *need, restart)
    p, q = starts or (one.start, other.start)
    rows, clock, status = begun(factors, p, q), Clock(budget), MORE
    while status == MORE:
        status, rows = product(factors, rows, budget.max_states, budget.max_bytes, STEPS)
        if status == MORE:
            clock.check()
    if status == OUT_OF_STATES:
        raise out_of_states(budget)
    if status == OUT_OF_MEMORY:
        raise out_of_memory(budget)
    count = int(rows.counts[0])
    pairs = rows.pairs[:count]
    return (rows.trans[:count], byte_class.ravel()), (pairs[:, 0], pairs[:, 1])


def _with_new_start(dfa: ByteDFA, state: int) -> tuple[ByteDFA, int]:
    """One more state, that reads what `state` reads but does not accept."""
    trans = np.concatenate([dfa.trans, dfa.trans[state : state + 1]])
    accepting = np.append(dfa.accepting, np.False_)
    return ByteDFA(trans, dfa.byte_class, accepting, len(dfa.trans)), len(dfa.trans)


@lru_cache(maxsize=8)
def _sure(dfa: ByteDFA) -> np.ndarray:
    """bool [n]: the states from which `dfa` will accept every text, or every text that goes on
    well-formed from inside a character."""
    whole, sure = all_texts(), np.zeros(dfa.n_states, np.bool_)
    for state in np.flatnonzero(dfa.accepting).tolist():
        same = reduced((dfa.trans, dfa.byte_class), dfa.accepting, state, _DEFAULT)
        sure[state] = same.n_states == whole.n_states and np.array_equal(same.trans, whole.trans)
    inside = np.flatnonzero(sure)
    while len(inside):
        inside = np.unique(dfa.trans[inside])
        inside = inside[(inside > 0) & ~sure[inside]]
        sure[inside] = True
    return sure
