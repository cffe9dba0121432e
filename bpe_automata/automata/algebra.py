"""Boolean and rational operations on byte DFAs, and the quotient by a text.

    L(union) = L(one) | L(other),  L(intersection) = L(one) & L(other),
    L(difference) = L(one) - L(other),  L(complement) = UTF-8 - L(dfa),
    L(after(dfa, u)) = { w : u w in L(dfa) },  L(concatenation(a, b, ...)) = L(a) L(b) ...

UTF-8 is what `(?s:.*)` matches, every well-formed text: the complement never holds bytes that are
no text. Results are minimal, trimmed and numbered as those of `compile_regex` are, so that equal
languages have equal arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

import numpy as np

from bpe_automata._budget import Budget, spending
from bpe_automata._kernels.products import product
from bpe_automata.automata.assembly import Assembly
from bpe_automata.automata.assembly import reduced as reduced  # also part of this module
from bpe_automata.automata.compile import compile_regex
from bpe_automata.automata.dfa import ByteDFA

_DEFAULT = Budget()


def union(one: ByteDFA, other: ByteDFA, budget: Budget = _DEFAULT) -> ByteDFA:
    """{ w : w in L(one) or w in L(other) }. This and the next three raise BudgetExceededError;
    max_states of the budget are states of the product here, over bytes."""
    return _product(one, other, np.logical_or, (False, False), budget)


def intersection(one: ByteDFA, other: ByteDFA, budget: Budget = _DEFAULT) -> ByteDFA:
    """{ w : w in L(one) and w in L(other) }. See `union`."""
    return _product(one, other, np.logical_and, (True, True), budget)


def difference(one: ByteDFA, other: ByteDFA, budget: Budget = _DEFAULT) -> ByteDFA:
    """{ w : w in L(one) and not w in L(other) }. See `union`."""
    return _product(one, other, np.greater, (True, False), budget)


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
    """The union of any number of languages. This and the next raise BudgetExceededError; the states
    are counted as `Assembly.dfa` counts them."""
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
    start = parts.state()
    parts.accept(parts.read(start, pieces))
    return parts.dfa(start, budget)


def _product(
    one: ByteDFA,
    other: ByteDFA,
    accepts: Callable[[np.ndarray, np.ndarray], np.ndarray],
    need: tuple[bool, bool],
    budget: Budget,
) -> ByteDFA:
    """{ w : accepts(w in L(one), w in L(other)) }. need: must the first, the second still lead to
    acceptance for that?"""
    joint = one.byte_class.astype(np.int64) * 256 + other.byte_class
    kinds, byte_class = np.unique(joint, return_inverse=True)
    factors = one.trans, other.trans, kinds // 256, kinds % 256, *need
    with spending(budget):
        pairs, trans = product(*factors, one.start, other.start, budget)
    ends = accepts(one.accepting[pairs[:, 0]], other.accepting[pairs[:, 1]])
    return reduced((trans, byte_class.ravel()), ends, 1, budget)
