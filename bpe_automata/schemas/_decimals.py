"""Builds the automata of decimal spellings that compare a number with a bound or divide it.

    T = -?(0|[1-9][0-9]*)(\\.[0-9]+)?        (the numbers of JSON without an exponent)

Values are exact, whatever the digits of a bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from bpe_automata._automata.algebra import reduced
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._budget import Budget
from bpe_automata.errors import ArgumentError, BudgetExceededError

MAX_DIGITS = 20_000  # of a bound, written out: 1e308 has 309
_DEFAULT = Budget()
_MINUS, _DOT, _ZERO = 1, 2, 3  # columns; the ten digits begin at _ZERO, all other bytes are 0
_COLUMNS = _ZERO + 10
_LESS, _EQUAL, _GREATER = 1, 2, 3


@dataclass(frozen=True)
class Digits:
    """The digits of a decimal before the dot (at least one) and after it (without final zeros)."""

    negative: bool
    whole: tuple[int, ...]
    fraction: tuple[int, ...]


def digits_of(value: Decimal) -> Digits:
    """The digits of a number. Raises ArgumentError for infinities and NaN, BudgetExceededError for
    more than MAX_DIGITS digits."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ArgumentError(f"{value} is no number to compare with: give a finite one")
    if value == 0:
        return Digits(False, (0,), ())
    if max(abs(exponent), len(digits)) > MAX_DIGITS:
        advice = f"a bound has more when it is written out: {value:.3e}"
        raise BudgetExceededError("digits", MAX_DIGITS, advice)
    text = "".join(map(str, digits)) + "0" * max(exponent, 0)
    text = text.rjust(max(-exponent, 0) + 1, "0")
    point = len(text) + min(exponent, 0)
    whole, fraction = text[:point].lstrip("0") or "0", text[point:].rstrip("0")
    return Digits(bool(sign), tuple(map(int, whole)), tuple(map(int, fraction)))


def compared(bound: Decimal, less: bool, equal: bool, greater: bool) -> ByteDFA:
    """{ x in T : x < bound (if `less`), x = bound (if `equal`), x > bound (if `greater`) }"""
    digits, zero = digits_of(bound), Digits(False, (0,), ())
    if digits.negative:
        plus = _magnitude(zero, (_GREATER, _GREATER, _GREATER))
        minus = _magnitude(digits, (_GREATER, _EQUAL, _LESS))
    else:
        plus = _magnitude(digits, (_LESS, _EQUAL, _GREATER))
        minus = _magnitude(zero, (_LESS, _EQUAL if digits == zero else _LESS, _LESS))
    tables = [np.zeros((1, _COLUMNS), np.int32)]
    for trans, _ in plus, minus:
        tables.append(np.where(trans, trans + sum(map(len, tables)), 0).astype(np.int32))
    tables[1][0, _MINUS] = 1 + len(tables[1])
    labels = np.concatenate(([0], plus[1], minus[1]))
    wanted = np.array((False, less, equal, greater))
    return _dfa(np.concatenate(tables), wanted[labels], 1)


