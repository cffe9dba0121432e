"""Computes Boolean operations on sets of strings or of numbers, with results kept in caches, and
the strings of a set that have a bounded length.

Strings are not escaped. Some sets S of strings are given only by two bounds, lower <= S <= upper.
A union or an intersection applies to each bound by itself, and

    lower(A - B) = lower(A) - upper(B)        upper(A - B) = upper(A) - lower(B)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from bpe_automata._budget import Budget, spending
from bpe_automata._kernels.products import counted
from bpe_automata._sharing import cached
from bpe_automata.automata import algebra
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.minimise import equal_columns, numbered
from bpe_automata.automata.sources import from_strings
from bpe_automata.automata.utf8 import bytes_to_go
from bpe_automata.errors import UnsupportedSchemaError

ALL_STRINGS = algebra.all_texts()
NO_TEXT = from_strings(())
"""The empty set of strings, or of numbers."""
_CACHED = 1024
_FEW = 300  # characters that an automaton counts one by one
_DEFAULT = Budget()


class _Lazy(ByteDFA):
    """An automaton that `find()` makes when it is first needed. Its language is not empty."""

    _find: Callable[[], ByteDFA]

    def __init__(self, find: Callable[[], ByteDFA], **fields: Any) -> None:
        self.__dict__.update(fields, _find=find)  # the class is frozen

    @cached
    def _written(self) -> ByteDFA:
        return self._find()

    @property
    def trans(self) -> np.ndarray:
        return self._written.trans

    @property
    def byte_class(self) -> np.ndarray:
        return self._written.byte_class

    @property
    def accepting(self) -> np.ndarray:
        return self._written.accepting

    @property
    def start(self) -> int:
        return self._written.start

    @property
    def is_empty(self) -> bool:
        return False


class Finite(_Lazy):
    """A set of one or more listed strings. Most come from `enum` and `const`, and Python compares
    sets of strings much faster than automata, which are made only where they are needed."""

    elements: frozenset[str]


class Bounded(_Lazy):
    """A set of strings that is given by two bounds; the upper one is computed when it is first
    needed. As an automaton it is the lower one, but it is empty only if the upper one is."""

    lower: ByteDFA
    _find_upper: Callable[[], ByteDFA]

    def __init__(self, lower: ByteDFA, find_upper: Callable[[], ByteDFA]) -> None:
        super().__init__(lambda: lower, lower=lower, _find_upper=find_upper)

    @cached
    def upper(self) -> ByteDFA:
        """The strings that may be in the set."""
        return self._find_upper()

    def accepts(self, data: bytes) -> bool:
        return self.lower.accepts(data)

    @property
    def is_empty(self) -> bool:
        """Whether the set certainly has no string."""
        return self.lower.is_empty and self.upper.is_empty


class Limited(_Lazy):
    """The strings of `base` that have at most `most` characters, where `most` is large. Their
    automaton is made only if it is needed after all, which may raise BudgetExceededError. Requires
    that `base` has a string of at most `most` bytes."""

    base: ByteDFA
    most: int

    def accepts(self, data: bytes) -> bool:
        return self.base.accepts(data) and len(data.decode()) <= self.most


@lru_cache(maxsize=_CACHED)
def of_length(strings: ByteDFA, fewest: int, most: int | None) -> ByteDFA:
    """The strings of a set with `fewest` to `most` characters, None for no upper bound."""
    if isinstance(strings, Bounded):
        low, high = (of_length(bound, fewest, most) for bound in (strings.lower, strings.upper))
        return bounded(low, high)
    base = canonical(within_length(strings, fewest, None))
    shortest = base.shortest()
    if most is None or most <= _FEW or shortest is None or len(shortest) > most:
        return canonical(within_length(base, 0, most))
    return Limited(partial(within_length, base, 0, most), base=base, most=most)


def lower_bound(strings: ByteDFA) -> ByteDFA:
    """The strings that are certainly in the set."""
    return strings.lower if isinstance(strings, Bounded) else strings


def _upper_bound(strings: ByteDFA) -> ByteDFA:
    return strings.upper if isinstance(strings, Bounded) else strings


def bounded(low: ByteDFA, high: ByteDFA) -> ByteDFA:
    """A set with two bounds, the first a subset of the second."""
    if low is high or _same(low, high):
        return low
    return Bounded(low, lambda: high)


@lru_cache(maxsize=_CACHED)
def finite(strings: frozenset[str]) -> ByteDFA:
    """The set of some strings, none with an unpaired surrogate: see `_sources.as_json`."""
    return Finite(partial(from_strings, strings), elements=strings) if strings else NO_TEXT


def contains(strings: ByteDFA, string: str) -> bool:
    """Whether a string is certainly in the set."""
    if isinstance(strings, Finite):
        return string in strings.elements
    return strings is ALL_STRINGS or strings.accepts(string.encode())


def intersect(one: ByteDFA, other: ByteDFA, every: ByteDFA = ALL_STRINGS) -> ByteDFA:
    """{ w : w in one and in other }. every: ALL_NUMBERS for sets of numbers. Raises
    BudgetExceededError, as do the two below."""
    if one is other or other is every or one is NO_TEXT:
        return one
    if one is every or other is NO_TEXT:
        return other
    if isinstance(one, Bounded) or isinstance(other, Bounded):
        return _bounds(intersect, one, other)
    for few, many in ((one, other), (other, one)):
        if isinstance(few, Finite):
            return finite(frozenset(string for string in few.elements if contains(many, string)))
    if isinstance(one, Limited) or isinstance(other, Limited):
        return _limited_both(one, other)
    return _found(algebra.intersection, one, other, every)


def unite(one: ByteDFA, other: ByteDFA, every: ByteDFA = ALL_STRINGS) -> ByteDFA:
    """{ w : w in one or in other }."""
    if one is other or other is NO_TEXT or one is every:
        return one
    if one is NO_TEXT or other is every:
        return other
    if isinstance(one, Bounded) or isinstance(other, Bounded):
        return _bounds(unite, one, other)
    if isinstance(one, Finite) and isinstance(other, Finite):
        return finite(one.elements | other.elements)
    return _found(algebra.union, one, other, every)


def subtract(one: ByteDFA, other: ByteDFA, every: ByteDFA = ALL_STRINGS) -> ByteDFA:
    """{ w : w in one and not in other }."""
    if one is other or other is every or one is NO_TEXT:
        return NO_TEXT
    if other is NO_TEXT:
        return one
    if isinstance(one, Bounded) or isinstance(other, Bounded):
        return _less_bounds(one, other)
    if isinstance(one, Finite):
        return finite(frozenset(string for string in one.elements if not contains(other, string)))
    return _found(algebra.difference, one, other, every)


@lru_cache(maxsize=_CACHED)
def _limited_both(one: ByteDFA, other: ByteDFA) -> ByteDFA:
    bases = [s.base if isinstance(s, Limited) else s for s in (one, other)]
    most = min(s.most for s in (one, other) if isinstance(s, Limited))
    return of_length(intersect(*bases), 0, most)


@lru_cache(maxsize=_CACHED)
def _bounds(
    operation: Callable[[ByteDFA, ByteDFA], ByteDFA], one: ByteDFA, other: ByteDFA
) -> ByteDFA:
    """The bounds of a result of union or intersection."""
    low = operation(lower_bound(one), lower_bound(other))
    return bounded(low, operation(_upper_bound(one), _upper_bound(other)))


@lru_cache(maxsize=_CACHED)
def _less_bounds(one: ByteDFA, other: ByteDFA) -> ByteDFA:
    return bounded(
        subtract(lower_bound(one), _upper_bound(other)),
        subtract(_upper_bound(one), lower_bound(other)),
    )


def canonical(dfa: ByteDFA, every: ByteDFA = ALL_STRINGS) -> ByteDFA:
    """The same set; if it equals `every` or NO_TEXT, that constant."""
    if dfa.is_empty:
        return NO_TEXT
    return every if _same(dfa, every) else dfa


def _same(one: ByteDFA, other: ByteDFA) -> bool:
    """Whether two sets are equal, which the arrays decide, since minimal automata are numbered
    canonically. Also False where a `Limited` set would have to be written out to decide."""
    if isinstance(one, Finite) and isinstance(other, Finite):
        return one.elements == other.elements
    if isinstance(one, Limited) and isinstance(other, Limited):
        return one.most == other.most and _same(one.base, other.base)
    if isinstance(one, Limited) or isinstance(other, Limited):
        return False
    return (
        np.array_equal(one.trans, other.trans)
        and np.array_equal(one.byte_class, other.byte_class)
        and np.array_equal(one.accepting, other.accepting)
    )


@lru_cache(maxsize=3 * _CACHED)
def _found(
    operation: Callable[[ByteDFA, ByteDFA], ByteDFA], one: ByteDFA, other: ByteDFA, every: ByteDFA
) -> ByteDFA:
    return canonical(operation(one, other), every)


def contains_name(names: ByteDFA, name: str, pointer: str) -> bool:
    """Whether a name is in a set. Raises UnsupportedSchemaError if that is not decided."""
    found = contains(names, name)
    if isinstance(names, Bounded) and found != contains(names.upper, name):
        why = f"it is not decided whether the name {name!r} is of the format"
        raise UnsupportedSchemaError("format", pointer, why)
    return found


# Lengths are bounded layer by layer, in time linear in the result; a product with
# `(?s:.{0,65535})`, and minimising it, would take seconds. A character is a code point, as in JSON
# Schema.


def within_length(
    dfa: ByteDFA, fewest: int, most: int | None, budget: Budget = _DEFAULT
) -> ByteDFA:
    """{ w in L(dfa) : fewest <= characters of w <= most }, no upper bound if most is None.

    dfa: minimal, trimmed, of well-formed UTF-8, as all of `automata` makes them; so is the result.
    Raises BudgetExceededError if the table would take more than the budget's bytes.
    """
    if fewest <= 0 and most is None:
        return dfa
    if dfa.start == 0 or (most is not None and most < max(fewest, 0)):
        return from_strings(())
    bounds = max(fewest, 0), -1 if most is None else most
    given = dfa.trans, dfa.accepting, bytes_to_go(dfa), dfa.start, *bounds
    with spending(budget):
        rows, accepting, start = counted(*given, budget)
        return _numbered(rows, dfa.byte_class, accepting, start)


def _numbered(
    rows: np.ndarray, byte_class: np.ndarray, accepting: np.ndarray, start: int
) -> ByteDFA:
    """The automaton without unreachable states and equal columns, numbered breadth-first."""
    rows, accepting, start = numbered(rows, accepting, start)
    column, kept = equal_columns(rows)
    rows = rows if len(kept) == rows.shape[1] else np.ascontiguousarray(rows[:, kept])
    return ByteDFA(rows, column[byte_class].astype(np.uint8), accepting, start)
