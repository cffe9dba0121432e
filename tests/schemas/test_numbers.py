"""Sets of numbers: exact as decimals, against fractions; what is written, as a parser reads it."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import jsonschema
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from support import examples

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.errors import ArgumentError, BudgetExceededError, UnsatisfiableSchemaError
from bpe_automata.schemas import _numbers as numbers
from bpe_automata.schemas import json_schema

DIGITS = st.text("0123456789", max_size=6)
WHOLE = st.one_of(st.just("0"), st.builds(str.__add__, st.sampled_from("123456789"), DIGITS))
FRACTION = st.one_of(st.just(""), st.text("012359", min_size=1, max_size=4).map(lambda d: "." + d))
SIGN = st.sampled_from(("", "-"))
SHORT = st.tuples(
    SIGN,
    st.sampled_from(("0", "1", "2", "9", "10", "19", "100")),
    st.sampled_from(("", ".0", ".00", ".5", ".05", ".50", ".9", ".95")),
).map("".join)
NEAR = st.one_of(SHORT, st.tuples(SIGN, WHOLE, FRACTION).map("".join))
COMPARISONS: dict[str, tuple[Callable[[Decimal], ByteDFA], Callable[[Fraction, Fraction], bool]]]
COMPARISONS = {
    "at_least": (numbers.at_least, Fraction.__ge__),
    "above": (numbers.greater_than, Fraction.__gt__),
    "at_most": (numbers.at_most, Fraction.__le__),
    "below": (numbers.less_than, Fraction.__lt__),
    "value": (lambda value: numbers.of_values((7, value)), lambda a, b: a in (7, b)),
}


@pytest.mark.parametrize("name", COMPARISONS)
@given(bound=NEAR.map(Decimal), texts=st.lists(NEAR, min_size=4, max_size=8))
@examples(25)
def test_comparisons_are_exact(name: str, bound: Decimal, texts: list[str]) -> None:
    made, holds = COMPARISONS[name]
    found = made(bound)
    for text in (*texts, f"{bound:f}", f"{bound:f}".split(".")[0]):
        assert found.accepts(text.encode()) == holds(Fraction(text), Fraction(bound))


@given(NEAR, st.integers(-8, 8), st.lists(NEAR, max_size=6), st.integers(-99, 99))
@examples(50)
@example("0.5", -8, ["0.0000005"], 3)
def test_multiples_are_exact(text: str, shift: int, texts: list[str], times: int) -> None:
    divisor = abs(Decimal(text)).scaleb(shift)
    assume(divisor and len(divisor.normalize().as_tuple().digits) < 4)
    try:
        found = numbers.multiples_of(divisor)
    except BudgetExceededError:  # a state for each remainder and each place
        assert int("".join(map(str, divisor.normalize().as_tuple().digits))) > 100
        return
    for near in (*texts, f"{divisor * times:f}", f"{divisor * times + divisor / 2:f}"):
        whole = (Fraction(near) / Fraction(divisor)).denominator == 1
        assert found.accepts(near.encode()) == whole


@pytest.mark.parametrize(
    "bound", [9007199254740991, -(2**63), 1e308, -1.79769e308, 5e-324, 10**400]
)
def test_huge_and_tiny_bounds(bound: float) -> None:
    exact = Decimal(bound if bound % 1 == 0 else repr(bound))
    found = numbers.at_most(bound)
    assert found.accepts(f"{exact:f}".encode())
    if exact == exact.to_integral_value():
        assert found.accepts(f"{Fraction(exact) - 1}".encode())
        assert not found.accepts(f"{Fraction(exact) + 1}".encode())
    else:
        assert found.accepts(b"0")
        assert not found.accepts(b"0.1")


OVERFLOWS = ("1e400", "1E400", "1.8E+308", "9e308", "-1e0308", "10e3", "1e99999")
OVERFLOWS += ("1" + "0" * 309 + ".5", "1" + "0" * 309 + ".0", "1" * 400 + "e-5")


@pytest.mark.parametrize("schema", [{}, {"type": "number"}, {"minimum": 5}, {"not": {"const": 1}}])
def test_a_number_that_is_written_is_finite(schema: dict[str, object]) -> None:
    found = json_schema({"type": "number"} | schema)
    assert [text for text in OVERFLOWS if found.accepts(text.encode())] == []
    rng = random.Random(0)
    for length in (6, 30, 330, 700):
        for _ in range(20):
            text = found.sample(rng, length).decode()
            value = json.loads(text, parse_int=int if length < 400 else Decimal)
            assert math.isfinite(value), text


@pytest.mark.parametrize("divisor", [0, -1, Decimal("-0.5"), 0.0])
def test_a_divisor_that_is_not_above_zero_is_refused(divisor: float) -> None:
    with pytest.raises(ArgumentError, match="above 0"):
        numbers.multiples_of(divisor)


def test_what_is_too_large_is_refused() -> None:
    for divisor in (1234567, Decimal("1." + "7" * 5000)):
        with pytest.raises(BudgetExceededError, match="one per remainder"):
            numbers.multiples_of(divisor)


# As a parser reads them: bounds and constants are compared as Python does, which reads doubles.

DOUBLES = (0.0, 1.0, 10.0, -3.0, 0.1, 0.3, -1.5, 2.0**53, 1e22, 1e23, 1e15, 123456.789)
READ = st.one_of(
    st.sampled_from((*DOUBLES, 0, 7, -1, 2**53 + 1, 2**63 - 1, 10**23)),
    st.floats(-1e18, 1e18, allow_subnormal=False),
)
KEYWORDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "const")
LEAVES = st.one_of(
    st.builds(lambda name, value: {name: value}, st.sampled_from(KEYWORDS), READ),
    st.builds(lambda divisor: {"multipleOf": divisor}, st.sampled_from((1, 2, 3, 7, 10))),
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(lambda one: {"not": one}, inner),
        st.builds(
            lambda name, some: {name: some},
            st.sampled_from(("allOf", "anyOf", "oneOf")),
            st.lists(inner, min_size=2, max_size=2),
        ),
    ),
    max_leaves=4,
)


def beside(double: float, steps: int, tail: str) -> str:
    """A decimal close to a double: some doubles further on, with more digits."""
    for _ in range(abs(steps)):
        double = math.nextafter(double, math.copysign(math.inf, steps))
    text = f"{Decimal(double if double.is_integer() else repr(double)):f}"
    return (text if "." in text else text + ".") + tail


TAILS = st.sampled_from(("0", "5", "49999", "00000000000000000001", "9" * 20))
NUMERALS = st.one_of(
    st.builds(beside, st.sampled_from(DOUBLES), st.integers(-2, 2), TAILS),
    st.builds(beside, st.floats(-1e18, 1e18, allow_subnormal=False), st.integers(-1, 1), TAILS),
    st.integers(-(10**24), 10**24).map(str),
    st.sampled_from((2**53, 2**53 + 1, 10**23, 10**23 - 8388609)).map(str),
    st.sampled_from(("9" * 17 + ".0", "0." + "9" * 20, "12." + "0" * 18 + "1", "1" * 16 + ".5")),
)


@given(SCHEMAS, st.lists(NUMERALS, min_size=3, max_size=10))
@examples(60)
def test_what_is_written_is_read_into_the_set(schema: dict[str, Any], texts: list[str]) -> None:
    valid = jsonschema.Draft202012Validator(schema).is_valid
    try:
        found = json_schema({"type": "number", **schema})
    except UnsatisfiableSchemaError:
        return
    rng = random.Random(len(texts))
    for text in (*texts, *(found.sample(rng, 20).decode() for _ in range(5))):
        assert valid(json.loads(text)) or not found.accepts(text.encode()), text


EXAMPLES = [
    ({"exclusiveMaximum": 10}, ["9.99999999999998", "-3", "9"], ["9.99999999999999999", "10"]),
    ({"exclusiveMinimum": 0}, ["0.1", "0.00000000000000000002"], ["0.0", "0." + "0" * 400 + "1"]),
    ({"minimum": 2**53 + 1}, [str(2**53 + 1)], [f"{2**53 + 1}.0", str(2**53)]),
    ({"type": "integer", "exclusiveMaximum": 10}, ["9", "-12"], ["9.0", "10", "-0"]),
    ({"not": {"type": "integer"}}, ["0.5", "0.123456789012345"], ["0.99999999999999999", "1.0"]),
    ({"not": {"maximum": 10}}, ["10.0000000000002", "11"], ["10.000000000000000001"]),
    ({"multipleOf": 0.01}, ["19.99", "1234567890123.45"], ["19.995", "12345678901234567.89"]),
    ({"not": {"multipleOf": 0.5}}, ["0.25"], ["0.49999999999999999999"]),
    ({"maximum": 1e23}, ["99999999999999991611392"], [str(10**23)]),
    ({"maximum": 10**23}, [str(10**23)], [str(10**23 + 1)]),
    ({"enum": [math.pi, 0.5]}, ["3.141592653589793", "0.50"], ["3.141592653589794"]),
    ({"enum": [2.0, 0.5, 1e-7]}, ["2", "0.5", "0.50", "0.0000001"], ["1e-07", "0.2"]),
    ({"anyOf": [{"minimum": 0}, {"maximum": 0}]}, ["1e5"], ["1e400"]),
]


@pytest.mark.parametrize(("schema", "good", "bad"), EXAMPLES)
def test_examples(schema: dict[str, object], good: list[str], bad: list[str]) -> None:
    found = json_schema({"type": "number"} | schema)
    assert [text for text in good if not found.accepts(text.encode())] == []
    assert [text for text in bad if found.accepts(text.encode())] == []
