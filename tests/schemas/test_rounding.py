"""Numbers as a parser reads them: integers exactly, decimals as the nearest double."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable
from decimal import Decimal

import pytest
from budget import examples
from hypothesis import assume, given
from hypothesis import strategies as st

from bpe_automata.schemas import compile_json_schema, numbers
from bpe_automata.schemas.numbers import NumberSet

Read = int | float
Check = Callable[[Read], bool]
COMPARISONS = {
    "at_least": operator.ge,
    "greater_than": operator.gt,
    "at_most": operator.le,
    "less_than": operator.lt,
    "of_value": operator.eq,
}
DOUBLES = (0.0, 1.0, 10.0, -3.0, 0.1, 0.3, -1.5, 2.0**53, 1e22, 1e23, 1e15, 123456.789)
BOUNDS: st.SearchStrategy[Read] = st.one_of(
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
TEXTS = st.one_of(
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
        name, bound = draw(st.sampled_from(sorted(COMPARISONS))), draw(BOUNDS)
        compare = COMPARISONS[name]
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


@given(combined(), st.lists(TEXTS, min_size=3, max_size=10))
@examples(60)
def test_what_is_written_is_read_into_the_set(
    made: tuple[NumberSet, Check], texts: list[str]
) -> None:
    found, check = made
    written, possible = found.written(), found.possible()
    for text in texts:
        is_in, data = check(json.loads(text)), text.encode()
        assert is_in or not written.accepts(data), text
        assert possible.accepts(data) or not is_in, text


@given(
    st.sampled_from(sorted(COMPARISONS)),
    st.sampled_from(DOUBLES) | st.floats(-1e18, 1e18, allow_subnormal=False),
    st.integers(-3, 3),
)
@examples(60)
def test_no_double_is_lost_to_a_bound(name: str, bound: float, steps: int) -> None:
    """Only those beside an exclusive 0 are, and those of more than 16 digits before the dot."""
    assume(abs(bound) < 1e15)
    text = beside(bound, steps, "0") if bound else repr(steps / 8)
    made = getattr(numbers, name)(bound)
    found = made | numbers.of_value(0.123)  # a set of integers would have no fractions
    assert found.written().accepts(text.encode()) == COMPARISONS[name](json.loads(text), bound)


EXAMPLES = [
    ({"exclusiveMaximum": 10}, ["9.999999999999998", "-3", "9"], ["9.99999999999999999", "10"]),
    ({"exclusiveMinimum": 0}, ["0.1", "0.00000000000000000002"], ["0.0", "0." + "0" * 400 + "1"]),
    ({"maximum": 10}, ["9.99999999999999999", "10.000"], ["10.000000000000000001"]),
    ({"minimum": 2**53 + 1}, [str(2**53 + 1), f"{2**53 + 2}.0"], [f"{2**53 + 1}.0", str(2**53)]),
    ({"type": "integer", "exclusiveMaximum": 10}, ["9", "-12"], ["9.0", "10"]),
    ({"not": {"type": "integer"}}, ["0.5", "0.1234567890123456"], ["0.99999999999999999", "1.0"]),
    ({"not": {"type": "integer"}}, ["3.25"], ["33098305439261309212.5"]),
    ({"not": {"maximum": 10}}, ["10.000000000000002", "11"], ["10.000000000000000001"]),
    ({"not": {"minimum": 10}}, ["9.999999999999998", "9"], ["9.99999999999999999"]),
    ({"multipleOf": 0.25}, ["0.25", "1.5", "7"], ["0.2500000000000000000001", "0.3"]),
    ({"multipleOf": 0.01}, ["19.99", "1234567890123.45"], ["19.995", "12345678901234567.89"]),
    ({"multipleOf": 0.01}, ["12345678901234.5", "123456789012345.0"], ["12345678901234.56"]),
    ({"multipleOf": 0.5}, ["2251799813685247.5", "0.50"], ["4503599627370497.5", "0.51"]),
    ({"not": {"type": "integer"}}, ["123456789012345.5", "100.0000000000001"], ["912345678.0"]),
    ({"not": {"type": "integer"}}, ["0.999999999999999"], ["900000000000000.1", "9" * 16 + ".5"]),
    ({"anyOf": [{"minimum": 0}, {"multipleOf": 0.01}]}, ["12345678901234.5"], ["-0.015"]),
    ({"not": {"multipleOf": 0.5}}, ["0.25"], ["0.49999999999999999999"]),
    ({"not": {"const": 1}}, ["1.5", "2"], ["1.0", "1", "0.99999999999999999999"]),
    ({"maximum": 1e23}, ["99999999999999991611392"], [str(10**23)]),
    ({"maximum": 10**23}, [str(10**23)], [str(10**23 + 1)]),
]


@pytest.mark.parametrize(("schema", "good", "bad"), EXAMPLES)
def test_examples(schema: dict[str, object], good: list[str], bad: list[str]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    found = compile_json_schema({"type": "number"} | schema)
    assert [text for text in good if not found.accepts(text.encode())] == []
    assert [text for text in bad if found.accepts(text.encode())] == []
    valid = jsonschema.Draft202012Validator(schema).is_valid
    if "0.01" not in str(schema):  # it divides doubles: 19.99 / 0.01 is not whole
        assert all(valid(json.loads(text)) for text in good)


# Digits and then zeros or nines, about as many as a double can tell from none.
DOUBTS = [
    text
    for k in range(1, 18)
    for whole in ("1" + "0" * (k - 1), "8" + "9" * (k - 1), "9" * k)
    for zeros in range(13 - k, 18 - k)
    for rest in ("1", "11", "12", "2", "5", "87", "88", "89", "9")
    for text in (f"{whole}.{'0' * zeros}{rest}", f"{whole}.{'9' * zeros}{rest}")
]


def test_what_may_be_rounded_to_an_integer_is_no_fraction() -> None:
    fractions = (~numbers.integers()).written()
    kept = [text for text in DOUBTS if fractions.accepts(text.encode())]
    assert [text for text in kept if float(text).is_integer()] == []
    lost = [text for text in DOUBTS if not float(text).is_integer() and text not in kept]
    assert len(kept) > 2 * len(lost)


def test_what_is_taken_away_is_taken_in_both_readings() -> None:
    """Inside of arrays a set is taken from another as texts."""
    items = {"type": "array", "items": {"type": "number"}, "maxItems": 40}
    below = compile_json_schema(items | {"not": {"items": {"exclusiveMaximum": 10}}})
    assert below.accepts(b"[1,10]")
    assert below.accepts(b"[1,9.99999999999999999,10.5]")
    assert not below.accepts(b"[1,9.999999999999998]")
    assert not below.accepts(b"[1,9.99999999999999999]")  # below 10 as it stands
    up_to = compile_json_schema(items | {"not": {"items": {"maximum": 10}}})
    assert up_to.accepts(b"[1,10.000000000000002]")
    assert not up_to.accepts(b"[1,10.000000000000000001]")  # 10 as a double
