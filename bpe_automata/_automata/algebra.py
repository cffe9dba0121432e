"""Boolean and rational operations on byte DFAs, and the quotient by a text.

    L(union) = L(one) | L(other),  L(intersection) = L(one) & L(other),
    L(difference) = L(one) - L(other),  L(complement) = UTF-8 - L(dfa),
    L(after(dfa, u)) = { w : u w in L(dfa) },
    L(concatenation(a, b, ...)) = L(a) L(b) ...,  L(repeated(dfa, m, n)) = L(dfa)^m | ... | L(dfa)^n

UTF-8 is what `(?s:.*)` matches, every well-formed text: the complement never holds bytes that are
no text. Results are minimal, trimmed and numbered as those of `compile_regex` are, so that equal
languages have equal arrays.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from bpe_automata._automata.assembly import Assembly
from bpe_automata._automata.assembly import reduced as reduced  # also part of this module
from bpe_automata._automata.compile import compile_regex
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._budget import Budget, out_of_memory, out_of_states, spending
from bpe_automata._kernels.byte_product import OUT_OF_MEMORY, OUT_OF_STATES, Factors, product
from bpe_automata._kernels.watch import watched

_DEFAULT = Budget()


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


def any_of(dfas: Iterable[ByteDFA], budget: Budget = _DEFAULT) -> ByteDFA:
    """The union of any number of languages. This and the next two raise BudgetExceededError; the
    states are counted as `Assembly.dfa` counts them."""
    parts = Assembly()
    start, end = parts.state(), parts.state()
    parts.accept(end)
    for dfa in dfas:
        parts.put(start, dfa, end)
    return parts.dfa(start, budget)


def concatenation(*pieces: ByteDFA | bytes, budget: Budget = _DEFAULT) -> ByteDFA:
    """{ u v ... : u in L(pieces[0]), v in L(pieces[1]), ... }; bytes stand for one text. See
    `any_of`."""
    parts = Assembly()
    start = state = parts.state()
    for piece in pieces:
        after_it = parts.state()
        parts.put(state, piece, after_it)
        state = after_it
    parts.accept(state)
    return parts.dfa(start, budget)


def repeated(
    dfa: ByteDFA, fewest: int, most: int | None = None, budget: Budget = _DEFAULT
) -> ByteDFA:
    """{ u1 u2 ... un : each in L(dfa), fewest <= n <= most }, with no bound if most is None. See
    `any_of`."""
    parts = Assembly()
    start = state = parts.state()
    for count in range(fewest if most is None else most):
        if count >= fewest:
            parts.accept(state)
        after_it = parts.state()
        parts.put(state, dfa, after_it)
        state = after_it
    if most is None:
        parts.put(state, dfa, state)
    if most is None or most >= fewest:
        parts.accept(state)
    return parts.dfa(start, budget)


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
    columns = kinds // 256, kinds % 256
    sure = np.zeros(other.n_states, np.bool_) if sure is None else sure
    factors = Factors(one.trans, other.trans, *columns, one.accepting, sure, *need, restart)
    p, q = starts or (one.start, other.start)
    limits = budget.max_states, budget.max_bytes
    with spending(budget):
        status, pairs, trans = watched(product, factors, p, q, *limits)
    if status == OUT_OF_STATES:
        raise out_of_states(budget.max_states)
    if status == OUT_OF_MEMORY:
        raise out_of_memory(budget)
    return (trans, byte_class.ravel()), (pairs[:, 0], pairs[:, 1])


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


# { prefix w : w in L }.


def prepended(prefix: bytes, dfa: ByteDFA) -> ByteDFA:
    """The automaton that reads `prefix` first. Not minimal if `dfa` loops through its start."""
    if not prefix or dfa.is_empty:
        return dfa
    byte_class, trans = _told_apart(dfa, sorted(set(prefix)))
    n = len(trans)
    rows = np.zeros((len(prefix), trans.shape[1]), dtype=np.int32)
    for k, byte in enumerate(prefix):
        rows[k, byte_class[byte]] = dfa.start if k + 1 == len(prefix) else n + k + 1
    accepting = np.concatenate([dfa.accepting, np.zeros(len(prefix), dtype=bool)])
    return ByteDFA(np.concatenate([trans, rows]), byte_class, accepting, n)


def _told_apart(dfa: ByteDFA, letters: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """(byte_class, trans) in which each of the bytes `letters` has a column of its own."""
    columns = dfa.byte_class.astype(np.int64)
    columns[letters] = dfa.n_classes + np.arange(len(letters))
    _, first, byte_class = np.unique(columns, return_index=True, return_inverse=True)
    trans = np.ascontiguousarray(dfa.trans[:, dfa.byte_class[first]])
    return byte_class.ravel().astype(dfa.byte_class.dtype), trans
