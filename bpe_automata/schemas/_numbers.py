"""Represents a set of numbers by the automaton of its decimal spellings.

    decimals = { x in T : value(x) in the set },   T = -?(0|[1-9][0-9]*)(\\.[0-9]+)?

A set contains all spellings of a number (1, 1.0, 1.00) or none; only `integer` of draft 4 depends
on the spelling. Values are exact, as JSON Schema defines them and as
`json.loads(parse_float=Decimal)` reads them: 0.99999999999999999999 is below 1, though the nearest
double is not. But most parsers read doubles. Rounding never changes the order of two numbers, and
decimals of at most 15 digits are different doubles; so where a number could leave the set as it is
rounded (9.99999999999999999 where it must be below 10, or no integer), those with a fraction are
written with at most 15 digits. (A bound with a fraction is the double that most read.) Of the
spellings with an exponent only "all", "none" or "unknown" is recorded, because it is not a regular
property that `1e5` is an integer and `15e-1` is not. A single value has, in addition, the spelling
that Python and JavaScript print.

A spelling that is written is an integer or reads as a finite double: an exponent follows one digit
and a fraction, as in `json.dumps`, and is at most 307 (1e308 is finite, 9e308 is not); a fraction
follows at most 16 digits. A longer form would add states to every number of every schema.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache, partial
from typing import Literal

import numpy as np

from bpe_automata._automata.algebra import (
    concatenation,
    difference,
    intersection,
    reduced,
    union,
)
from bpe_automata._automata.compile import compile_regex
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.sources import from_strings
from bpe_automata._budget import Budget
from bpe_automata._sharing import cached
from bpe_automata.errors import ArgumentError
from bpe_automata.schemas._decimals import compared, divisible

Scientific = Literal["all", "none", "unknown"]
Number = int | float | Decimal

DECIMALS = compile_regex(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_EXPONENT = "0?[0-9]|[1-9][0-9]|[12][0-9]{2}|30[0-7]"
SCIENTIFIC = compile_regex(rf"-?[0-9](\.[0-9]+)?[eE][+-]?({_EXPONENT})")
_FINITE = compile_regex(r"-?(0|[1-9][0-9]*|(0|[1-9][0-9]{0,15})\.[0-9]+)")
_PLAIN = compile_regex(r"-?[1-9][0-9]*|0")
_SHORTEST = compile_regex(r"0|-?[1-9][0-9]*|-?(0|[1-9][0-9]*)\.[0-9]*[1-9]")
_BY_TEXT = compile_regex(r"-?(0|[1-9][0-9]*)")
_DIGITS = 15  # decimals with so many are different doubles
_SURE = compile_regex(
    rf"-?(0|[1-9][0-9]*|0\.0{{0,5}}[0-9]{{1,{_DIGITS}}}|"
    + "|".join(rf"[1-9][0-9]{{{k - 1}}}\.[0-9]{{1,{_DIGITS - k}}}" for k in range(1, _DIGITS))
    + ")"
)
_EXACT = 2**53  # integers up to here are doubles
_NEGATED: dict[Scientific, Scientific] = {"all": "none", "none": "all", "unknown": "unknown"}


@dataclass(frozen=True, eq=False)
class NumberSet:
    """decimals: the spellings in T of its numbers. scientific: how many of the spellings with an
    exponent belong to it. leaving: may decimals in the set be outside, read as doubles? entering:
    may decimals outside be in the set? spelled: further spellings of numbers in the set, those that
    the schema itself uses."""

    decimals: ByteDFA
    scientific: Scientific
    leaving: bool = False
    entering: bool = False
    spelled: frozenset[str] = frozenset()

    @property
    def is_empty(self) -> bool:
        """Whether the set has no number. Each number has a decimal spelling, so those decide."""
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

    def _doubts(self, other: NumberSet) -> tuple[bool, bool]:
        return self.leaving | other.leaving, self.entering | other.entering

    def _has(self, text: str) -> bool:
        """Whether a number, whatever its spelling, is in the set both exactly and as a double."""
        if text in self.spelled:
            return True
        double = float(text)
        as_read = Decimal(double) if double.is_integer() else Decimal(repr(double))
        plain = (f"{value:f}" for value in (Decimal(text), as_read))
        return all(self.decimals.accepts((t if "." in t else f"{t}.0").encode()) for t in plain)

    def written(self) -> ByteDFA:
        """The spellings to write. Of a set of integers, the plain ones (no `-0`); of another set,
        the decimals without those that may leave it, and the spellings with an exponent if all of
        them belong to it. `spelled` is added to both."""
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

    @cached
    def shortest(self) -> ByteDFA | None:
        """The shortest decimal spelling of each number. None where a number has others, but not
        this one: so it is of 1.0 in draft 4, if that must be no integer."""
        found = intersection(self.decimals, _SHORTEST)
        plain = intersection(found, _PLAIN)
        longer = concatenation(difference(found, plain), compile_regex("0*"))
        spelled = union(_with_zeros(plain), longer)
        return found if difference(self.decimals, spelled).is_empty else None

    def _finite(self) -> ByteDFA:
        """The decimals that are in the set both exactly and as finite doubles."""
        return intersection(self.decimals, _SURE if self.leaving else _FINITE)


def _settled(known: set[Scientific], wins: Scientific, loses: Scientific) -> Scientific:
    """Three-valued logic: "or" if `wins` stands for true, "and" if it stands for false."""
    if wins in known:
        return wins
    return loses if known == {loses} else "unknown"


def _with_zeros(plain: ByteDFA) -> ByteDFA:
    """All decimal spellings of some plain integers: 7, 7.0, 7.00, and -0 if 0 is one of them."""
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


NO_NUMBER = NumberSet(from_strings(()), "none")
ALL_NUMBERS = NumberSet(DECIMALS, "all")


# Sets of keywords are cached: equal keywords give one object, which keeps what is derived from it.
# They are cached by the number as it is read: 1e23 and 10 ** 23 are equal decimals, but not that.


@lru_cache(maxsize=2)
def integers(by_text: bool = False) -> NumberSet:
    """The integers. 1.0 is one, as since draft 6; by_text: it is not, as in draft 4."""
    if by_text:
        return NumberSet(_BY_TEXT, "none")
    return multiples_of(1)


def of_value(value: Number) -> NumberSet:
    """{ x : x = value }. A value that is not an int is also spelled as Python prints it."""
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

    Raises ArgumentError, and BudgetExceededError if the automaton would be too large: it has a
    state for each remainder, up to powers of ten.
    """
    exact = exactly(divisor)
    if exact <= 0:
        raise ArgumentError(f"multiples of {divisor!r}: give a number above 0")
    return _multiples_of(exact)


