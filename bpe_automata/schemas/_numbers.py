"""Represents a set of numbers by the automaton of their decimal spellings.

    { x in T : value(x) in the set },   T = -?(0|[1-9][0-9]*)(\\.[0-9]+)?

A set has all decimal spellings of a number (1, 1.0, 1.00) or none. Values are exact, as JSON Schema
defines them, but most parsers read doubles: 9.99999999999999999 is below 10, but the double that is
read is not. Decimals of at most 15 digits are different doubles in the same order. So a number with
a fraction is written with at most 15 digits, unless all numbers may come, or only some that the
schema lists; an integer has any number of digits, and a set of integers is written without
fractions and without `-0`.

Exponents are written only where all numbers may come, since it is not a regular property that `1e5`
is an integer and `15e-1` is not. All that is written is an integer or a finite double: an exponent
follows one digit and a fraction, as in `json.dumps`, and is at most 307 (1e308 is finite, 9e308 is
not); a fraction follows at most 16 digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from decimal import Decimal
from functools import lru_cache, partial, reduce
from typing import Any

import numpy as np

from bpe_automata._budget import Budget, check
from bpe_automata.automata.algebra import concatenation, difference, intersection, reduced, union
from bpe_automata.automata.compile import compile_regex
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.sources import from_strings
from bpe_automata.errors import ArgumentError, BudgetExceededError

Number = int | float | Decimal
ALL_NUMBERS = compile_regex(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_EXPONENT = "0?[0-9]|[1-9][0-9]|[12][0-9]{2}|30[0-7]"
_FINITE = r"-?(0|[1-9][0-9]*|(0|[1-9][0-9]{0,15})\.[0-9]+)"
_EVERY_SPELLING = compile_regex(rf"{_FINITE}|-?[0-9](\.[0-9]+)?[eE][+-]?({_EXPONENT})")
_INTEGERS = compile_regex(r"0|-?[1-9][0-9]*")
_SHORTEST = compile_regex(r"0|-?[1-9][0-9]*|-?(0|[1-9][0-9]*)\.[0-9]*[1-9]")
_DIGITS = 15  # decimals with at most so many are different doubles
_DISTINCT_DOUBLES = compile_regex(
    rf"-?(0|[1-9][0-9]*|0\.0{{0,5}}[0-9]{{1,{_DIGITS}}}|"
    + "|".join(rf"[1-9][0-9]{{{k - 1}}}\.[0-9]{{1,{_DIGITS - k}}}" for k in range(1, _DIGITS))
    + ")"
)
_EXACT = 2**53  # integers up to here are doubles
_MOST_REMAINDERS = 100_000
_ZEROS_BEHIND_DOT, _ZEROS = compile_regex(r"(\.0+)?"), compile_regex("0*")
_SYMBOLS = "-.0123456789"


def spellings(numbers: ByteDFA) -> ByteDFA:
    """The spellings in which a set of numbers is written."""
    if difference(ALL_NUMBERS, numbers).is_empty:
        return _EVERY_SPELLING
    if difference(numbers, multiples_of(1)).is_empty:
        return intersection(numbers, _INTEGERS)
    is_listed = _is_finite(shortest(numbers))
    return intersection(numbers, compile_regex(_FINITE) if is_listed else _DISTINCT_DOUBLES)


def shortest(numbers: ByteDFA) -> ByteDFA:
    """The shortest decimal spelling of each number."""
    return intersection(numbers, _SHORTEST)


def _is_finite(dfa: ByteDFA) -> bool:
    """Is the language of a trimmed automaton finite?"""
    here = np.array([dfa.start])
    for _ in range(dfa.n_states):
        here = np.unique(dfa.trans[here])
        here = here[here > 0]
    return not here.size


def exactly(value: Number) -> Decimal:
    """The decimal value of a number; if it has a fraction or an exponent, that of the double which
    most parsers read. Raises ArgumentError for what is no finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ArgumentError(f"{value!r} is no number: give an int, float or Decimal")
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not exact.is_finite():
        raise ArgumentError(f"{value!r} is no decimal: give a finite number")
    double = float(exact)
    if exact.as_tuple().exponent == 0 or math.isinf(double):
        return exact
    return Decimal(double) if abs(double) >= _EXACT else Decimal(repr(double))


# Automata of decimals, each defined by a function from a state and a symbol to the next state. They
# are cached by value: equal keywords give one object, whose spellings are computed once.


def _crawl(
    begin: Hashable, follow: Callable[[Any, str], Hashable], accepts: Callable[[Any], bool]
) -> ByteDFA:
    """The automaton of the states that `follow` leads to, where None is the dead state."""
    number, rows = {begin: 1}, [[0] * (1 + len(_SYMBOLS))]
    waiting: list[Hashable] = [begin]
    for state in waiting:
        check()
        row = [0]
        for symbol in _SYMBOLS:
            after = follow(state, symbol)
            if after is not None and after not in number:
                number[after] = 1 + len(number)
                waiting.append(after)
            row.append(0 if after is None else number[after])
        rows.append(row)
    accepting = np.array([False, *map(accepts, waiting)])
    byte_class = np.zeros(256, np.uint8)
    byte_class[list(_SYMBOLS.encode())] = 1 + np.arange(len(_SYMBOLS))
    return reduced((np.array(rows, np.int32), byte_class), accepting, 1, Budget())


def _digits(value: Decimal) -> tuple[str, str]:
    """The digits before the dot, at least one, and after it, without final zeros."""
    whole, _, fraction = f"{value.copy_abs():f}".partition(".")
    return whole.lstrip("0") or "0", fraction.rstrip("0")


