"""Sets of numbers against exact fractions, and as a parser reads them: integers exactly, decimals
as the nearest double.
"""

from __future__ import annotations

import json
import math
import operator
import random
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support import examples

from bpe_automata._automata.dfa import ByteDFA
from bpe_automata.errors import ArgumentError, BudgetExceededError
from bpe_automata.schemas import _numbers as numbers
from bpe_automata.schemas import json_schema
from bpe_automata.schemas._numbers import NumberSet

DIGITS = st.text("0123456789", max_size=6)
WHOLE = st.one_of(st.just("0"), st.builds(str.__add__, st.sampled_from("123456789"), DIGITS))
FRACTION = st.one_of(st.just(""), st.text("012359", min_size=1, max_size=4).map(lambda d: "." + d))
TEXTS = st.builds(lambda *parts: "".join(parts), st.sampled_from(("", "-")), WHOLE, FRACTION)
SHORT = st.builds(
    lambda *parts: "".join(parts),
    st.sampled_from(("", "-")),
    st.sampled_from(("0", "1", "2", "9", "10", "19", "100")),
    st.sampled_from(("", ".0", ".00", ".5", ".05", ".50", ".9", ".95")),
)
BOUNDS = st.one_of(SHORT, TEXTS).map(Decimal)
NEAR = st.one_of(SHORT, TEXTS)
COMPARISONS: dict[
    str, tuple[Callable[[Decimal], NumberSet], Callable[[Fraction, Fraction], bool]]
] = {
    "at_least": (numbers.at_least, Fraction.__ge__),
    "above": (numbers.greater_than, Fraction.__gt__),
    "at_most": (numbers.at_most, Fraction.__le__),
    "below": (numbers.less_than, Fraction.__lt__),
    "of_value": (numbers.of_value, Fraction.__eq__),
}


def has(found: NumberSet | ByteDFA, text: str) -> bool:
    return (found.decimals if isinstance(found, NumberSet) else found).accepts(text.encode())


@pytest.mark.parametrize("name", COMPARISONS)
@given(bound=BOUNDS, texts=st.lists(NEAR, min_size=4, max_size=8))
@examples(25)
def test_comparisons_are_exact(name: str, bound: Decimal, texts: list[str]) -> None:
    made, holds = COMPARISONS[name]
    found = made(bound)
    for text in (*texts, f"{bound:f}", f"{bound:f}".split(".")[0]):
        assert has(found, text) == holds(Fraction(text), Fraction(bound))


@given(
    st.one_of(SHORT, TEXTS), st.integers(-8, 8), st.lists(NEAR, max_size=6), st.integers(-99, 99)
)
@examples(50)
def test_multiples_are_exact(text: str, shift: int, texts: list[str], times: int) -> None:
    divisor = abs(Decimal(text)).scaleb(shift)
    assume(divisor and len(divisor.normalize().as_tuple().digits) < 5)
    try:
        found = numbers.multiples_of(divisor)
    except BudgetExceededError:  # a state for each remainder and each place
        assert int("".join(map(str, divisor.normalize().as_tuple().digits))) > 1000
        return
    for near in (*texts, f"{divisor * times:f}", f"{divisor * times + divisor / 2:f}"):
        whole = (Fraction(near) / Fraction(divisor)).denominator == 1
        assert has(found, near) == whole


PREDICATES: tuple[tuple[NumberSet, Callable[[Fraction], bool]], ...] = (
    (numbers.integers(), lambda x: x.denominator == 1),
    (numbers.at_least(Decimal("-1.5")), lambda x: x >= Fraction(-3, 2)),
    (numbers.less_than(10), lambda x: x < 10),
    (numbers.multiples_of(Decimal("0.05")), lambda x: (x * 20).denominator == 1),
    (numbers.of_value(Decimal("9.50")), lambda x: x == Fraction(19, 2)),
)


@given(st.lists(st.tuples(st.sampled_from("|&~-"), st.integers(0, 4)), max_size=4), st.lists(NEAR))
@examples(50)
def test_algebra_is_that_of_sets(steps: list[tuple[str, int]], texts: list[str]) -> None:
    found, member = PREDICATES[0]
    members = {text: member(Fraction(text)) for text in texts}
    for operation, which in steps:
        other, holds = PREDICATES[which]
        right = {text: holds(Fraction(text)) for text in texts}
        if operation == "|":
            found, members = found | other, {t: members[t] or right[t] for t in texts}
        elif operation == "&":
            found, members = found & other, {t: members[t] and right[t] for t in texts}
        elif operation == "-":
            found, members = found - other, {t: members[t] and not right[t] for t in texts}
        else:
            found, members = ~found, {t: not members[t] for t in texts}
    assert {text: has(found, text) for text in texts} == members