@lru_cache(maxsize=128)  # some take megabytes
def _multiples_of(divisor: Decimal) -> NumberSet:
    return NumberSet(divisible(divisor), "unknown", leaving=True, entering=True)


def exactly(value: Number) -> Decimal:
    """The decimal value of the number's spelling. Raises ArgumentError if there is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ArgumentError(f"{value!r} is no number: give an int, float or Decimal")
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not exact.is_finite():
        raise ArgumentError(f"{value!r} is no decimal: give a finite number")
    return exact


def _compared(bound: Number, less: bool, equal: bool, greater: bool) -> NumberSet:
    exact = _as_read(exactly(bound))
    if less != greater and exact != exact.to_integral_value():
        exact = Decimal(repr(float(exact)))  # as most read it, of however many digits it is
    return _compared_with(exact, less, equal, greater)


@lru_cache(maxsize=512)
def _compared_with(bound: Decimal, less: bool, equal: bool, greater: bool) -> NumberSet:
    decimals = compared(bound, less, equal, greater)
    is_double = math.isfinite(float(bound)) and (
        Decimal(float(bound)) == bound or bound != bound.to_integral_value()
    )
    leaving = not is_double or ((less or greater) and not equal)
    entering = not is_double or (equal and not (less and greater))
    return NumberSet(decimals, "unknown", leaving, entering)


at_least = partial(_compared, less=False, equal=True, greater=True)
"""{ x : x >= bound }, for a finite int, Decimal or float (the decimal that Python prints).

Raises ArgumentError for other bounds, BudgetExceededError for one of more than 20,000 digits, as do
the three below and `of_value`."""
greater_than = partial(_compared, less=False, equal=False, greater=True)
"""{ x : x > bound }"""
at_most = partial(_compared, less=True, equal=True, greater=False)
"""{ x : x <= bound }"""
less_than = partial(_compared, less=True, equal=False, greater=False)
"""{ x : x < bound }"""


def _as_read(bound: Decimal) -> Decimal:
    """The number that validators compare with. A bound such as 1e23 is no double and is not spelled
    as an integer, so they read it as 99999999999999991611392."""
    if bound.as_tuple().exponent == 0 or bound.copy_abs() < _EXACT:
        return bound
    near = float(bound)
    return bound if math.isinf(near) else Decimal(near)
