"""Boolean operations on sets of decoded texts and of numbers, quick where a set is all or nothing,
and remembered: a schema asks for the same few again and again.

Of some sets of texts only two bounds are known, least <= S <= most; they are computed with as

    least(A - B) = least(A) - most(B)        most(A - B) = most(A) - least(B)

and each bound by itself under union and intersection: so no text is ever in by mistake.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from bpe_automata.automata import algebra
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.sources import from_strings
from bpe_automata.schemas.numbers import NumberSet
from bpe_automata.schemas.values import ALL_NUMBERS, ALL_TEXTS, NO_NUMBER, NO_TEXT

_KEPT = 1024


@dataclass(frozen=True, eq=False)
class Listed(ByteDFA):
    """An automaton of a few texts that also knows them: `enum` and `const` make most sets of a
    schema, and sets of strings are compared much faster than automata."""

    texts: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False)
class Bounded(ByteDFA):
    """A set of texts between two: as an automaton it is the texts that are in it for sure. It is
    empty only if nothing may be in it."""

    least: ByteDFA = NO_TEXT
    most: ByteDFA = NO_TEXT

    @property
    def is_empty(self) -> bool:
        """Whether it is sure that no text is in the set."""
        return self.most.is_empty


def least(texts: ByteDFA) -> ByteDFA:
    """The texts that are in the set for sure."""
    return texts.least if isinstance(texts, Bounded) else texts


def most(texts: ByteDFA) -> ByteDFA:
    """The texts that may be in the set."""
    return texts.most if isinstance(texts, Bounded) else texts


def bounded(low: ByteDFA, high: ByteDFA) -> ByteDFA:
    """A set between two, of which the first is a part of the second."""
    if low is high or _same(low, high):
        return low
    return Bounded(low.trans, low.byte_class, low.accepting, low.start, low, high)


@lru_cache(maxsize=_KEPT)
def listed(texts: frozenset[str]) -> ByteDFA:
    """The set of some texts. Raises UnsupportedRegexError for a text that has no UTF-8."""
    if not texts:
        return NO_TEXT
    dfa = from_strings(texts)
    return Listed(dfa.trans, dfa.byte_class, dfa.accepting, dfa.start, texts)


def holds(texts: ByteDFA, text: str) -> bool:
    """Is a text in the set for sure?"""
    if isinstance(texts, Listed):
        return text in texts.texts
    return texts is ALL_TEXTS or texts.accepts(text.encode())


def meet_texts(one: ByteDFA, other: ByteDFA) -> ByteDFA:
    """{ w : w in one and in other }. Raises BudgetExceededError, as the next two do."""
    if one is other or other is ALL_TEXTS:
        return one
    if one is ALL_TEXTS:
        return other
    if NO_TEXT in (one, other):
        return NO_TEXT
    if isinstance(one, Bounded) or isinstance(other, Bounded):
        return _bounds(meet_texts, one, other)
    for few, many in ((one, other), (other, one)):
        if isinstance(few, Listed):
            return listed(frozenset(text for text in few.texts if holds(many, text)))
    return _meet(one, other)


def join_texts(one: ByteDFA, other: ByteDFA) -> ByteDFA:
    """{ w : w in one or in other }."""
    if one is other or other is NO_TEXT:
        return one
    if one is NO_TEXT:
        return other
    if ALL_TEXTS in (one, other):
        return ALL_TEXTS
    if isinstance(one, Bounded) or isinstance(other, Bounded):
        return _bounds(join_texts, one, other)
    if isinstance(one, Listed) and isinstance(other, Listed):
        return listed(one.texts | other.texts)
    return _join(one, other)


def less_texts(one: ByteDFA, other: ByteDFA) -> ByteDFA:
    """{ w : w in one and not in other }."""
    if one is other or other is ALL_TEXTS or one is NO_TEXT:
        return NO_TEXT
    if other is NO_TEXT:
        return one
    if isinstance(one, Bounded) or isinstance(other, Bounded):
        return _less_bounds(one, other)
    if isinstance(one, Listed):
        return listed(frozenset(text for text in one.texts if not holds(other, text)))
    return _less(one, other)


@lru_cache(maxsize=_KEPT)
def _bounds(
    operation: Callable[[ByteDFA, ByteDFA], ByteDFA], one: ByteDFA, other: ByteDFA
) -> ByteDFA:
    """Of an operation under which more texts give more texts."""
    low, high = operation(least(one), least(other)), operation(most(one), most(other))
    return bounded(low, high)


@lru_cache(maxsize=_KEPT)
def _less_bounds(one: ByteDFA, other: ByteDFA) -> ByteDFA:
    return bounded(less_texts(least(one), most(other)), less_texts(most(one), least(other)))


def canonical(dfa: ByteDFA) -> ByteDFA:
    """The same set, as the constant ALL_TEXTS or NO_TEXT if it is one of them."""
    if dfa.is_empty:
        return NO_TEXT
    return ALL_TEXTS if _same(dfa, ALL_TEXTS) else dfa


def _same(one: ByteDFA, other: ByteDFA) -> bool:
    """Minimal automata are numbered in one way, so that equal sets have equal arrays."""
    return (
        np.array_equal(one.trans, other.trans)
        and np.array_equal(one.byte_class, other.byte_class)
        and np.array_equal(one.accepting, other.accepting)
    )


@lru_cache(maxsize=_KEPT)
def _meet(one: ByteDFA, other: ByteDFA) -> ByteDFA:
    return canonical(algebra.intersection(one, other))


@lru_cache(maxsize=_KEPT)
def _join(one: ByteDFA, other: ByteDFA) -> ByteDFA:
    return canonical(algebra.union(one, other))


@lru_cache(maxsize=_KEPT)
def _less(one: ByteDFA, other: ByteDFA) -> ByteDFA:
    return canonical(algebra.difference(one, other))


def meet_numbers(one: NumberSet, other: NumberSet) -> NumberSet:
    """{ x : x in one and in other }. Raises BudgetExceededError, as the next two do."""
    if one is other or other is ALL_NUMBERS or one is NO_NUMBER:
        return one
    return other if one is ALL_NUMBERS or other is NO_NUMBER else _meet_numbers(one, other)


def join_numbers(one: NumberSet, other: NumberSet) -> NumberSet:
    """{ x : x in one or in other }."""
    if one is other or other is NO_NUMBER or one is ALL_NUMBERS:
        return one
    return other if one is NO_NUMBER or other is ALL_NUMBERS else _join_numbers(one, other)


def less_numbers(one: NumberSet, other: NumberSet) -> NumberSet:
    """{ x : x in one and not in other }."""
    if one is other or other is ALL_NUMBERS:
        return NO_NUMBER
    return one if other is NO_NUMBER or one is NO_NUMBER else _less_numbers(one, other)


@lru_cache(maxsize=_KEPT)
def _meet_numbers(one: NumberSet, other: NumberSet) -> NumberSet:
    return _known(one & other)


@lru_cache(maxsize=_KEPT)
def _join_numbers(one: NumberSet, other: NumberSet) -> NumberSet:
    return _known(one | other)


@lru_cache(maxsize=_KEPT)
def _less_numbers(one: NumberSet, other: NumberSet) -> NumberSet:
    return _known(one & ~other)


def _known(numbers: NumberSet) -> NumberSet:
    """The same set, as one of the constants if it is one of them."""
    if numbers.scientific == "none" and numbers.decimals.is_empty:
        return NO_NUMBER
    if numbers.scientific == "all" and _same(numbers.decimals, ALL_NUMBERS.decimals):
        return ALL_NUMBERS
    return numbers