@pytest.mark.parametrize(
    "bound", [9007199254740991, -(2**63), 1e308, -1.79769e308, 5e-324, 10**400]
)
def test_huge_and_tiny_bounds(bound: float) -> None:
    exact = Decimal(bound if bound % 1 == 0 else repr(bound))
    with_more, with_less = (f"{Fraction(exact) + d}" for d in (1, -1))
    whole = exact == exact.to_integral_value()
    found = numbers.at_most(bound)
    assert has(found, f"{exact:f}")
    if whole:
        assert has(found, with_less)
        assert not has(found, with_more)
    else:
        assert has(found, "0")
        assert not has(found, "0.1")


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


CONSTANTS = [2.0, 0.0, -0.0, 1e16, -1.916989488538403e16, 1e-07, 10000.0, 1e22, 1e23, 1.5e308, 0.5]


@pytest.mark.parametrize("value", CONSTANTS)
@pytest.mark.parametrize("where", [lambda s: s, json.dumps], ids=["value", "text"])
def test_a_constant_may_be_spelled_as_it_is_printed(value: float, where: Any) -> None:
    text = json.dumps(value).encode()
    schemas = [
        {"const": value},
        {"enum": ["a", value, 3]},
        {"enum": [value, 7], "not": {"const": 7.0}},
    ]
    if Decimal(value) == Decimal(repr(value)) or not value.is_integer():
        schemas.append({"allOf": [{"enum": [value, 7]}, {"type": "number", "minimum": value}]})
    assert [s for s in schemas if not json_schema(where(s)).accepts(text)] == []
    inside = json_schema(where({"const": {"a": [value]}}))
    assert inside.accepts(b'{"a":[' + text + b"]}")
    gone = {"enum": [value, 7], "not": {"const": value}}
    assert list(json_schema(where(gone)).strings(9)) == [b"7"]
    if value.is_integer():  # draft 4 goes by the text
        draft = {"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}
        only_seven = json_schema(where(draft | {"enum": [value, 7]}))
        assert not only_seven.accepts(text)


@pytest.mark.parametrize("divisor", [0, -1, Decimal("-0.5"), 0.0])
def test_a_divisor_that_is_not_above_zero_is_refused(divisor: float) -> None:
    with pytest.raises(ArgumentError, match="above 0"):
        numbers.multiples_of(divisor)


def test_what_is_too_large_is_refused() -> None:
    with pytest.raises(BudgetExceededError, match="divide by 1234567"):
        numbers.multiples_of(1234567)
    with pytest.raises(BudgetExceededError, match="per remainder"):
        numbers.multiples_of(Decimal("1." + "7" * 5000))
    with pytest.raises(BudgetExceededError, match="digits"):
        numbers.at_least(Decimal("1e50000"))


# ---------------------------------------------------------------- as a parser reads them

Read = int | float
Check = Callable[[Read], bool]
DECIDED = {
    "at_least": operator.ge,
    "greater_than": operator.gt,
    "at_most": operator.le,
    "less_than": operator.lt,
    "of_value": operator.eq,
}
DOUBLES = (0.0, 1.0, 10.0, -3.0, 0.1, 0.3, -1.5, 2.0**53, 1e22, 1e23, 1e15, 123456.789)
READ: st.SearchStrategy[Read] = st.one_of(
    st.sampled_from(DOUBLES),
    st.sampled_from((0, 7, -1, 2**53 + 1, 2**63 - 1, 10**23)),
    st.floats(-1e18, 1e18, allow_subnormal=False),
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


def whole(x: Read) -> bool:
    return isinstance(x, int) or x.is_integer()


@st.composite
def sets(draw: st.DrawFn) -> tuple[NumberSet, Check]:
    """A set, and whether what was read is in it, as Python compares."""
    if draw(st.booleans()):
        name, bound = draw(st.sampled_from(sorted(DECIDED))), draw(READ)
        compare = DECIDED[name]
        return getattr(numbers, name)(bound), lambda x: compare(x, bound)
    divisor = draw(st.sampled_from((1, 2, 3, 7, 10)))
    return numbers.multiples_of(divisor), lambda x: whole(x) and int(x) % divisor == 0


@st.composite
def combined(draw: st.DrawFn) -> tuple[NumberSet, Check]:
    found, check = draw(sets())
    for operation in draw(st.text("|&-~", max_size=3)):
        found, check = both(operation, (found, check), draw(sets()))
    return found, check


def both(
    operation: str, one: tuple[NumberSet, Check], other: tuple[NumberSet, Check]
) -> tuple[NumberSet, Check]:
    (a, in_a), (b, in_b) = one, other
    if operation == "|":
        return a | b, lambda x: in_a(x) or in_b(x)
    if operation == "&":
        return a & b, lambda x: in_a(x) and in_b(x)
    if operation == "-":
        return a - b, lambda x: in_a(x) and not in_b(x)
    return ~a, lambda x: not in_a(x)


@given(combined(), st.lists(NUMERALS, min_size=3, max_size=10))
@examples(60)
def test_what_is_written_is_read_into_the_set(
    made: tuple[NumberSet, Check], texts: list[str]
) -> None:
    found, check = made
    written = found.written()
    for text in texts:
        is_in, data = check(json.loads(text)), text.encode()
        assert is_in or not written.accepts(data), text


WHOLE_OR_NOT = {"oneOf": [{"type": "integer"}, {"not": {"type": "integer"}}]}
EXAMPLES = [
    ({"exclusiveMaximum": 10}, ["9.99999999999998", "-3", "9"], ["9.99999999999999999", "10"]),
    ({"exclusiveMinimum": 0}, ["0.1", "0.00000000000000000002"], ["0.0", "0." + "0" * 400 + "1"]),
    ({"maximum": 10}, ["9.99999999999999999", "10.000"], ["10.000000000000000001"]),
    ({"minimum": 2**53 + 1}, [str(2**53 + 1)], [f"{2**53 + 1}.0", str(2**53)]),
    ({"type": "integer", "exclusiveMaximum": 10}, ["9", "-12"], ["9.0", "10"]),
    ({"not": {"type": "integer"}}, ["0.5", "0.123456789012345"], ["0.99999999999999999", "1.0"]),
    ({"not": {"type": "integer"}}, ["3.25"], ["33098305439261309212.5"]),
    ({"not": {"maximum": 10}}, ["10.0000000000002", "11"], ["10.000000000000000001"]),
    ({"not": {"minimum": 10}}, ["9.99999999999998", "9"], ["9.99999999999999999"]),
    ({"multipleOf": 0.25}, ["0.25", "1.5", "7"], ["0.2500000000000000000001", "0.3"]),
    ({"multipleOf": 0.01}, ["19.99", "1234567890123.45"], ["19.995", "12345678901234567.89"]),
    ({"multipleOf": 0.01}, ["12345678901234.5", "12345678901234.0"], ["12345678901234.56"]),
    ({"multipleOf": 0.5}, ["0.50"], ["4503599627370497.5", "0.51"]),
    ({"not": {"type": "integer"}}, ["12345678901234.5", "100.000000000001"], ["912345678.0"]),
    ({"not": {"type": "integer"}}, ["0.999999999999999"], ["900000000000000.1", "9" * 16 + ".5"]),
    (WHOLE_OR_NOT, ["100.000000000001", "7", "1.0"], ["9" * 16 + ".5", "0." + "9" * 17]),
    ({"anyOf": [{"minimum": 0}, {"multipleOf": 0.01}]}, ["12345678901234.5"], ["-0.015"]),
    ({"not": {"multipleOf": 0.5}}, ["0.25"], ["0.49999999999999999999"]),
    ({"not": {"const": 1}}, ["1.5", "2"], ["1.0", "1", "0.99999999999999999999"]),
    ({"maximum": 1e23}, ["99999999999999991611392"], [str(10**23)]),
    ({"maximum": 10**23}, [str(10**23)], [str(10**23 + 1)]),
]


@pytest.mark.parametrize(("schema", "good", "bad"), EXAMPLES)
def test_examples(schema: dict[str, object], good: list[str], bad: list[str]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    found = json_schema({"type": "number"} | schema)
    assert [text for text in good if not found.accepts(text.encode())] == []
    assert [text for text in bad if found.accepts(text.encode())] == []
    valid = jsonschema.Draft202012Validator(schema).is_valid
    if "0.01" not in str(schema):  # it divides doubles: 19.99 / 0.01 is not whole
        assert all(valid(json.loads(text)) for text in good)


def test_what_is_taken_away_is_taken_in_both_readings() -> None:
    """Inside of arrays a set is taken from another as texts."""
    items = {"type": "array", "items": {"type": "number"}, "maxItems": 40}
    below = json_schema(items | {"not": {"items": {"exclusiveMaximum": 10}}})
    assert below.accepts(b"[1,10]")
    assert below.accepts(b"[1,9.99999999999999999,10.5]")
    assert not below.accepts(b"[1,9.99999999999998]")
    assert not below.accepts(b"[1,9.99999999999999999]")  # below 10 as it stands
    up_to = json_schema(items | {"not": {"items": {"maximum": 10}}})
    assert up_to.accepts(b"[1,10.0000000000002]")
    assert not up_to.accepts(b"[1,10.000000000000000001]")  # 10 as a double
