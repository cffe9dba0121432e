"""How short objects can still be made: `far` of linked automata, by all texts that there are, and
what it takes to know that of objects with many names."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support import examples

from bpe_automata._automata.linked import LinkedDFA
from bpe_automata.errors import BudgetExceededError, UnsatisfiableSchemaError
from bpe_automata.schemas import _completions, link_json_schema
from bpe_automata.schemas._completions import Completions
from bpe_automata.schemas._json_style import JsonStyle
from bpe_automata.schemas._linking import Linker, columns
from bpe_automata.schemas._values import ALL_STRINGS, Child, ObjectShape, Term, Values, any_value

NAMES = ("a", "bb", "ccc", "d")
VALUES = (1, 22)
ONES = {"properties": {name: {"const": 1} for name in ("bb", "ccc")}}
some_names = st.lists(st.sampled_from(NAMES), max_size=2, unique=True)
asked = st.fixed_dictionaries({}, optional={
    "required": some_names,
    "minProperties": st.integers(1, 3),
    "maxProperties": st.integers(1, 3),
    "dependentRequired": st.dictionaries(st.sampled_from(NAMES), some_names, max_size=3),
    "properties": st.dictionaries(
        st.sampled_from(NAMES), st.sampled_from(({"const": 1}, {"const": 22}, False)), max_size=3
    ),
})  # fmt: skip
combined = st.one_of(
    st.just({}),
    st.builds(lambda one: {"not": one}, asked),
    st.builds(lambda one, two: {"not": {"anyOf": [one, two]}}, asked, asked),
    st.builds(lambda one, two: {"oneOf": [one, two]}, asked, asked),
    st.builds(lambda one, two: {"if": one, "then": two}, asked, asked),
)


def closed(names: Any, **keywords: Any) -> dict[str, Any]:
    named = {name: {"enum": list(VALUES)} for name in names}
    return {"type": "object", "properties": named, "additionalProperties": False, **keywords}


def text_of(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def objects(names: Any, order: str) -> Any:
    """All that have some of the names."""
    arranged = itertools.permutations if order == "any" else itertools.combinations
    for size in range(1 + len(names)):
        for some in arranged(names, size):
            for values in itertools.product(VALUES, repeat=size):
                yield dict(zip(some, values, strict=True))


@pytest.mark.parametrize("order", ["schema", "any"])
@examples(80)
@given(asked, combined)
@example({"dependentRequired": {"a": ["bb"], "bb": ["ccc"]}}, {})
@example({"required": ["a", "bb"], "maxProperties": 1}, {})
@example({"maxProperties": 2}, {"not": ONES})
def test_far_is_the_length_of_the_shortest_rest(order: Any, one: Any, more: Any) -> None:
    names = NAMES[:3] if order == "any" else NAMES
    schema = {"allOf": [closed(names), one, more]}
    valid = jsonschema.Draft202012Validator(schema).is_valid
    texts = [text_of(value) for value in objects(names, order) if valid(value)]
    rests: dict[bytes, int] = {}
    for text in texts:
        for size in range(1 + len(text)):
            left = len(text) - size
            rests[text[:size]] = min(left, rests.get(text[:size], left))
    try:
        found = link_json_schema(schema, order=order)
    except UnsatisfiableSchemaError:
        assert not texts
        return
    states = {prefix: found.walk(prefix) for prefix in rests}
    assert {prefix: int(found.far[state]) for prefix, state in states.items()} == rests
    for prefix, state in states.items():  # and there is nothing else to go on with
        after = {prefix + bytes([byte]) for byte in found.live_bytes(state).tolist()}
        assert after == {other for other in rests if other[:-1] == prefix and other}
        assert found.accepting[state] == (prefix in texts)


@pytest.mark.parametrize("order", ["schema", "any"])
def test_other_names_are_counted_and_refute(order: Any) -> None:
    named = {"bb": {"const": 1}, "aa": {"enum": [1, 22]}}
    schema = {"type": "object", "properties": named, "additionalProperties": {"const": 1}}
    ones = {"properties": {"aa": {"const": 1}}}
    cases = [
        (
            {"minProperties": 1},
            {"": '{"":1}', "{": '"":1}', '{"bb":1': "}", '{"x":1,"x":1': "}"},
        ),
        (
            {"minProperties": 1, "not": ones},
            {"{": '"aa":22}', '{"bb":1': ',"aa":22}', '{"aa":22,"x":1': "}"},
        ),
        (
            {**ones, "not": {**ones, "additionalProperties": False}},
            {"": '{"":1}', '{"aa":1': ',"":1}', '{"aa":1,"x":1': "}", '{"x":1': "}"},
        ),
    ]
    if order == "any":
        cases[1][1].update(dict.fromkeys(('{"x":1', '{"x":1,"x":1'), ',"aa":22}'))
    for keywords, rests in cases:
        found = link_json_schema({**schema, **keywords}, order=order)
        for text, rest in rests.items():
            assert int(found.far[found.walk(text.encode())]) == len(rest)
            assert found.accepts((text + rest).encode())


@pytest.mark.parametrize("order", ["schema", "any"])
def test_a_shape_of_which_there_is_no_object_subtracts_nothing(order: Any) -> None:
    rest = ((ALL_STRINGS, Child.of(any_value(1))),)
    minus = (ObjectShape(), ObjectShape(rest=rest, fewest=2, most=1))  # {}, and nothing
    values = Values(objects=(Term(ObjectShape(rest=rest), minus),))
    begin = Linker(JsonStyle(), order, unique_names=False).begin(values)
    found = LinkedDFA(begin, columns({"pattern": ""}, breaks=True))
    texts = b"{}", b'{"a":null}', b'{"a":null,"b":null}'
    assert [found.accepts(text) for text in texts] == [False, True, True]


def many(count: int, kind: str) -> dict[str, Any]:
    """An object with many names, of which the members depend on one another."""
    names = [f"k{i}" for i in range(count)]
    ones = {name: {"const": 1} for name in names}
    evens, odds = dict(list(ones.items())[::2]), dict(list(ones.items())[1::2])
    if kind == "not":
        return closed(names, **{"not": {"properties": ones}})
    if kind == "oneOf":
        return closed(names, oneOf=[{"properties": evens}, {"properties": odds}])
    needs = {one: [two] for one, two in zip(evens, odds, strict=True)}
    return closed(names, minProperties=count // 2, dependentRequired=needs)


def text_with(count: int, ones: Any, order: str) -> tuple[dict[str, int], bytes]:
    """An object with all names but the last two, in which some values are 1."""
    some = list(range(count - 2))
    if order == "any":
        random.Random(count).shuffle(some)
    value = {f"k{i}": 1 if ones(i) else 22 for i in some}
    return value, text_of(value)


@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize("kind", ["not", "oneOf", "counts"])
def test_objects_with_a_hundred_names_are_read_and_ended(kind: str, order: Any) -> None:
    count = 100
    schema = many(count, kind)
    found, valid = link_json_schema(schema, order=order), jsonschema.Draft202012Validator(schema)
    rng = random.Random(0)
    for ones in (lambda i: True, lambda i: i % 2, lambda i: not i % 2, lambda i: i != 97):
        value, text = text_with(count, ones, order)
        assert found.accepts(text) == valid.is_valid(value)
        ends = [k for k, byte in enumerate(text) if byte == ord(",")]
        for end in rng.sample(ends, 4):  # every member behind which there is a rest
            state = found.walk(text[:end])
            if state:
                rest = found.shortest(state)
                assert valid.is_valid(json.loads(text[:end] + rest))
                assert len(rest) == int(found.far[state])


@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize("kind", ["not", "oneOf", "counts"])
def test_a_text_is_searched_once_for_each_member(monkeypatch: Any, kind: str, order: Any) -> None:
    """Not once for each member that may come next: twice the names take four times the steps."""
    steps_from, taken = Completions._steps_from, [0]

    def counted(self: Completions, *of: Any) -> Any:
        steps = steps_from(self, *of)
        taken[0] += len(steps)
        return steps

    monkeypatch.setattr(Completions, "_steps_from", counted)
    steps = []
    for count in (20, 40, 80):
        taken[0] = 0
        found = link_json_schema(many(count, kind), order=order)
        assert found.walk(text_with(count, lambda i: i % 2, order)[1][:-1])
        steps.append(taken[0])
    assert steps[2] <= 4.5 * steps[1] <= 4.5**2 * steps[0]
    assert steps[2] <= 20 * 80**2


def test_too_many_ways_to_go_on_are_refused(monkeypatch: Any) -> None:
    """Whichever of the first names there are, it matters until their second ones are decided."""
    names = [f"{kind}{i}" for kind in "pq" for i in range(8)]
    needs = {f"p{i}": [f"q{i}"] for i in range(8)}
    schema = closed(names, minProperties=3, dependentRequired=needs)
    found = link_json_schema(schema)
    assert len(found.shortest()) == len(text_of({"q0": 1, "q1": 1, "q2": 1}))
    monkeypatch.setattr(_completions, "_MOST_WAYS", 255)
    with pytest.raises(BudgetExceededError, match="ways to go on"):
        link_json_schema(schema)
