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
from functools import lru_cache

from bpe_automata.automata.algebra import any_of, intersection
from bpe_automata.automata.compile import compile_regex
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.schemas.decimal_texts import compared, digits_of

_SURE = 15  # decimals of so many digits are different doubles
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
    whole = max(_SURE + 1 - places, 1)
    return frozenset((rf"-?[0-9]{{{whole},}}\.[0-9]{{1,{places}}}0*",)), frozenset((_LONG,))


def _near_integers() -> str:
    """Half the distance of two doubles beside x is less than 1.2e-16 x, so what is rounded to an
    integer begins, after k digits and the dot, with 15 - k zeros or nines."""
    near = [rf"[0-9]{{{k}}}\.(0{{{_SURE - k}}}|9{{{_SURE - k}}})[0-9]*" for k in range(1, _SURE)]
    return rf"-?({'|'.join(near)}|[0-9]{{{_SURE},}}\.[0-9]+)"


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
