"""What a set of decimals may gain or lose when they are read as doubles, as most parsers do.

    leaving:  t in the set, but double(t) may not be       9.99999999999999999 < 10
    entering: t not in the set, but double(t) may be       0.99999999999999999 is no integer

A `Doubt` stands for the texts of one such place, or for some more; only texts with a dot are meant,
for integers are read exactly. A double counts as the decimal that is printed for it, or if it is
whole as the integer that it is; reading never changes the order of two numbers, so a doubt about a
bound lies between the doubles beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from bpe_automata.automata.algebra import any_of, intersection
from bpe_automata.automata.compile import compile_regex
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.schemas.decimal_texts import compared, digits_of

_SURE = 15  # decimals of so many digits are different doubles
_BITS = 53  # of a double's significand
_TINY = Decimal("1e-20")  # stands for the smallest double, which would take 324 states


@dataclass(frozen=True)
class Between:
    """Decimals between two numbers, None if there is no bound."""

    low: Decimal | None
    high: Decimal | None


Doubt = Between | str  # a str: a regex
Doubts = frozenset[Doubt]
NO_DOUBT: Doubts = frozenset()


def of_comparison(bound: Decimal, less: bool, equal: bool, greater: bool) -> tuple[Doubts, Doubts]:
    """(leaving, entering) of { x : x < bound (if `less`), = (if `equal`), > (if `greater`) }."""
    low, is_double, high = _beside(bound)
    if not is_double:
        whole = frozenset((Between(low, high),))
        return whole, whole
    sides = ((Between(low, bound), less), (Between(bound, high), greater))
    leaving = frozenset(side for side, is_in in sides if is_in and not equal)
    entering = frozenset(side for side, is_in in sides if equal and not is_in)
    return leaving, entering


def of_multiples(divisor: Decimal) -> tuple[Doubts, Doubts]:
    """(leaving, entering) of { n * divisor : n an integer }."""
    places = len(digits_of(divisor).fraction)
    if not places:
        return frozenset((rf"-?[0-9]{{{_SURE + 1},}}\.0+",)), frozenset((_NEAR_INTEGERS,))
    if places <= _BITS // 2 and (Fraction(divisor) * 2**places).denominator == 1:
        far = Decimal(2 ** (_BITS - places))  # up to here all of them are doubles
        return frozenset((Between(far, None), Between(None, -far))), frozenset((_LONG,))
    long = [  # by where the last digit stands that is not 0: more digits than `_SURE`
        rf"[0-9]{{{max(_SURE + 1 - at, 1)},}}\.[0-9]{{{at - 1}}}[1-9]0*"
        for at in range(1, places + 1)
    ]
    return frozenset((rf"-?({'|'.join(long)}|[0-9]{{{_SURE + 1},}}\.0+)",)), frozenset((_LONG,))


def _near_integers() -> str:
    """Half the distance of two doubles beside x is less than 1.12e-16 x, so what is rounded to an
    integer of k digits has 16 - k zeros or nines after the dot, or one less if it begins with 9,
    and then at most 1.12 or at least 8.88 of the next unit."""
    near = [rf"0\.(0{{{_SURE + 1}}}|9{{{_SURE + 1}}})[0-9]*"]
    for k in range(1, _SURE + 1):
        zeros, more = _SURE + 1 - k, f"[0-9]{{{k - 1}}}"
        near.append(rf"[1-8]{more}\.(0{{{zeros}}}|9{{{zeros}}})[0-9]*")
        near.append(rf"9{more}\.(0{{{zeros - 1}}}[01]|9{{{zeros - 1}}}[89])[0-9]*")
    return rf"-?({'|'.join(near)}|[0-9]{{{_SURE + 1},}}\.[0-9]+)"


def _long() -> str:
    """More digits than those of which it is sure that no two texts are one double."""
    long = [rf"[0-9]{{{k}}}\.[0-9]{{{_SURE + 1 - k},}}" for k in range(1, _SURE + 1)]
    return rf"-?({'|'.join(long)}|[0-9]{{{_SURE + 1},}}\.[0-9]+)"


_NEAR_INTEGERS = _near_integers()
_LONG = _long()


def doubtful(doubts: Iterable[Doubt]) -> ByteDFA:
    """The texts of some doubts."""
    return any_of(map(_texts, doubts))


@lru_cache(maxsize=256)
def _texts(doubt: Doubt) -> ByteDFA:
    if isinstance(doubt, str):
        return compile_regex(doubt)
    found = compile_regex(r"-?(0|[1-9][0-9]*)\.[0-9]+")
    if doubt.low is not None:
        found = intersection(found, compared(doubt.low, False, False, True))
    if doubt.high is not None:
        found = intersection(found, compared(doubt.high, True, False, False))
    return found


def _beside(bound: Decimal) -> tuple[Decimal | None, bool, Decimal | None]:
    """The double below, whether the bound is read as a double too, and the one above. (An integer
    is read exactly: one that is no double is compared with the doubles around it.)"""
    if bound == 0:
        return -_TINY, True, _TINY
    near = float(bound)
    value = _value(near)
    is_double = value == bound or bound != bound.to_integral_value()
    below = not is_double and value is not None and value < bound
    above = not is_double and value is not None and value > bound
    low = near if below else math.nextafter(near, -math.inf)
    high = near if above else math.nextafter(near, math.inf)
    return _value(low), is_double, _value(high)


def _value(double: float) -> Decimal | None:
    """What a double counts as; None for the two infinities."""
    if math.isinf(double):
        return None
    return Decimal(double) if double.is_integer() else Decimal(repr(double))