def _magnitude(bound: Digits, outcomes: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    """(table, labels) of numbers without sign, compared with `bound`, from state 0, to which
    nothing leads back. outcomes: the labels of smaller, equal and larger numbers; 0 where no number
    ends.

    States: those that are named; in the fraction, where all digits so far are those of the bound,
    by their number; then three for each digit that the bound has before its dot: after so many, so
    far smaller, equal or larger. A number with fewer is smaller.
    """
    smaller, equal, larger = outcomes
    whole = np.array(bound.whole)
    fraction = np.array((*(bound.fraction or (0,)), 0))  # and any number of zeros more
    start, zero, longer, below, above, dot_below, dot_above, dot = range(8)
    same = dot + np.arange(len(fraction))
    first = dot + len(fraction)
    so_far = first + 1 + 3 * np.arange(len(whole))  # of each three, the one that is equal
    trans = np.zeros((first + 3 * len(whole), _COLUMNS), np.int32)
    digits = trans[:, _ZERO:]
    digits[[longer, below, above]] = [[longer], [below], [above]]
    digits[[dot_below, dot_above]] = [[below], [above]]
    order = np.sign(np.arange(10) - fraction[:, None])
    following = np.append(same[1:], same[-1])[:, None]
    digits[same] = np.where(order == 0, following, np.where(order < 0, below, above))
    order = np.sign(np.arange(10) - whole[:, None])
    digits[first:-3] = np.arange(first + 3, len(trans))[:, None]
    digits[so_far[:-1]] = so_far[1:, None] + order[1:]
    digits[start] = so_far[0] + order[0]
    digits[-3:] = longer
    trans[first:, _DOT] = dot_below
    trans[-2:, _DOT] = dot, dot_above
    trans[longer, _DOT] = dot_above
    labels = np.full(len(trans), smaller)
    labels[[start, dot_below, dot_above, dot]] = 0
    labels[[longer, above]] = larger
    labels[same[-1]] = equal
    labels[-2:] = (smaller if bound.fraction else equal), larger
    # A first digit 0 is one that no other may follow.
    digits[start, 0] = zero
    like = -2 if bound.whole == (0,) else -3
    trans[zero, _DOT], labels[zero] = trans[like, _DOT], labels[like]
    return trans, labels


def divisible(divisor: Decimal, budget: Budget = _DEFAULT) -> ByteDFA:
    """{ x in T : x = n * divisor for an integer n }, for a divisor > 0.

    Raises BudgetExceededError for too many remainders.
    """
    digits = digits_of(divisor)
    places = len(digits.fraction)
    text = "".join(map(str, digits.whole + digits.fraction))
    significant = text.rstrip("0")
    zeros = len(text) - len(significant)
    number = int(significant[:18])
    if len(significant) > 18 or number * (places + 2) + zeros > budget.max_states:
        raise BudgetExceededError(
            "states", budget.max_states, f"to divide by {divisor:.12g} takes one per remainder"
        )
    return _dfa(*_multiples(number, places, zeros))


def _multiples(number: int, places: int, zeros: int) -> tuple[np.ndarray, np.ndarray, int]:
    """(table, accepting, start) for multiples of number * 10**zeros / 10**places, where `zeros` or
    `places` is 0. A state is the remainder of the digits so far and how many of them are after the
    dot; after `places` only zeros may come.

    States from 1: the remainders before the dot, then after 1 to `places` digits of the fraction,
    then right after the dot; at last, the number of zeros behind a multiple of `number`.
    """
    dots = 1 + (places + 1) * number
    start, minus, zero, tail = range(dots + number, dots + number + 4)
    runs = np.array([1, *range(tail + 1, tail + 1 + zeros)])
    trans = np.zeros((tail + 1 + zeros, _COLUMNS), np.int32)
    accepting = np.zeros(len(trans), np.bool_)
    remainder = np.arange(number)
    following = (remainder[:, None] * 10 + np.arange(10)) % number
    trans[1 : 1 + number, _ZERO:] = following + 1
    for level in range(places + 1):
        base = 1 + level * number
        if 0 < level < places:
            trans[base : base + number, _ZERO:] = following + base + number
        power = pow(10, places - level, number)
        accepting[base : base + number] = remainder * power % number == 0
    trans[1 : 1 + number, _DOT] = dots + remainder
    if places:
        trans[dots:start, _ZERO:] = following + 1 + number
    if zeros:
        trans[runs[1:], _ZERO:] = trans[1, _ZERO:]
        trans[runs, _ZERO] = np.append(runs[1:], runs[-1])
        trans[[1, runs[-1]], _DOT], accepting[[1, runs[-1]]] = (0, dots), (False, True)
    trans[[1 + places * number if places else dots, tail], _ZERO] = tail  # behind remainder 0
    trans[[start, minus], _ZERO:] = trans[1, _ZERO:]
    trans[[start, minus], _ZERO] = zero
    trans[start, _MINUS] = minus
    trans[zero, _DOT], accepting[[zero, tail]] = dots, True
    return trans, accepting, start


def _dfa(trans: np.ndarray, accepting: np.ndarray, start: int) -> ByteDFA:
    byte_class = np.zeros(256, np.uint8)
    byte_class[ord("-")], byte_class[ord(".")] = _MINUS, _DOT
    byte_class[ord("0") : ord("9") + 1] = np.arange(_ZERO, _COLUMNS)
    return reduced((trans, byte_class), accepting, start, _DEFAULT)