@lru_cache(maxsize=512)
def _compared_with(bound: Decimal, less: bool, equal: bool, greater: bool) -> ByteDFA:
    """A state is "" after nothing, "-" after the sign; else a tuple: the sign, the number of digits
    before the dot and behind it (None: no dot), both as far as they matter, the order of the digits
    so far and those of the bound (-1, 0 or 1), and the first digit, as far as it matters."""
    wanted = {-1: less, 0: equal, 1: greater}
    whole, fraction = _digits(bound)
    own_sign = -1 if bound < 0 else 1

    def follow(state: Any, symbol: str) -> Hashable:
        if state in ("", "-"):
            if symbol == "-":
                return "-" if state == "" else None
            sign = -1 if state == "-" else 1
            return None if symbol == "." else (sign, 1, None, _order(symbol, whole[0]), symbol)
        sign, before, behind, order, first = state
        if symbol == "-" or (behind is not None and symbol == "."):
            return None
        if symbol == ".":
            return sign, 0, 0, _of_whole(before, order), ""
        if behind is not None:
            digit = fraction[behind] if behind < len(fraction) else "0"
            return sign, 0, min(behind + 1, len(fraction) + 1), order or _order(symbol, digit), ""
        if first == "0":
            return None
        if before < len(whole):
            return sign, before + 1, None, order or _order(symbol, whole[before]), "1"
        return sign, len(whole) + 1, None, 1, "1"

    def _of_whole(before: int, order: int) -> int:
        return order if before == len(whole) else -1 if before < len(whole) else 1

    def accepts(state: Any) -> bool:
        if state in ("", "-") or state[2] == 0:
            return False
        sign, before, behind, order, _ = state
        order = _of_whole(before, order) if behind is None else order
        if not order and len(fraction) > (behind or 0):
            order = -1  # there are more digits in the bound
        return wanted[order * sign if bound == 0 or sign == own_sign else sign]

    return _crawl("", follow, accepts)


def _order(digit: str, other: str) -> int:
    return (digit > other) - (digit < other)


def _compared(bound: Number, less: bool, equal: bool, greater: bool) -> ByteDFA:
    return _compared_with(exactly(bound), less, equal, greater)


at_least = partial(_compared, less=False, equal=True, greater=True)
"""{ x : x >= bound }, for a finite int, Decimal or float (the decimal that Python prints). Raises
ArgumentError for other bounds, as do the three below and `of_values`."""
greater_than = partial(_compared, less=False, equal=False, greater=True)
"""{ x : x > bound }"""
at_most = partial(_compared, less=True, equal=True, greater=False)
"""{ x : x <= bound }"""
less_than = partial(_compared, less=True, equal=False, greater=False)
"""{ x : x < bound }"""


def of_values(values: Iterable[Number]) -> ByteDFA:
    """{ x : x equals one of the values }."""
    texts: dict[bool, set[str]] = {False: set(), True: set()}  # by whether they have a fraction
    for value in values:
        exact = exactly(value)
        whole, fraction = _digits(exact)
        signs = ("", "-") if exact == 0 else ("-",) if exact < 0 else ("",)
        texts[bool(fraction)] |= {sign + whole + "." * bool(fraction) + fraction for sign in signs}
    ends = {False: _ZEROS_BEHIND_DOT, True: _ZEROS}
    found = [concatenation(from_strings(some), ends[kind]) for kind, some in texts.items() if some]
    return reduce(union, found) if found else from_strings(())


def multiples_of(divisor: Number) -> ByteDFA:
    """{ n * divisor : n an integer }, for a divisor > 0.

    Raises ArgumentError, and BudgetExceededError if the automaton would be too large: it has a
    state for each remainder, up to powers of ten.
    """
    exact = exactly(divisor)
    if exact <= 0:
        raise ArgumentError(f"multiples of {divisor!r}: give a number above 0")
    return _multiples_of(exact)


@lru_cache(maxsize=128)
def _multiples_of(divisor: Decimal) -> ByteDFA:
    """The multiples of m * 10**zeros / 10**decimals, where `zeros` or `decimals` is 0. A state has
    a kind ("" after nothing, "-" after the sign, "0" after a first zero, else "1"), the number of
    digits behind the dot (None: no dot), the remainder of the digits so far by m, and the number
    of final zeros behind a multiple of m."""
    whole, fraction = _digits(divisor)
    digits, decimals = whole + fraction, len(fraction)
    significant, zeros = digits.strip("0"), len(digits) - len(digits.rstrip("0"))
    if len(significant) > 9 or int(significant) * (decimals + 2) > _MOST_REMAINDERS:
        why = f"to divide by {divisor:.12g} takes one per remainder"
        raise BudgetExceededError("states", _MOST_REMAINDERS, why)
    m = int(significant)

    def follow(state: Any, symbol: str) -> Hashable:
        kind, behind, remainder, seen = state
        if symbol == "-":
            return ("-", None, 0, 0) if kind == "" else None
        if symbol == ".":
            return ("1", 0, remainder, seen) if kind in ("0", "1") and behind is None else None
        if behind is not None and behind >= decimals:  # only zeros may follow
            return ("1", max(behind, 1), remainder, seen) if symbol == "0" else None
        if kind in ("", "-"):
            seen = zeros if symbol == "0" else 0
            return (symbol == "0" and "0") or "1", None, int(symbol) % m, seen
        if kind == "0" and behind is None:
            return None
        more = symbol == "0" and remainder == 0
        after = (remainder * 10 + int(symbol)) % m
        return "1", None if behind is None else behind + 1, after, min(seen + 1, zeros) * more

    def accepts(state: Any) -> bool:
        kind, behind, remainder, seen = state
        if kind in ("", "-") or behind == 0:
            return False
        missing = decimals - min(behind or 0, decimals)
        return bool(remainder * 10**missing % m == 0 and seen == zeros)

    return _crawl(("", None, 0, 0), follow, accepts)
