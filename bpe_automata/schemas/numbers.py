"""Sets of numbers, exact.

    decimals = { x in T : value(x) in the set },   T = -?(0|[1-9][0-9]*)(\\.[0-9]+)?

A set of values holds a decimal in all its spellings (1, 1.0, 1.00) or in none; only `integer` of
draft 4 goes by the text. Values are those of the texts, as JSON Schema has it (and as
`json.loads(parse_float=Decimal)` reads them): 0.99999999999999999999 is below 1, though the nearest
double is not. What is written is in the set in both readings, and what is taken away from others is
all that is in it in one of them; see `rounding`. Numbers with an exponent are a second part, of
which only all, none or "unknown" is known: that `1e5` is an integer and `15e-1` is not is no
regular property. A single value is also `spelled` as Python and JavaScript print it.

What is written reads as a finite double, or is an integer: an exponent follows one digit and a
fraction, as `json.dumps` has it, and is at most 307 (1e308 is finite, 9e308 is not); a fraction
follows at most 16 digits. Each further state would be one in every number of every schema.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

import numpy as np

from bpe_automata.automata.algebra import any_of, difference, intersection, reduced, union
from bpe_automata.automata.compile import compile_regex
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.sources import from_strings
from bpe_automata.budget import Budget
from bpe_automata.errors import ArgumentError
from bpe_automata.schemas.decimals import (
    NO_DOUBT,
    Doubts,
    compared,
    divisible,
    doubtful,
    of_comparison,
    of_multiples,
)
from bpe_automata.sharing import cached

Scientific = Literal["all", "none", "unknown"]
Number = int | float | Decimal

DECIMALS = compile_regex(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_EXPONENT = "0?[0-9]|[1-9][0-9]|[12][0-9]{2}|30[0-7]"
SCIENTIFIC = compile_regex(rf"-?[0-9](\.[0-9]+)?[eE][+-]?({_EXPONENT})")
_FINITE = compile_regex(r"-?(0|[1-9][0-9]*|(0|[1-9][0-9]{0,15})\.[0-9]+)")
_PLAIN = compile_regex(r"-?[1-9][0-9]*|0")
_BY_TEXT = compile_regex(r"-?(0|[1-9][0-9]*)")
_EXACT = 2**53  # integers up to here are doubles
_NEGATED: dict[Scientific, Scientific] = {"all": "none", "none": "all", "unknown": "unknown"}


@dataclass(frozen=True, eq=False)
class NumberSet:
    """decimals: the members that T spells. scientific: what is known of those with an exponent.
    leaving, entering: members that reading as doubles may take out, and others that it may bring
    in. spelled: members that are written in this way too, as the schema itself has them."""

    decimals: ByteDFA
    scientific: Scientific
    leaving: Doubts = NO_DOUBT
    entering: Doubts = NO_DOUBT
    spelled: frozenset[str] = frozenset()

    @property
    def is_empty(self) -> bool:
        """Whether no number is in it. (Each value has a decimal, so those decide.)"""
        return self.decimals.is_empty and self.scientific != "all"

    def __or__(self, other: NumberSet) -> NumberSet:
        known = {self.scientific, other.scientific}
        decimals = union(self.decimals, other.decimals)
        spelled = self.spelled | other.spelled
        return NumberSet(decimals, _settled(known, "all", "none"), *self._doubts(other), spelled)

    def __and__(self, other: NumberSet) -> NumberSet:
        known = {self.scientific, other.scientific}
        decimals = intersection(self.decimals, other.decimals)
        both = self.spelled | other.spelled
        spelled = frozenset(text for text in both if self._has(text) and other._has(text))
        return NumberSet(decimals, _settled(known, "none", "all"), *self._doubts(other), spelled)

    def __invert__(self) -> NumberSet:
        decimals = difference(DECIMALS, self.decimals)
        return NumberSet(decimals, _NEGATED[self.scientific], self.entering, self.leaving)

    def __sub__(self, other: NumberSet) -> NumberSet:
        return self & ~other

    def _doubts(self, other: NumberSet) -> tuple[Doubts, Doubts]:
        return self.leaving | other.leaving, self.entering | other.entering

    def _has(self, text: str) -> bool:
        """Is a number, however it is spelled, in the set in both readings?"""
        if text in self.spelled:
            return True
        double = float(text)
        as_read = Decimal(double) if double.is_integer() else Decimal(repr(double))
        plain = (f"{value:f}" for value in (Decimal(text), as_read))
        return all(self.decimals.accepts((t if "." in t else f"{t}.0").encode()) for t in plain)

    def written(self) -> ByteDFA:
        """The texts to write: plain integers (no `-0`) for a set of integers, and otherwise the
        decimals of the set but for those that may leave it, and those with an exponent if they
        are all in it; and what is `spelled`."""
        return self._written

    @cached
    def _written(self) -> ByteDFA:
        found = self._finite() if self.scientific == "all" else self._plain_or_decimals()
        if self.scientific == "all":
            found = union(found, SCIENTIFIC)
        return union(found, from_strings(self.spelled)) if self.spelled else found

    def _plain_or_decimals(self) -> ByteDFA:
        plain = intersection(self.decimals, _PLAIN)
        spelled = _with_zeros(plain)
        return plain if difference(self.decimals, spelled).is_empty else self._finite()

    def _finite(self) -> ByteDFA:
        """The decimals that are in the set in both readings, and no infinity in either."""
        if self.leaving:
            return intersection(difference(self.decimals, doubtful(self.leaving)), _FINITE)
        return intersection(self.decimals, _FINITE)

    def possible(self) -> ByteDFA:
        """The decimals that are in the set in one of both readings, and what is `spelled`."""
        if not self.entering and not self.spelled:
            return self.decimals
        return any_of([self.decimals, doubtful(self.entering), from_strings(self.spelled)])


def _settled(known: set[Scientific], wins: Scientific, loses: Scientific) -> Scientific:
    """Three-valued "or" where `wins` is true, "and" where it is false."""
    if wins in known:
        return wins
    return loses if known == {loses} else "unknown"


def _with_zeros(plain: ByteDFA) -> ByteDFA:
    """All decimals equal to one of the plain integers: 7, 7.0, 7.00, and -0 where 0 is one."""
    n = plain.n_states
    byte_class = plain.byte_class.astype(np.int64) + 3
    byte_class[[ord("-"), ord("."), ord("0")]] = range(3)
    sources = plain.byte_class[[ord("-"), ord("."), ord("0")]].tolist()
    columns = [*sources, *range(plain.n_classes)]
    trans = np.zeros((n + 4, len(columns)), np.int32)
    trans[:n] = plain.trans[:, columns]
    accepting = np.append(plain.accepting, [False, True, False, True])
    dot, tail, minus, zero = range(n, n + 4)
    trans[:n, 1] = np.where(plain.accepting, dot, 0)
    trans[[dot, tail], 2] = tail
    start = plain.start
    if plain.accepts(b"0"):
        trans[minus] = trans[trans[start, 0]]
        trans[minus, 2], trans[zero, 1], trans[start, 0] = zero, dot, minus
    return reduced((trans, byte_class.astype(np.uint8)), accepting, start, Budget())


NONE = NumberSet(from_strings(()), "none")
ALL = NumberSet(DECIMALS, "all")


def no_numbers() -> NumberSet:
    """The empty set."""
    return NONE


def numbers() -> NumberSet:
    """Every number."""
    return ALL


def integers(by_text: bool = False) -> NumberSet:
    """The whole numbers: 1.0 is one, as since draft 6; by_text: it is not, as in draft 4."""
    if by_text:
        return NumberSet(_BY_TEXT, "none")
    return multiples_of(1)


def at_least(bound: Number) -> NumberSet:
    """{ x : x >= bound }. This and the next four take a finite int, float (read as the decimal
    that Python prints for it) or Decimal; they raise ArgumentError for anything else, and
    BudgetExceededError for a bound of more than 20,000 digits."""
    return _compared(bound, False, True, True)


def greater_than(bound: Number) -> NumberSet:
    """{ x : x > bound }"""
    return _compared(bound, False, False, True)


def at_most(bound: Number) -> NumberSet:
    """{ x : x <= bound }"""
    return _compared(bound, True, True, False)


def less_than(bound: Number) -> NumberSet:
    """{ x : x < bound }"""
    return _compared(bound, True, False, False)


def of_value(value: Number) -> NumberSet:
    """{ x : x = value }, spelled as the value itself is where it is no integer by its type."""
    found = _compared(value, False, True, False)
    if isinstance(value, int) or (isinstance(value, Decimal) and not value.as_tuple().exponent):
        return found
    printed = repr(float(value))
    if math.isinf(float(value)) or (value != 0 and Decimal(printed) != exactly(value)):
        return found
    mantissa, mark, exponent = printed.partition("e")
    with_dot = mantissa if "." in mantissa else f"{mantissa}.0"  # which YAML 1.1 asks for
    return replace(found, spelled=frozenset((printed, f"{with_dot}{mark}{exponent}")))


def multiples_of(divisor: Number) -> NumberSet:
    """{ n * divisor : n an integer }, for a divisor > 0.

    Raises ArgumentError, or BudgetExceededError if the automaton would be too large: it has a
    state for each remainder, up to powers of ten.
    """
    exact = exactly(divisor)
    if exact <= 0:
        raise ArgumentError(f"multiples of {divisor!r}: give a number above 0")
    return NumberSet(divisible(exact), "unknown", *of_multiples(exact))


def exactly(value: Number) -> Decimal:
    """The decimal that the number is spelled as. Raises ArgumentError if there is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ArgumentError(f"{value!r} is no number: give an int, float or Decimal")
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not exact.is_finite():
        raise ArgumentError(f"{value!r} is no decimal: give a finite number")
    return exact


def _compared(bound: Number, less: bool, equal: bool, greater: bool) -> NumberSet:
    exact = _as_read(exactly(bound))
    decimals = compared(exact, less, equal, greater)
    return NumberSet(decimals, "unknown", *of_comparison(exact, less, equal, greater))


def _as_read(bound: Decimal) -> Decimal:
    """A bound such as 1e23, which is no double and not spelled as an integer: all who compare with
    it compare with the double, 99999999999999991611392, and integers of that size exactly."""
    if bound.as_tuple().exponent == 0 or bound.copy_abs() < _EXACT:
        return bound
    near = float(bound)
    return bound if math.isinf(near) else Decimal(near)
